// SPDX-License-Identifier: Apache-2.0
//
// By claim: GPUs that kube-scheduler gives a pod by a ResourceClaim (DRA), because a DeviceClass
// has the name of the resource that the pod asks for (cluster/claims/device_classes.h). It does so
// on nodes that have none of that resource in their allocatable. It has looked at their devices
// before it asks Berth, which does not know them: Berth refuses no such node for its GPUs, reserves
// none there, and ranks it behind those that it can judge, by how many GPUs pods have there.
//
// Pods that say more of their GPUs than how many are left to nodes that Berth can judge, and so are
// those whose group requires a topology domain.
#pragma once

#include "cluster/node/node.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"
#include "scoring/reason.h"

namespace berth {

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
