// SPDX-License-Identifier: Apache-2.0
//
// From totals to the extender protocol's priorities 0..10.
//
// kube-scheduler reads only eleven levels, so they go to the best nodes: the best total gets 10,
// the next lower one 9, and so on; from the eleventh on 0. The order is kept (never reversed; equal
// totals stay equal under TieRule::kEqual), and the choice of the highest is the same as on the
// full scale.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "cluster/node/node.h"
#include "scoring/profile_spec.h"
#include "scoring/waste/gpu_state.h"

namespace berth {

// How empty a node is, as TieRule::kFullest compares nodes.

constexpr int kMostEmpty = 1 << 18;

// Free GPU compute in thousandths; partitioned GPUs count by their free memory units. A node whose
// GPUs are all unused gets more than any other node. 0..kMostEmpty.
inline int EmptinessOf(const Node& node) {
  int free = 0, all = 0;
  for (std::size_t gpu = 0; gpu < node.gpus().size(); ++gpu) {
    all += node.spec().gpus[gpu].healthy ? kMilliPerGpu : 0;
    free += UsableMilli(node, gpu);
  }
  if (const NodeMig& mig = node.spec().mig; mig.known() && !mig->gpus.empty()) {
    const auto gpus = static_cast<int>(mig->gpus.size());
    const int units = mig->product->memory_units() * gpus;
    int taken = 0;
    for (const MigSet set : node.mig().taken()) taken += std::popcount(mig->product->UnitsOf(set));
    all += gpus * kMilliPerGpu;
    free += std::max(units - taken, 0) * gpus * kMilliPerGpu / units;
  }
  static_assert(kMostEmpty / 2 >= 2 * kMaxGpusPerNode * kMilliPerGpu);
  return std::min(free == all ? kMostEmpty / 2 + free : free, kMostEmpty);
}

constexpr int kMaxPriority = 10;
constexpr int kMaxTotal = 10'000;  // totals are the weighted mean score in hundredths
constexpr int kHundredths = kMaxTotal / kMaxScore;  // a point of a score, as a part of a total

// One priority per total. Requires: 0 <= total <= kMaxTotal; under kFirst the totals are in name
// order.
std::vector<std::uint8_t> ToPriorities(std::span<const int> totals, TieRule ties);

// The same under TieRule::kFullest: a level per total and emptiness (priority.h). With the weight
// in manifests/scheduler one level counts more than all of kube-scheduler's own scorers together
// (docs/install.md). Between equal levels these decide, in favour of the emptiest node. Requires:
// as above, and 0 <= emptiness <= kMostEmpty.
std::vector<std::uint8_t> ToPriorities(std::span<const int> totals, std::span<const int> emptiness);

// What that compares, higher is better.
inline std::int64_t LevelRank(int total, int emptiness) {
  return std::int64_t{total} * (kMostEmpty + 1) - emptiness;
}

}  // namespace berth
