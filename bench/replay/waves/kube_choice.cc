// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/waves/kube_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace berth::replay {
namespace {

constexpr std::int64_t kMostPoints = 100;
constexpr int kPointsPerPriority = 10;

struct Use {
  std::int64_t requested;  // with the pod
  std::int64_t allocatable;

  [[nodiscard]] std::int64_t FreePoints() const {
    if (allocatable <= 0 || requested > allocatable) return 0;
    return (allocatable - requested) * kMostPoints / allocatable;
  }
  [[nodiscard]] double Part() const {
    if (allocatable <= 0) return 1;
    return std::min(static_cast<double>(requested) / static_cast<double>(allocatable), 1.0);
  }
};

}  // namespace

std::int64_t KubeChoice::OwnScore(const Node& node, const RequestShape& pod) {
  const NodeSpec& spec = node.spec();
  const Use cpu{spec.cpu_milli - node.free_cpu_milli() + pod.cpu_milli, spec.cpu_milli};
  const Use memory{spec.memory_bytes - node.free_memory_bytes() + pod.memory_bytes,
                   spec.memory_bytes};
  const std::int64_t least_allocated = (cpu.FreePoints() + memory.FreePoints()) / 2;
  const double deviation = std::abs(cpu.Part() - memory.Part()) / 2;
  return least_allocated + static_cast<std::int64_t>((1 - deviation) * double(kMostPoints));
}

NodeIndex KubeChoice::Choose(const Snapshot& snapshot, const RequestShape& pod,
                             std::span<const NodeIndex> candidates,
                             std::span<const std::uint8_t> priorities) {
  std::int64_t best = std::numeric_limits<std::int64_t>::min();
  std::vector<NodeIndex> highest;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::int64_t score = std::int64_t{priorities[i]} * weight_ * kPointsPerPriority +
                               OwnScore(snapshot.node(candidates[i]), pod);
    if (score < best) continue;
    if (score > best) highest.clear();
    best = score;
    highest.push_back(candidates[i]);
  }
  return highest[random_.Below(highest.size())];
}

}  // namespace berth::replay
