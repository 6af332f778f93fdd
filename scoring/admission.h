// SPDX-License-Identifier: Apache-2.0
//
// Admission: may the pod use this node at all - taints, node selector, required node
// affinity, versions, what the node's kubelet refused?
// Separate from the filters, because pods of one shape differ in it. kube-scheduler checks the same
// before it asks Berth, but for what was refused; the replay and Berth's own plans have no other
// check.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cluster/node/node.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"
#include "scoring/profile_spec.h"
#include "scoring/reason.h"

namespace berth {

// kFits, kTaintNotTolerated, kAskRefused, kNodeNotSelected, or that the versions are not what the
// pod needs.
Reason Admits(const NodeSpec& node, const PodRequest& pod);

// kFits, or which version of the node is not what the pod needs.
Reason VersionReason(const NodeSpec& node, const PodRequest& pod);

// Whether the pod tolerates the taints of effect PreferNoSchedule.
bool IsWelcome(const NodeSpec& node, const PodRequest& pod);

// Whether any node of the snapshot could refuse the pod; if none can, Admits need not be called.
bool AdmissionMatters(const Snapshot& snapshot, const PodRequest& pod);

// Whether it has GPUs of any kind, given out or not, or is to have some: on a machine with GPUs
// that joins nobody offers them yet.
bool IsGpuNode(const NodeSpec& node);

// Whether the guard keeps the pod off GPU nodes for good.
inline bool IsTurnedAway(const PodRequest& pod, NodeGuard guard) {
  return guard == NodeGuard::kRefuse && !pod.shape.wants_gpu() && !pod.belongs_on_any_node;
}

// How many GPU nodes have no taint of effect NoSchedule or NoExecute, but for those by which
// Kubernetes tells the condition of a node (node.kubernetes.io/...): every pod may go there.
int UnguardedGpuNodes(const Snapshot& snapshot);

// Priorities for a pod that asks for no GPU: kMaxPriority for candidates without GPUs, 0 for those
// with some. Empty where all of them have some: then it matters which.
std::vector<std::uint8_t> GuardedPriorities(const Snapshot& snapshot,
                                            std::span<const NodeIndex> candidates);

// By claim: GPUs that kube-scheduler gives a pod by a ResourceClaim (DRA), because a DeviceClass
// has the name of the resource that the pod asks for (cluster/claims/device_claim.h). It does so
// on nodes that have none of that resource in their allocatable. It has looked at their devices
// before it asks Berth, which does not know them: Berth refuses no such node for its GPUs, reserves
// none there, and ranks it behind those that it can judge, by how many GPUs pods have there.
//
// Pods that say more of their GPUs than how many are left to nodes that Berth can judge, and so are
// those whose group requires a topology domain.

// Whether the pod would get its GPUs by a claim there, if the node has any.
bool GetsClaimOn(const Node& node, const PodRequest& pod);

// The same, or that Berth knows its GPUs there and kube-scheduler makes the claim all the same.
bool GivesByClaim(const Node& node, const PodRequest& pod);

// How many GPUs the pods have there that got them so: nodes that Berth cannot judge are filled one
// after the other, the fullest first. 0..kMaxTotal (priority.h).
int GpusByClaim(const Node& node);

// Requires: GetsClaimOn. kFits, or what speaks against the node beside its GPUs: CPU, memory, disk,
// health, traits.
Reason ObjectionBesideGpus(const Node& node, const PodRequest& pod);

// Whether a DeviceClass has the name of the pod's resource, and no node offers that otherwise.
// Visits all nodes for such pods.
bool GetsClaimAnywhere(const Snapshot& snapshot, const PodRequest& pod);

}  // namespace berth
