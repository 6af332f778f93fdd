// SPDX-License-Identifier: Apache-2.0
//
// RoomUnitOf: the pods for which one plan of moves is made: a waiting pod, or the members of its
// gang that wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cluster/groups/pod_groups.h"
#include "cluster/state/snapshot.h"
#include "cluster/state/waiting_pods.h"
#include "cluster/values/pod_request.h"
#include "scoring/room/room_units.h"
#include "server/extender/extender.h"

namespace berth {

// groups: as for LineOf. Without pods that have a place by now.
std::vector<PodRequest> RoomUnitOf(const Extender& extender, const WaitingPods& waiting,
                                   const PodGroups* groups, const Extender::Moment& now,
                                   const WaitingPod& pod);

// The plan for that pod or its gang; nullptr: none was found, or it fits without a move.
const RoomUnit* FindUnit(const RoomUnits& units, const PodRequest& pod);

// "2 moves would let its gang in: berth plan --make-room --for ml/train". A name that a shell would
// not take as it is (a tenant chooses those of gangs) is left out of the command.
std::string RoomSentence(const std::string& name, bool is_gang, std::int64_t moves);

// WaitingLine: the pods that wait for a node now, in the order in which kube-scheduler takes them:
// by priority, then by age.
struct WaitingLine {
  std::vector<PodRequest> pods;
  std::size_t gated = 0;   // others, which scheduling gates keep from every scheduler
  std::size_t beyond = 0;  // others, which are further back than `most`
};

// Of pods that were listed before the snapshot was taken (waiting_pods.h), sorted by name. Without
// those that the snapshot has: their place is bound, reserved or planned. groups: what their gangs
// need now; nullptr: as they were read.
WaitingLine LineOf(std::vector<WaitingPod> all, const Snapshot& snapshot, const PodGroups* groups,
                   std::size_t most);

}  // namespace berth
