// SPDX-License-Identifier: Apache-2.0
//
// Admission: may the pod go to this node at all - taints, node selector, required node affinity?
// Apart from the filters, because pods of one shape differ in it. kube-scheduler asks the same
// before it asks us; replays and plans of our own have nobody else to ask.
#pragma once

#include "cluster/node.h"
#include "cluster/pod_request.h"
#include "cluster/snapshot.h"
#include "scoring/reason.h"

namespace berth {

// kFits, kTaintNotTolerated or kNodeNotSelected.
Reason Admits(const NodeSpec& node, const PodRequest& pod);

// Whether any node of the snapshot could object; where none can, Admits need not be asked.
bool AdmissionMatters(const Snapshot& snapshot, const PodRequest& pod);

}  // namespace berth
