// SPDX-License-Identifier: Apache-2.0
#include "bench/rules/kube_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace berth::replay {
namespace {

constexpr std::int64_t kMostPoints = 100;
constexpr int kPointsPerPriority = 10;
constexpr int kGpuWeight = 5;  // of MostAllocated

struct Use {
  std::int64_t requested;  // with the pod
  std::int64_t allocatable;

  [[nodiscard]] std::int64_t FreePoints() const {
    if (allocatable <= 0 || requested > allocatable) return 0;
    return (allocatable - requested) * kMostPoints / allocatable;
  }
  [[nodiscard]] std::int64_t UsedPoints() const {
    if (allocatable <= 0) return 0;
    return std::min(requested, allocatable) * kMostPoints / allocatable;
  }
  [[nodiscard]] double Part() const {
    if (allocatable <= 0) return 1;
    return std::min(static_cast<double>(requested) / static_cast<double>(allocatable), 1.0);
  }
};

Use GpusOf(const Node& node, const RequestShape& pod) {
  const auto capacity = static_cast<std::int64_t>(node.spec().gpus.size()) * kMilliPerGpu;
  const std::int64_t asked = std::int64_t{pod.milli_per_gpu()} * pod.gpu_count();
  return {capacity - node.free_gpu_milli() + asked, capacity};
}

std::int64_t MostAllocated(const Use& cpu, const Use& memory, const Node& node,
                           const RequestShape& pod) {
  std::int64_t points = cpu.UsedPoints() + memory.UsedPoints();
  if (!pod.wants_gpu()) return points / 2;
  points += kGpuWeight * GpusOf(node, pod).UsedPoints();
  return points / (2 + kGpuWeight);
}

}  // namespace

std::int64_t KubeChoice::OwnScore(const Node& node, const RequestShape& pod,
                                  KubeStrategy strategy) {
  const NodeSpec& spec = node.spec();
  const Use cpu{spec.cpu_milli - node.free_cpu_milli() + pod.cpu_milli, spec.cpu_milli};
  const Use memory{spec.memory_bytes - node.free_memory_bytes() + pod.memory_bytes,
                   spec.memory_bytes};
  const std::int64_t fit = strategy == KubeStrategy::kMostAllocated
                               ? MostAllocated(cpu, memory, node, pod)
                               : (cpu.FreePoints() + memory.FreePoints()) / 2;
  const double deviation = std::abs(cpu.Part() - memory.Part()) / 2;
  return fit + static_cast<std::int64_t>((1 - deviation) * double(kMostPoints));
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
