// SPDX-License-Identifier: Apache-2.0
#include "scoring/scheduler_score.h"

#include <algorithm>
#include <cmath>

namespace berth {
namespace {

constexpr std::int64_t kFullPoints = 100;
// Of a container that asks for none (pkg/scheduler/util/pod_resources.go).
constexpr std::int64_t kCpuMilli = 100, kMemoryBytes = std::int64_t{200} << 20;

// How much more counts for the pod than it asks for.
std::int64_t Unasked(const PodRequest& pod, std::int64_t asked, std::int64_t of_container) {
  return asked > 0 ? 0 : of_container * std::max(pod.container_count, 1);
}

}  // namespace

std::int64_t ResourceUse::free_points() const {
  if (allocatable <= 0 || requested > allocatable) return 0;
  return (allocatable - requested) * kFullPoints / allocatable;
}

std::int64_t ResourceUse::used_points() const {
  if (allocatable <= 0) return 0;
  return std::min(requested, allocatable) * kFullPoints / allocatable;
}

double ResourceUse::part() const {
  if (allocatable <= 0) return 1;
  return std::min(static_cast<double>(requested) / static_cast<double>(allocatable), 1.0);
}

ResourceUse CpuUse(const Node& node, const RequestShape& pod) {
  const std::int64_t all = node.spec().cpu_milli;
  return {all - node.free_cpu_milli() + pod.cpu_milli, all};
}

ResourceUse MemoryUse(const Node& node, const RequestShape& pod) {
  const std::int64_t all = node.spec().memory_bytes;
  return {all - node.free_memory_bytes() + pod.memory_bytes, all};
}

std::int64_t BalancePoints(const ResourceUse& cpu, const ResourceUse& memory) {
  const double deviation = std::abs(cpu.part() - memory.part()) / 2;
  return static_cast<std::int64_t>((1 - deviation) * static_cast<double>(kFullPoints));
}

std::int64_t SchedulerScore(const Node& node, const PodRequest& pod) {
  const ResourceUse cpu = CpuUse(node, pod.shape), memory = MemoryUse(node, pod.shape);
  ResourceUse counted_cpu = cpu, counted_memory = memory;
  const auto count = [&](const PodRequest& of) {
    counted_cpu.requested += Unasked(of, of.shape.cpu_milli, kCpuMilli);
    counted_memory.requested += Unasked(of, of.shape.memory_bytes, kMemoryBytes);
  };
  count(pod);
  for (const auto& record : node.pods()) count(record->pod);
  return (counted_cpu.free_points() + counted_memory.free_points()) / 2 +
         BalancePoints(cpu, memory);
}

}  // namespace berth
