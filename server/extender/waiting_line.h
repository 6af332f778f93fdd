// SPDX-License-Identifier: Apache-2.0
//
// WaitingLine: the pods that wait for a node now, in the order in which kube-scheduler takes them:
// by priority, then by age.
#pragma once

#include <cstddef>
#include <vector>

#include "cluster/groups/pod_groups.h"
#include "cluster/state/snapshot.h"
#include "cluster/state/waiting_pods.h"
#include "cluster/values/pod_request.h"

namespace berth {

struct WaitingLine {
  std::vector<PodRequest> pods;
  std::size_t gated = 0;   // others, which scheduling gates keep from every scheduler
  std::size_t beyond = 0;  // others, which are further back than `most`
};

// Of pods that were listed before the snapshot was taken (still_waiting.h), sorted by name. Without
// those that the snapshot has: their place is bound, reserved or planned. groups: what their gangs
// need now; nullptr: as they were read.
WaitingLine LineOf(std::vector<WaitingPod> all, const Snapshot& snapshot, const PodGroups* groups,
                   std::size_t most);

}  // namespace berth
