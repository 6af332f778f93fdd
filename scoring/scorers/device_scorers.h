// SPDX-License-Identifier: Apache-2.0
//
// LinkQuality and NumaLocality: prefer nodes on which a pod's GPUs are well linked.
//
//   link-quality   100 * quality of the set / that of the best set of its size in the machine
//                  (topology/links/set_table.h)
//   numa-locality  100 * fewest NUMA groups that so many GPUs of the machine can have / those that
//                  the set has
//
// Truncated. 100 for pods with fewer than two GPUs, and on nodes whose links are not known: these
// count as alike, as they do to the device picker.
#pragma once

#include <optional>

#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"
#include "scoring/scorer.h"

namespace berth {

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
//                             (mig/mig_plan.h)
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

// Power: place where the pod's own part of the estimated power adds least (below).
//
//   raw score = - OwnAddedWatts of that choice of devices
//
// so beside another scorer of absolute steps a watt has one price, whatever nodes there are. A node
// without known watts counts as one with the GPUs of the catalogue that add most: lack of a
// figure draws no pod.

// What a pod is taken to add on a node without known watts.
int UnknownWatts(const RequestShape& shape);

class Power final : public Scorer {
 public:
  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;
  [[nodiscard]] Normalization normalization() const override { return Normalization::kBestFirst; }
};

// Watts of a node, estimated from what is given to pods on it.
//
//   GPUs   busy watts of each with any compute given + idle watts of each other one
//   CPUs   busy watts of ceil(cores given / cores of a CPU) CPUs + idle watts of the others, where
//          two vCPUs are a core, cores given = all, rounded up, - free ones, rounded down
//
// with the figures of gpu_model.h; CPUs only where these are known. MIG devices are left out. The
// model of Lettich et al., "Power- and Fragmentation-aware Online Scheduling for GPU Datacenters",
// CCGrid 2025, with the rounding of their simulator (Fr4nz83/PWR-plugin-kubernetes).
//
// Pure functions.

// As it is. Nothing where the catalogue does not have the model of its GPUs, where it has no whole
// GPUs, and where its GPUs are parts of GPUs.
std::optional<int> EstimatedWatts(const Node& node);

// How many more with that pod on it. Nothing as above. Requires: the choice fits.
std::optional<int> AddedWatts(const Node& node, const RequestShape& shape,
                              const DeviceChoice& choice);

// The pod's own part of these: of each GPU that it is the first on the part that it gets, and of
// CPUs that it is the first on at most the part of the cores that it asks for. What else it adds
// will serve the pods that come after it.
std::optional<int> OwnAddedWatts(const Node& node, const RequestShape& shape,
                                 const DeviceChoice& choice);

}  // namespace berth
