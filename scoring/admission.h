// SPDX-License-Identifier: Apache-2.0
//
// Admission: may the pod use this node at all - taints, node selector, required node
// affinity, versions, what the node's kubelet refused?
// Separate from the filters, because pods of one shape differ in it. kube-scheduler checks the same
// before it asks Berth, but for what was refused; the replay and Berth's own plans have no other
// check.
#pragma once

#include "cluster/node/node.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"
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

}  // namespace berth
