// SPDX-License-Identifier: Apache-2.0
//
// GpuPower: what GPUs, and the CPUs beside them, draw when nobody uses them and when somebody does.
//
// The figures are for estimates that compare placements, and no measurements of a cluster: a GPU
// counts as busy as soon as a pod has any of it. A model is named as its node publishes it
// (gpu_vendor.h).
//
// Thread-safe: constant data.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"
#include "scoring/scorer.h"

namespace berth {

struct CpuPower {
  std::string_view name;
  int idle_watts;  // of one CPU (a socket) without a core given to a pod
  int busy_watts;  // of one with any core given
  int cores;       // physical; two vCPUs each
  std::string_view source;
};

struct GpuPower {
  std::string_view name;
  int idle_watts;       // of one GPU
  int busy_watts;       // > idle_watts
  const CpuPower* cpu;  // of the machines with such GPUs; nullptr: not known
  std::string_view source;
};

// All rows, sorted by name.
std::span<const GpuPower> GpuPowerCatalogue();

// The row of that name (exact match), or nullptr.
const GpuPower* FindGpuPower(std::string_view name);

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
// with the figures of gpu_vendor.h; CPUs only where these are known. MIG devices are left out. The
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
