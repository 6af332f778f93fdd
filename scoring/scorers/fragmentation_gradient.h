// SPDX-License-Identifier: Apache-2.0
//
// FragmentationGradient: place where the GPU that the likely pods cannot use grows least (FGD).
//
// For a node with free CPU C and free GPU shares R_1..R_G (R in all), and a class m of the request
// mix (CPU c, k GPUs, share d of each, weight p_m, sum p_m = 1), the fragment F(m) is
//
//   all of R                     if m asks for no GPU, or its models are not here, or it does not
//   fit the sum of the R_g < d       if it fits (at least k GPUs with R_g >= d, and C >= c)
//
//   F = sum_m p_m F(m)           score = 100 * sigmoid(F before - F after, in GPUs), truncated
//
// Memory is not in the metric. With a CardWorth that counts it, it is, and that is ours: R_g is the
// worth of what is free, and a GPU that has too little of either is one with too little.
//
// Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing
// Workloads with Fragmentation Gradient Descent", USENIX ATC'23, section 3, with the integer score
// of their simulator (hkust-adsl/kubernetes-scheduler-simulator): the ties that it makes are part
// of the policy.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "scoring/scorer.h"
#include "scoring/waste/gpu_state.h"
#include "scoring/waste/pod_draws.h"
#include "scoring/waste/request_mix.h"

namespace berth {

class FragmentationGradient final : public Scorer {
 public:
  explicit FragmentationGradient(const RequestMix& mix, const CardWorth& worth = {});

  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;

  // F in thousandths of a GPU. `group`: of the node's GPU model, as ModelGroups numbers those of
  // the mix. Requires: a state of worth.StateOf.
  [[nodiscard]] double FragmentMilli(const GpuState& state, std::size_t group) const;
  [[nodiscard]] double FragmentMilli(const Node& node) const;  // as it is

 private:
  struct Class {
    std::int64_t cpu_milli;
    int gpus;
    int milli;
    std::int64_t memory_mib;  // of a share that says it; else 0
    double weight;
  };
  [[nodiscard]] double Compute(const GpuState& state, std::size_t group) const;
  [[nodiscard]] double ComputeWithMemory(const GpuState& state, std::size_t group) const;

  std::vector<Class> classes_;
  const ModelGroups groups_;
  const CardWorth worth_;
  // Most decisions meet states that were computed before: a decision costs half with it.
  const std::unique_ptr<StateMemo> memo_;
};

}  // namespace berth
