// SPDX-License-Identifier: Apache-2.0
#include "scoring/node_watts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "topology/gpu_mask.h"
#include "topology/gpu_model.h"

namespace berth {
namespace {

constexpr std::int64_t kMilliPerCore = 2000;  // two vCPUs

const GpuPower* PowerOf(const NodeSpec& spec) {
  return spec.gpus.empty() || spec.gpus_are_parts ? nullptr : FindGpuPower(spec.gpu_model);
}

std::int64_t CeilOfRatio(std::int64_t amount, std::int64_t unit) {
  return (amount + unit - 1) / unit;
}

int CpuWatts(const CpuPower& cpu, std::int64_t all_milli, std::int64_t free_milli) {
  const std::int64_t cores = CeilOfRatio(all_milli, kMilliPerCore);
  const std::int64_t given = std::clamp<std::int64_t>(cores - free_milli / kMilliPerCore, 0, cores);
  const std::int64_t cpus = CeilOfRatio(cores, cpu.cores), busy = CeilOfRatio(given, cpu.cores);
  return static_cast<int>(cpu.busy_watts * busy + cpu.idle_watts * (cpus - busy));
}

// How many GPUs the choice takes that nobody uses.
int StartedGpus(const Node& node, const DeviceChoice& choice) {
  int started = 0;
  ForEachGpu(choice.gpus, [&](int gpu) {
    started += node.gpus()[static_cast<std::size_t>(gpu)].idle() ? 1 : 0;
  });
  return started;
}

int AddedCpuWatts(const GpuPower& power, const Node& node, const RequestShape& shape) {
  if (power.cpu == nullptr) return 0;
  const std::int64_t all = node.spec().cpu_milli, free = node.free_cpu_milli();
  return CpuWatts(*power.cpu, all, free - shape.cpu_milli) - CpuWatts(*power.cpu, all, free);
}

int CpuPartWatts(const GpuPower& power, const RequestShape& shape) {
  if (power.cpu == nullptr) return 0;
  const std::int64_t of_cpu = power.cpu->busy_watts - power.cpu->idle_watts;
  return static_cast<int>(of_cpu * shape.cpu_milli / (power.cpu->cores * kMilliPerCore));
}

}  // namespace

std::optional<int> EstimatedWatts(const Node& node) {
  const GpuPower* const power = PowerOf(node.spec());
  if (power == nullptr) return std::nullopt;
  int watts = 0;
  for (const GpuFree& gpu : node.gpus())
    watts += gpu.idle() ? power->idle_watts : power->busy_watts;
  if (power->cpu == nullptr) return watts;
  return watts + CpuWatts(*power->cpu, node.spec().cpu_milli, node.free_cpu_milli());
}

std::optional<int> AddedWatts(const Node& node, const RequestShape& shape,
                              const DeviceChoice& choice) {
  const GpuPower* const power = PowerOf(node.spec());
  if (power == nullptr) return std::nullopt;
  return StartedGpus(node, choice) * (power->busy_watts - power->idle_watts) +
         AddedCpuWatts(*power, node, shape);
}

std::optional<int> OwnAddedWatts(const Node& node, const RequestShape& shape,
                                 const DeviceChoice& choice) {
  const GpuPower* const power = PowerOf(node.spec());
  if (power == nullptr) return std::nullopt;
  const int of_gpu = (power->busy_watts - power->idle_watts) * choice.milli / kMilliPerGpu;
  return StartedGpus(node, choice) * of_gpu +
         std::min(AddedCpuWatts(*power, node, shape), CpuPartWatts(*power, shape));
}

}  // namespace berth
