// SPDX-License-Identifier: Apache-2.0
#include "scoring/scorers/expected_waste.h"

#include <cmath>

#include "scoring/scorers/largest_node.h"

namespace berth {

ExpectedWaste::ExpectedWaste(const RequestMix& mix, const Fleet& fleet,
                             const WasteParameters& parameters)
    : potential_(mix, fleet, parameters),
      market_(mix, potential_.groups(), fleet, parameters, kPointsPerGpu),
      fragmentation_weight_(parameters.fragmentation),
      best_fit_(parameters.best_fit) {
  if (fragmentation_weight_ > 0) fragmentation_.emplace(mix);
}

double ExpectedWaste::CostMilli(const GpuState& state, std::size_t group) const {
  const double waste = potential_.WasteMilli(state, group);
  if (!fragmentation_) return waste;
  return waste + fragmentation_weight_ * fragmentation_->FragmentMilli(state, group);
}

void ExpectedWaste::Score(const Node& node, const RequestShape& shape,
                          std::span<const DeviceChoice> choices, std::span<int> scores) const {
  const GpuState before(node);
  const std::size_t group = potential_.groups().GroupOf(node.spec().gpu_model);
  const double cost_before = CostMilli(before, group);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const GpuState after = before.After(node, shape, choices[i]);
    const double grown = (CostMilli(after, group) - cost_before) / kMilliPerGpu;
    const double left = static_cast<double>(after.cpu_milli) / kLargestNodeCpuMilli +
                        static_cast<double>(after.total) / kLargestNodeGpuMilli;
    scores[i] = -static_cast<int>(std::lround((grown + best_fit_ * left / 2) * kPointsPerGpu));
  }
}

}  // namespace berth
