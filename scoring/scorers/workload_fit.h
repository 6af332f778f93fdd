// SPDX-License-Identifier: Apache-2.0
//
// WorkloadFit: prefer the nodes that the pod's workload class wishes for (RequestShape::nodes).
//
//   worth = GPUs that the pod takes
//         * (sum of weights of the wished traits that the node has - weight of price * its price)
//         / 100
//
// In GPUs, as the cost of ExpectedWaste and in the same steps: side by side with equal weights in a
// profile, a wish of weight 100 is worth as much as GPUs that stay idle, as many as the pod takes.
// A node without a known price counts as one that costs nothing.
//
// Of a MIG device one seventh of a GPU is taken for each slice of compute, at least one.
#pragma once

#include <span>
#include <string_view>

#include "scoring/scorer.h"

namespace berth {

// Its name in profiles.
inline constexpr std::string_view kWorkloadClassScorer = "workload-class";

// Of one GPU that the pod takes on such a node, in GPUs.
[[nodiscard]] double WorthPerGpu(const NodeSpec& spec, std::span<const TraitWish> wishes);

// How many GPUs pods of that shape take on every node; 0 where it depends on the node.
[[nodiscard]] double GpusTakenAnywhere(const RequestShape& shape);

// The score of so many GPUs.
[[nodiscard]] int PointsOf(double worth_per_gpu, double gpus);

class WorkloadFit final : public Scorer {
 public:
  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;
  [[nodiscard]] bool Applies(const RequestShape& shape) const override {
    return !shape.nodes.wishes.empty();
  }
  [[nodiscard]] Normalization normalization() const override { return Normalization::kBestFirst; }
};

}  // namespace berth
