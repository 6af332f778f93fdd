// SPDX-License-Identifier: Apache-2.0
//
// How empty a node is, as TieRule::kFullest compares nodes.
#pragma once

#include <algorithm>
#include <bit>

#include "cluster/node/node.h"
#include "scoring/waste/gpu_state.h"

namespace berth {

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

}  // namespace berth
