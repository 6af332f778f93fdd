// SPDX-License-Identifier: Apache-2.0
//
// ExpectedWaste: place where the GPU that will be left idle grows least.
//
//   cost = W(node after) - W(node before)            waste_potential.h, in GPUs
//        + price of the slots and models that it takes    scarcity_market.h, in GPUs
//        + price of slots for pods of other kinds         slot_prior.h, in GPUs
//        + fragmentation * (F(node after) - F(node before))    fragmentation_gradient.h, in GPUs
//        + best_fit * (CPU left / 128 cores + GPU left / 8) / 2
//        + price of the CPU left, for a pod without GPU   cpu_price.h, in GPUs
//
// W grows if a placement leaves a remainder that the likely pods cannot use, and never falls. F
// measures the same for the very next pod, which is what counts if nodes change before they are
// full. The prices keep scarce goods of few nodes for the pods that need them, but only if more
// such pods will come than there are places. Slots for several GPUs and whole nodes always cost a
// little; best_fit packs where the other terms are equal; the last term packs the CPU where it is
// scarce. The raw score is -cost in steps of 0.005 GPU: below that the estimate is noise, and the
// profile's rule for ties decides.
#pragma once

#include <optional>

#include "scoring/scorer.h"
#include "scoring/scorers/fragmentation_gradient.h"
#include "scoring/waste/request_mix.h"
#include "scoring/waste/scarcity_market.h"
#include "scoring/waste/waste_parameters.h"
#include "scoring/waste/waste_potential.h"

namespace berth {

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

}  // namespace berth
