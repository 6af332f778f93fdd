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

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"
#include "scoring/scorer.h"
#include "scoring/waste/gpu_state.h"
#include "scoring/waste/market.h"
#include "scoring/waste/pod_draws.h"
#include "scoring/waste/request_mix.h"

namespace berth {

// LinkQuality and NumaLocality: prefer nodes on which a pod's GPUs are well linked.
//
//   link-quality   100 * quality of the set / that of the best set of its size in the machine
//                  (topology/links/set_table.h)
//   numa-locality  100 * fewest NUMA groups that so many GPUs of the machine can have / those that
//                  the set has
//
// Truncated. 100 for pods with fewer than two GPUs, and on nodes whose links are not known: these
// count as alike, as they do to the device picker.

class LinkQuality final : public Scorer {
 public:
  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;
};

class NumaLocality final : public Scorer {
 public:
  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;
};

// MigPacking: place MIG devices where GPUs lose the least of their remaining ways to be
// partitioned.
//
//   cost = 0.5 f             devices that there are (static): of use to nobody else
//        = 1 + loss + 0.001 f devices that are cut for the pod (dynamic); loss: of the plan
//                             (mig/mig_tables.h)
//   f    = the part of the node's cut GPUs that is free afterwards
//
// in GPUs, and the raw score is -cost in steps of 0.0005. So an existing instance takes precedence
// over creating one, and among equals the fullest node wins, so that others can be emptied and
// repartitioned. Applies only to pods with MIG devices.

class MigPacking final : public Scorer {
 public:
  static constexpr int kPointsPerGpu = 2000;

  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;
  [[nodiscard]] bool Applies(const RequestShape& shape) const override {
    return shape.mig() != nullptr;
  }
  [[nodiscard]] Normalization normalization() const override { return Normalization::kBestFirst; }
};

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
//        + fragmentation * (F(node after) - F(node before))    FragmentationGradient, in GPUs
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
