// SPDX-License-Identifier: Apache-2.0
//
// StillWaiting: the pods that wait, at the moment of one snapshot.
//
// A pod that gets its node is bound in ClusterState before it leaves WaitingPods. So taking the
// list first and the snapshot second misses none, and may have some in both.
#pragma once

#include <vector>

#include "cluster/state/snapshot.h"
#include "cluster/state/waiting_pods.h"

namespace berth {

// The pods without those that the snapshot has bound. Requires: they were listed before that.
std::vector<WaitingPod> StillWaiting(std::vector<WaitingPod> listed, const Snapshot& snapshot);
WaitingPods::Pods StillWaiting(WaitingPods::Pods listed, const Snapshot& snapshot);

}  // namespace berth
