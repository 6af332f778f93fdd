// SPDX-License-Identifier: Apache-2.0
//
// What POST /plan answers (docs/api.md has every field), as JSON for programs and as text for
// people.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"
#include "scoring/explain/node_edits.h"
#include "scoring/explain/pool_growth.h"
#include "scoring/explain/what_if.h"
#include "scoring/room/room_units.h"
#include "server/why/plan_request.h"

namespace berth::wire {

// answer: of these pods.
std::string EncodePlan(const PlanRequest& request, const WhatIfAnswer& answer);
// Several lines, the last of which ends with a newline.
std::string TextOf(const PlanRequest& request, const WhatIfAnswer& answer);

// What POST /plan answers where it is asked what the next nodes of each pool would take
// (docs/api.md has every field), as JSON for programs and as text for people.
struct GrowthReport {
  const PlanRequest& request;
  std::span<const PodRequest> pods;  // that were asked about: of the request, or those that wait
  Growth told = {};
  std::size_t gated = 0, beyond = 0;  // of those that wait (server/extender/inquiry.h)
};

std::string EncodeGrowth(const GrowthReport& report);
// Several lines, the last of which ends with a newline.
std::string TextOf(const GrowthReport& report);

// What POST /plan answers where it is asked which pods to move to make room (docs/api.md has
// every field), as JSON for programs and as text for people.
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
