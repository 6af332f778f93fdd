// SPDX-License-Identifier: Apache-2.0
//
// DevicePicker: the devices of one node that a pod could get. Filter, prioritize and bind all use
// it, so that the scored devices are the bound ones. Pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/node/gpu_division.h"
#include "cluster/node/node.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"
#include "scoring/profile_spec.h"
#include "scoring/scorer.h"
#include "topology/gpu_mask.h"

namespace berth {

// AlignedGpus: whole GPUs on a node whose Topology Manager limits which of them a container gets
// (cluster/node/topology_manager.h). What Berth plans is among those that the kubelet will offer:
// without an agent that carries plans out it takes others of the same NUMA node, and the books are
// right about how many are left in each; with one it takes these. Pure functions.

struct AlignedChoice {
  bool admits = false;  // whether the kubelet takes a pod of that shape, whatever else it needs
  GpuMask gpus = 0;     // 0: none that suit the pod
};

// The GPUs that the pod gets while `free` ones are; of those that suit it: `suiting`, which are
// free, its links, and its neighbours as in ChooseSuiting. With several containers they are chosen
// one container after the other, and all sets are examined only if what comes of it does not suit
// the pod (up to 8 free GPUs). Requires: KubeletLimits.
AlignedChoice ChooseAligned(const Node& node, GpuMask free, GpuMask suiting,
                            const RequestShape& shape, std::span<const GpuMask> tenants = {});

// The GPUs of `free` from which the kubelet gives the pod some: with several containers, all of
// `free` if they are admitted. 0: it refuses the pod. Requires: KubeletLimits.
GpuMask AlignedGpus(const NodeSpec& spec, GpuMask free, const RequestShape& shape);

// Whether the kubelet would refuse the pod even if all of these GPUs were free. Requires:
// KubeletLimits.
bool NeverAdmits(const NodeSpec& spec, GpuMask gpus, const RequestShape& shape);

// "needs 6 in one NUMA node (Topology Manager policy single-numa-node; at most 4 idle in one)".
// Requires: KubeletLimits.
std::string AlignmentText(const NodeSpec& spec, GpuMask free, const RequestShape& shape);

// RequestShape::gpu_resource of whole GPUs that a pod gets by its own ResourceClaims: where
// kube-scheduler picks whole GPUs, Berth chooses these all the same (claims/claim_choice.h).
inline constexpr std::string_view kOfClaims = "resourceclaims";

// What a share, for all containers together or only that part of it, takes of GPU `gpu` of this
// node: both amounts filled in, the open one in proportion. Empty if the GPU can never hold it:
// unhealthy, too small, asked by memory that is unknown, or not accepted by its UUID. Requires:
// shape.is_share().
std::optional<DeviceChoice> ShareOn(const Node& node, int gpu, const RequestShape& shape,
                                    const GpuShare* part = nullptr);

// Whether GPU `gpu` can be given whole now: it is open, and no pod has any of its compute or
// memory.
bool IsIdle(const Node& node, int gpu);

// The GPUs that are idle.
GpuMask IdleGpus(const Node& node);

// Whether the model or the compute capability of each of the node's GPUs counts for the pod.
bool JudgesKinds(const NodeSpec& spec, const RequestShape& shape);

// "1 L4 (8.9), 2 A10 (8.6)", and that the device plugin picks where that matters. Requires:
// JudgesKinds.
std::string KindsText(const NodeSpec& spec, const RequestShape& shape);

// The GPUs that the pod accepts by their UUIDs (RequestShape::gpu_rules), models, compute
// capabilities and memory, and that Berth can give it: none where pods get parts of GPUs, which
// have other UUIDs, and none where the device plugin picks whole GPUs and may pick another one.
// Where kube-scheduler picks, of those that the pod's resource stands for.
GpuMask AcceptedGpus(const NodeSpec& spec, const RequestShape& shape);

// Whether a pod gets the GPUs that Berth chose: an agent hands them out, or carries the choice out.
bool GivesTheVeryGpu(const NodeSpec& spec);

// Whether it matters to the pod which GPUs it gets, by its links or its neighbours, and the node's
// device plugin makes the choice: what Berth chooses is a plan.
bool IsPlanOnly(const NodeSpec& spec, const RequestShape& shape);

// The GPUs that the pod, or a container that may have others than the rest, could get now, wholly
// or a share of one; none where the node's Topology Manager would refuse it (NeverAdmits). Where
// kube-scheduler picks whole GPUs, the very ones that it will take, or those that there are if
// these are too few; of them those that the pod accepts.
GpuMask FreeGpus(const Node& node, const RequestShape& shape);

// The holders of the GPUs that are not in `idle`. Pods that share GPUs count as one holder, which
// leaves with the last of them.
std::vector<GpuMask> HoldersOf(const Node& node, GpuMask idle);

// Whether GPU `gpu` has that much free now for a pod of the shape.
bool HasFree(const Node& node, int gpu, const DeviceChoice& choice, const RequestShape& shape);

// The number of the node's GPUs for a pod that asks for MIG devices without naming a profile, on a
// node on which each device counts as a GPU (MigSpec::single) and is large enough; else 0.
int GpusInsteadOfMig(const Node& node, const RequestShape& shape);

// The choices worth scoring; of shares they are those of container_shares.h. Empty if the pod does
// not fit. One empty choice for a pod without GPU, for one with MIG devices (mig/mig_tables.h
// decides which it gets), and for one that gets a place on GPUs with several users.
std::vector<DeviceChoice> DeviceChoices(const Node& node, const RequestShape& shape,
                                        DeviceRule rule);

// How many pods of the shape fit by their GPUs, `count` whole ones each, one after the other.
// Requires: count > 0.
int WholeChoicesInTurn(const Node& node, int count, const RequestShape& shape);

// The choice that became these grants.
DeviceChoice ChoiceOf(const Node& node, std::span<const DeviceGrant> grants);

// The placement of a choice.
Placement PlacementFor(const Node& node, const RequestShape& shape, const DeviceChoice& choice);

}  // namespace berth
