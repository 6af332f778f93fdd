// SPDX-License-Identifier: Apache-2.0
//
// The policies with which papers compare their own, and the spreading of kube-scheduler. A program
// that is linked with them has them in its registry, beside those of the service: berth-replay, the
// benchmarks and the tests. Weng et al., "Beware of Fragmentation", USENIX ATC'23, has all but the
// last two.
#pragma once

#include "scoring/scorer.h"

namespace berth {

// BestFit: prefers the node on which least is left over.
//
//   raw = 100 * (1 - (CPU left / 128 cores + GPU left / 8) / 2), truncated; then min-max over the
//   nodes
//
// The baseline "BestFit" of Weng et al., "Beware of Fragmentation", USENIX ATC'23.
class BestFit final : public Scorer {
 public:
  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;
  [[nodiscard]] Normalization normalization() const override { return Normalization::kMinMax; }
};

// DotProduct: prefers the node whose free resources point least in the direction of the request.
//
//   score = 100 * (1 - (free . asked) / 2), truncated,   vectors (CPU / 128 cores, GPU / 8)
//
// The baseline "DotProd" of Weng et al., "Beware of Fragmentation", USENIX ATC'23, after Grandl et
// al., "Multi-resource packing for cluster schedulers", SIGCOMM'14.
class DotProduct final : public Scorer {
 public:
  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;
};

// GpuClustering: pods that ask for the same number of GPUs keep together.
//
//   score = 25 * (8 - free GPUs) / 8 + 75 where only pods of the same kind run
//                                    + 50 where such pods run among others
//                                    + 25 where no GPU pod runs
//                                    +  0 elsewhere, and 0 in all for a pod without GPU
//
// The kind is the number of whole GPUs, or "share". The baseline "GpuClustering" of Weng et al.,
// "Beware of Fragmentation", USENIX ATC'23.
class GpuClustering final : public Scorer {
 public:
  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;
};

// GpuPacking: fill GPUs that are shared already, then idle GPUs of nodes in use, then empty nodes.
//
//   GPUs in use suffice:  100 - sum(free % of the GPUs taken) / 10, at least 50
//   node in use:          50 - idle GPUs taken, at least 33
//   empty node:           33 - its GPUs, at least its GPUs
//   no GPU asked:         0
//
// The baseline "GpuPacking" of Weng et al., "Beware of Fragmentation", USENIX ATC'23.
class GpuPacking final : public Scorer {
 public:
  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;
};

// Spreading: prefers the node that stays emptiest.
//
//   score = 100 * mean over CPU, memory and (for a pod with GPUs) GPU compute of left / capacity,
//           each between 0 and 1; a resource that the node does not have has no part in the mean
//
// The strategy LeastAllocated of kube-scheduler's plugin NodeResourcesFit with equal weights
// (k8s.io/kubernetes pkg/scheduler/framework/plugins/noderesources/least_allocated.go), truncated
// once at the end instead of per resource.
class Spreading final : public Scorer {
 public:
  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;
};

// PWR as published: raw score = - AddedWatts of the best of the choices, whichever of them is
// taken; spread from 0 to 100 over the nodes that fit. It is weighed against fragmentation-gradient
// (FGD), which then chooses the devices.
//
// Lettich et al., "Power- and Fragmentation-aware Online Scheduling for GPU Datacenters", CCGrid
// 2025, with the integer score of their simulator (Fr4nz83/PWR-plugin-kubernetes).
class Pwr final : public Scorer {
 public:
  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;
  [[nodiscard]] Normalization normalization() const override { return Normalization::kMinMax; }
};

}  // namespace berth
