// SPDX-License-Identifier: Apache-2.0
#include "scoring/scorers/dot_product.h"

#include <algorithm>

#include "scoring/scorers/largest_node.h"

namespace berth {

void DotProduct::Score(const Node& node, const RequestShape& shape,
                       std::span<const DeviceChoice> choices, std::span<int> scores) const {
  const double free_cpu = static_cast<double>(node.free_cpu_milli()) / kLargestNodeCpuMilli;
  const double free_gpu = static_cast<double>(node.free_gpu_milli()) / kLargestNodeGpuMilli;
  const double cpu = static_cast<double>(shape.cpu_milli) / kLargestNodeCpuMilli;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const double gpu =
        static_cast<double>(choices[i].milli * shape.gpu_count()) / kLargestNodeGpuMilli;
    const double product = free_cpu * cpu + free_gpu * gpu;
    // Nodes beyond 128 cores or 8 GPUs can leave 0..1.
    scores[i] = std::clamp(static_cast<int>(kMaxScore * (1 - product / 2)), 0, kMaxScore);
  }
}

}  // namespace berth
