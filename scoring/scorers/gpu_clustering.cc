// SPDX-License-Identifier: Apache-2.0
#include "scoring/scorers/gpu_clustering.h"

#include <algorithm>

#include "scoring/scorers/largest_node.h"

namespace berth {
namespace {

constexpr int kTier = kMaxScore / 4;

int TierOf(const Node& node, const RequestShape& shape) {
  const int kind = shape.is_share() ? 0 : shape.gpu_count();
  if (node.tenants().empty()) return 1;
  if (std::ranges::find(node.tenants(), kind, &Tenants::gpus) == node.tenants().end()) return 0;
  return node.tenants().size() == 1 ? 3 : 2;
}

}  // namespace

void GpuClustering::Score(const Node& node, const RequestShape& shape,
                          std::span<const DeviceChoice>, std::span<int> scores) const {
  int score = 0;
  if (shape.wants_gpu() && shape.mig() == nullptr) {
    // A node with more than 8 GPUs has at least this much free: 0 of its tier.
    const std::int64_t used =
        std::max<std::int64_t>(kLargestNodeGpuMilli - node.free_gpu_milli(), 0);
    score = static_cast<int>(std::min<std::int64_t>(kTier * used / kLargestNodeGpuMilli, kTier)) +
            kTier * TierOf(node, shape);
  }
  std::ranges::fill(scores, score);
}

}  // namespace berth
