// SPDX-License-Identifier: Apache-2.0
#include "scoring/scorers/device_scorers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "scoring/mig/mig_plan.h"
#include "topology/gpu_mask.h"
#include "topology/gpu_model.h"
#include "topology/links/set_table.h"

namespace berth {

namespace {

bool AllAlike(const Node& node, const RequestShape& shape) {
  return shape.gpu_count() < 2 || !node.spec().links.known();
}

// In GPUs.
constexpr double kEmptyStatic = 0.5;
constexpr double kCutting = 1;
constexpr double kEmptyDynamic = 0.001;

// The part of the node's partitioned GPUs that is free once the slots are taken.
double FreePart(const MigSpec& spec, const MigUse& use, std::span<const MigSlot> slots) {
  MigUse after = use;
  for (const MigSlot& slot : slots) after.Take(slot);
  const int units = spec.product->memory_units();
  int taken = 0;
  for (const MigSet set : after.taken()) taken += std::popcount(spec.product->UnitsOf(set));
  return 1 - taken / static_cast<double>(units * std::ssize(spec.gpus));
}

double CostOf(const Node& node, const MigSlices& ask) {
  const MigSpec& spec = *node.spec().mig;
  if (spec.gpus.empty()) return 0;  // devices with several users, or each device a GPU
  const auto plan = PlanMig(spec, node.mig(), ask);
  if (!plan || plan->slots.empty()) return 0;
  const double free = FreePart(spec, node.mig(), plan->slots);
  return spec.dynamic ? kCutting + plan->loss_gpus + kEmptyDynamic * free : kEmptyStatic * free;
}

int MostThatAGpuAdds() {
  int most = 0;
  for (const GpuPower& row : GpuPowerCatalogue()) {
    most = std::max(most, row.busy_watts - row.idle_watts);
  }
  return most;
}

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

void LinkQuality::Score(const Node& node, const RequestShape& shape,
                        std::span<const DeviceChoice> choices, std::span<int> scores) const {
  for (std::size_t i = 0; i < choices.size(); ++i) {
    scores[i] = AllAlike(node, shape)
                    ? kMaxScore
                    : node.spec().links.quality(choices[i].gpus) * kMaxScore / kPerfect;
  }
}

void NumaLocality::Score(const Node& node, const RequestShape& shape,
                         std::span<const DeviceChoice> choices, std::span<int> scores) const {
  const bool alike = AllAlike(node, shape);
  const int least = alike ? 1 : node.spec().links.LeastSpan(shape.gpu_count());
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const int used = alike ? 1 : node.spec().links.span(choices[i].gpus);
    scores[i] = kMaxScore * least / used;
  }
}

void MigPacking::Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice>,
                       std::span<int> scores) const {
  const double cost = shape.mig() == nullptr ? 0 : CostOf(node, *shape.mig());
  std::ranges::fill(scores, -static_cast<int>(std::lround(cost * kPointsPerGpu)));
}

int UnknownWatts(const RequestShape& shape) {
  static const int of_gpu = MostThatAGpuAdds();
  return shape.wants_gpu() ? of_gpu * std::max(shape.gpu_count(), 1) : 0;
}

void Power::Score(const Node& node, const RequestShape& shape,
                  std::span<const DeviceChoice> choices, std::span<int> scores) const {
  const int unknown = UnknownWatts(shape);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    scores[i] = -OwnAddedWatts(node, shape, choices[i]).value_or(unknown);
  }
}

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
