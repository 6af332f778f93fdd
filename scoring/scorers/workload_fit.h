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

#include <optional>
#include <span>
#include <string_view>

#include "scoring/scorer.h"
#include "scoring/scorers/fragmentation_gradient.h"
#include "scoring/waste/market.h"
#include "scoring/waste/pod_draws.h"
#include "scoring/waste/request_mix.h"

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

// ExpectedWaste: place where the GPU that will be left idle grows least.
//
//   cost = W(node after) - W(node before)            pod_draws.h, in GPUs
//        + price of the slots and models that it takes    market.h, in GPUs
//        + price of slots for pods of other kinds         market.h, in GPUs
//        + fragmentation * (F(node after) - F(node before))    fragmentation_gradient.h, in GPUs
//        + best_fit * (CPU left / 128 cores + GPU left / 8) / 2
//        + price of the CPU left, for a pod without GPU   market.h, in GPUs
//
// W grows if a placement leaves a remainder that the likely pods cannot use, and never falls. F
// measures the same for the very next pod, which is what counts if nodes change before they are
// full. The prices keep scarce goods of few nodes for the pods that need them, but only if more
// such pods will come than there are places. Slots for several GPUs and whole nodes always cost a
// little; best_fit packs where the other terms are equal; the last term packs the CPU where it is
// scarce. The raw score is -cost in steps of 0.005 GPU: below that the estimate is noise, and the
// profile's rule for ties decides.
class ExpectedWaste final : public Scorer {
 public:
  static constexpr int kPointsPerGpu = 200;

  ExpectedWaste(const RequestMix& mix, const Fleet& fleet, const WasteParameters& parameters);

  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;
  [[nodiscard]] Normalization normalization() const override { return Normalization::kBestFirst; }
  [[nodiscard]] const Market* market() const override { return &market_; }
  [[nodiscard]] std::uint64_t computed() const override { return potential_.computed(); }

 private:
  // What the state is worth less, in thousandths of a GPU.
  [[nodiscard]] double CostMilli(const GpuState& state, std::size_t group) const;

  const WastePotential potential_;
  const ScarcityMarket market_;
  const double fragmentation_weight_;
  std::optional<const FragmentationGradient> fragmentation_;  // where it counts
  const double best_fit_;
  const double cpu_price_;
};

// The largest node of the openb cluster: 128 cores, 8 GPUs. The published baselines scale by it.

constexpr int kLargestNodeCpuMilli = 128'000;
constexpr int kLargestNodeGpuMilli = 8'000;

}  // namespace berth
