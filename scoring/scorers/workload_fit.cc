// SPDX-License-Identifier: Apache-2.0
#include "scoring/scorers/workload_fit.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace berth {
namespace {

constexpr double kSlicesPerGpu = 7;
constexpr double kMostPoints = 1e6;

double MigGpus(const MigSlices& ask) {
  double slices = 0;
  for (const MigWant& want : ask.wants) {
    const int each = want.profile ? want.profile->compute_slices : want.min_slices;
    slices += want.count * std::max(each, 1);
  }
  return slices / kSlicesPerGpu;
}

double GpusTaken(const RequestShape& shape, const DeviceChoice& choice) {
  if (choice.gpus != 0) return std::popcount(choice.gpus) * choice.milli / double{kMilliPerGpu};
  if (const MigSlices* const mig = shape.mig()) return MigGpus(*mig);
  return shape.gpu_count();
}

}  // namespace

double WorthPerGpu(const NodeSpec& spec, std::span<const TraitWish> wishes) {
  double percent = 0;
  for (const TraitWish& wish : wishes) {
    if (wish.trait == kPriceWish) {
      percent -= wish.weight * spec.gpu_price;
    } else if (HasTrait(spec.traits, wish.trait)) {
      percent += wish.weight;
    }
  }
  return percent / 100;
}

double GpusTakenAnywhere(const RequestShape& shape) {
  return shape.gpu_count() * shape.milli_per_gpu() / double{kMilliPerGpu};
}

int PointsOf(double worth_per_gpu, double gpus) {
  const double points = worth_per_gpu * gpus * ExpectedWaste::kPointsPerGpu;
  return static_cast<int>(std::lround(std::clamp(points, -kMostPoints, kMostPoints)));
}

void WorkloadFit::Score(const Node& node, const RequestShape& shape,
                        std::span<const DeviceChoice> choices, std::span<int> scores) const {
  const double worth = WorthPerGpu(node.spec(), shape.nodes.wishes);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    scores[i] = PointsOf(worth, GpusTaken(shape, choices[i]));
  }
}

ExpectedWaste::ExpectedWaste(const RequestMix& mix, const Fleet& fleet,
                             const WasteParameters& parameters)
    : potential_(mix, fleet, parameters),
      market_(mix, potential_.groups(), fleet, parameters, kPointsPerGpu, potential_.worth()),
      fragmentation_weight_(parameters.fragmentation),
      best_fit_(parameters.best_fit),
      cpu_price_(CpuPriceOf(mix, fleet)) {
  if (fragmentation_weight_ > 0) fragmentation_.emplace(mix, potential_.worth());
}

double ExpectedWaste::CostMilli(const GpuState& state, std::size_t group) const {
  const double waste = potential_.WasteMilli(state, group);
  if (!fragmentation_) return waste;
  return waste + fragmentation_weight_ * fragmentation_->FragmentMilli(state, group);
}

void ExpectedWaste::Score(const Node& node, const RequestShape& shape,
                          std::span<const DeviceChoice> choices, std::span<int> scores) const {
  const GpuState before = potential_.worth().StateOf(node);
  const std::size_t group = potential_.groups().GroupOf(node.spec().gpu_model);
  const double cost_before = CostMilli(before, group);
  const double cpu_price = shape.wants_gpu() || before.count == 0 ? 0 : cpu_price_;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const GpuState after = before.After(node, shape, choices[i]);
    const double grown = (CostMilli(after, group) - cost_before) / kMilliPerGpu;
    const double cpu_left = static_cast<double>(after.cpu_milli) / kLargestNodeCpuMilli;
    const double left = cpu_left + static_cast<double>(after.total) / kLargestNodeGpuMilli;
    const double cost = grown + best_fit_ * left / 2 + cpu_price * cpu_left;
    scores[i] = -static_cast<int>(std::lround(cost * kPointsPerGpu));
  }
}

}  // namespace berth
