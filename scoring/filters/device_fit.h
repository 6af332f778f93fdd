// SPDX-License-Identifier: Apache-2.0
//
// The filters: can this node take a pod of this shape? Each answers kFits, or the first reason
// against it. A reason that no eviction resolves takes precedence over one that an eviction
// resolves. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cluster/node/node.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"
#include "scoring/reason.h"

namespace berth {

// The node can run new pods.
Reason CheckHealth(const Node& node, const RequestShape& shape);

// A pod gets GPUs of the resource that it asks for, if there are several, a pod that names GPU
// models (annotation berth.dev/gpu-model) gets one of those models, and one that names GPUs by
// their UUIDs gets these.
Reason CheckModel(const Node& node, const RequestShape& shape);

// The node has all traits that the pod's workload class requires, and none that it forbids.
Reason CheckTraits(const Node& node, const RequestShape& shape);

// CPU, memory and GPUs of the node suffice: those of the empty node, and then those that are free,
// so that no pod is evicted for a pod that would not fit afterwards.
Reason CheckFit(const Node& node, const RequestShape& shape);

// Whether its GPUs are virtual ones that run in turn with those of other machines on a GPU:
// "GRID-A100-10C". One on a MIG device has that for itself: "GRID-A100-2-10C".
bool IsVgpu(const NodeSpec& spec);

// Whether a node without GPUs may offer some by that resource: its labels show none but others'.
bool MayOfferAs(const NodeSpec& spec, std::string_view resource);
// What labels say of the GPUs of a resource of NodeSpec::other_gpus: "" / 0 = not known.
std::string OtherModel(const NodeSpec& spec, std::string_view resource);
std::int64_t OtherMemoryMib(const NodeSpec& spec, std::string_view resource);

// How far a pod's link requirements were met, in numbers: for logs and metrics. The answer of
// filter is the constant text of a reason (reason.h).

// "needs 4 linked GPUs; 4 free, largest linked set 2", "needs 4 GPUs of one NUMA group; 5 free, at
// most 3 of one", "needs a ring of 100 GB/s through 4 GPUs; 6 free, best ring 25 GB/s": the first
// requirement that is not met alone, else that they are not met together. "" if the node has such
// GPUs free, or the pod has no requirement.
std::string LinkShortage(const Node& node, const RequestShape& shape);

// The quality of the GPUs of the placement relative to the best idle ones (GpuLinks::quality),
// 0..1. nullopt for fewer than two GPUs or a share, and if the links are unknown. `node`: the node
// at the time of the decision.
std::optional<double> LinkQualityRatio(const Node& node, const Placement& placement);

}  // namespace berth
