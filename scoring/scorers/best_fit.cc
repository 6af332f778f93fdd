// SPDX-License-Identifier: Apache-2.0
#include "scoring/scorers/best_fit.h"

#include "scoring/scorers/largest_node.h"

namespace berth {

void BestFit::Score(const Node& node, const RequestShape& shape,
                    std::span<const DeviceChoice> choices, std::span<int> scores) const {
  const auto free_gpu = static_cast<double>(node.free_gpu_milli());
  const auto cpu_left = static_cast<double>(node.free_cpu_milli() - shape.cpu_milli);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const double gpu_left = free_gpu - choices[i].milli * shape.gpu_count();
    const double left =
        cpu_left / kLargestNodeCpuMilli * 0.5 + gpu_left / kLargestNodeGpuMilli * 0.5;
    scores[i] = static_cast<int>((1.0 - left) * kMaxScore);
  }
}

}  // namespace berth
