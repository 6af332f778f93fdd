// SPDX-License-Identifier: Apache-2.0
#include "scoring/scorers/expected_waste.h"

#include <cmath>

#include "scoring/scorers/largest_node.h"
#include "scoring/waste/cpu_price.h"

namespace berth {

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
