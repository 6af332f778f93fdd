// SPDX-License-Identifier: Apache-2.0
#include "scoring/scorers/expected_waste.h"

#include <cmath>

#include "scoring/scorers/largest_node.h"

namespace berth {

ExpectedWaste::ExpectedWaste(const RequestMix& mix, const Fleet& fleet,
                             const WasteParameters& parameters)
    : potential_(mix, fleet, parameters),
      market_(mix, potential_.groups(), fleet, parameters, kPointsPerGpu),
      best_fit_(parameters.best_fit) {}

void ExpectedWaste::Score(const Node& node, const RequestShape& shape,
                          std::span<const DeviceChoice> choices, std::span<int> scores) const {
  const GpuState before(node);
  const std::size_t group = potential_.groups().GroupOf(node.spec().gpu_model);
  const double waste_before = potential_.WasteMilli(before, group);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const GpuState after = before.After(node, shape, choices[i]);
    const double grown = (potential_.WasteMilli(after, group) - waste_before) / kMilliPerGpu;
    const double left = static_cast<double>(after.cpu_milli) / kLargestNodeCpuMilli +
                        static_cast<double>(after.total) / kLargestNodeGpuMilli;
    scores[i] = -static_cast<int>(std::lround((grown + best_fit_ * left / 2) * kPointsPerGpu));
  }
}

}  // namespace berth
