// SPDX-License-Identifier: Apache-2.0
#include "bench/rules/kube_choice.h"

#include <limits>
#include <vector>

#include "scoring/victims.h"

namespace berth::replay {
namespace {

constexpr int kPointsPerPriority = 10;
constexpr int kGpuWeight = 5;  // of MostAllocated

ResourceUse GpusOf(const Node& node, const RequestShape& pod) {
  const auto capacity = static_cast<std::int64_t>(node.spec().gpus.size()) * kMilliPerGpu;
  const std::int64_t asked = std::int64_t{pod.milli_per_gpu()} * pod.gpu_count();
  return {capacity - node.free_gpu_milli() + asked, capacity};
}

std::int64_t UsedPoints(const ResourceUse& use) {
  if (use.allocatable <= 0) return 0;
  return std::min(use.requested, use.allocatable) * 100 / use.allocatable;
}

std::int64_t MostAllocated(const ResourceUse& cpu, const ResourceUse& memory, const Node& node,
                           const RequestShape& pod) {
  std::int64_t points = UsedPoints(cpu) + UsedPoints(memory);
  if (!pod.wants_gpu()) return points / 2;
  points += kGpuWeight * UsedPoints(GpusOf(node, pod));
  return points / (2 + kGpuWeight);
}

}  // namespace

std::int64_t KubeChoice::OwnScore(const Node& node, const RequestShape& pod,
                                  KubeStrategy strategy) {
  const ResourceUse cpu = CpuUse(node, pod), memory = MemoryUse(node, pod);
  const std::int64_t fit = strategy == KubeStrategy::kMostAllocated
                               ? MostAllocated(cpu, memory, node, pod)
                               : (cpu.free_points() + memory.free_points()) / 2;
  return fit + BalancePoints(cpu, memory);
}

NodeIndex KubeChoice::Choose(const Snapshot& snapshot, const RequestShape& pod,
                             std::span<const NodeIndex> candidates,
                             std::span<const std::uint8_t> priorities) {
  std::int64_t best = std::numeric_limits<std::int64_t>::min();
  std::vector<NodeIndex> highest;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::int64_t score = std::int64_t{priorities[i]} * weight_ * kPointsPerPriority +
                               OwnScore(snapshot.node(candidates[i]), pod, strategy_);
    if (score < best) continue;
    if (score > best) highest.clear();
    best = score;
    highest.push_back(candidates[i]);
  }
  return highest[random_.Below(highest.size())];
}

}  // namespace berth::replay
