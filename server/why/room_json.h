// SPDX-License-Identifier: Apache-2.0
//
// What POST /plan answers where it is asked which pods to move to make room (docs/api.md has
// every field), as JSON for programs and as text for people.
#pragma once

#include <span>
#include <string>

#include "cluster/state/snapshot.h"
#include "scoring/explain/node_edits.h"
#include "scoring/room/room_units.h"
#include "server/why/plan_request.h"

namespace berth::wire {

struct RoomReport {
  const PlanRequest& request;
  std::span<const PodRequest> pods;  // that were asked about
  const Snapshot& snapshot;
  const EditedNodes& nodes;
  const RoomUnits& told;
};

std::string EncodeRoom(const RoomReport& report);
// Several lines, the last of which ends with a newline.
std::string TextOf(const RoomReport& report);

}  // namespace berth::wire
