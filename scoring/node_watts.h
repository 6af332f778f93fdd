// SPDX-License-Identifier: Apache-2.0
//
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
#pragma once

#include <optional>

#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"
#include "scoring/scorer.h"

namespace berth {

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
