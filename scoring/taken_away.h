// SPDX-License-Identifier: Apache-2.0
//
// TakenAway: whether kube-scheduler asks about a cluster without the pods that it would evict.
//
// For a gang of Kubernetes' own it takes every pod of lower priority out of its copy of the
// cluster, asks filter about each member, and says nothing of it. The nodes tell: its own count of
// whole GPUs comes before filter. If it offers a node though the pods bound there leave too few of
// them by that count, it has taken some of these away, or has seen them end before us.
//
// Afterwards it puts back as many of these pods as it can by that count, on the nodes that filter
// has left, and evicts the others without asking. So filter may only let a pod pass where any GPUs
// will do, however many of them this count says are free then.
//
// Pure functions.
#pragma once

#include <cstdint>

#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"

namespace berth {

// Whether pods are gone from the node, if kube-scheduler offers it for the pod and has given
// `given` of its GPUs to pods that are not on it here.
bool PodsAreTakenAway(const Node& node, const PodRequest& pod, std::int64_t given = 0);
// The GPUs of the node that kube-scheduler counts for the pod: whole ones, by the node's resource.
// 0: none, or it asks in other words.
std::int64_t GpusCountedFor(const NodeSpec& node, const RequestShape& shape);

// Whether the pod gets its GPUs on the node, whichever pods of lower priority are evicted, once
// enough of them are by kube-scheduler's count. Requires: it would if all of them were.
bool AnyEvictionsWillDo(const Node& node, const PodRequest& pod);

}  // namespace berth
