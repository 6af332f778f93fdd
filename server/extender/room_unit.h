// SPDX-License-Identifier: Apache-2.0
//
// RoomUnitOf: the pods for which one plan of moves is made: a waiting pod, or the members of its
// gang that wait.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/groups/pod_groups.h"
#include "cluster/state/waiting_pods.h"
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

}  // namespace berth
