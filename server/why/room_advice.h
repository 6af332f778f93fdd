// SPDX-License-Identifier: Apache-2.0
//
// RoomAdvice: whether moves of running pods would let a waiting pod or gang in, and how many: the
// plan of `berth plan --make-room` (scoring/room/make_room.h), found in little time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "cluster/state/waiting_pods.h"
#include "server/extender/extender.h"
#include "server/why/live.h"

namespace berth {

struct RoomAdvice {
  std::string name;  // "namespace/name" of the pod or gang
  bool is_gang = false;
  std::int64_t moves = 0;        // of the plan; at least 1
  std::int64_t least_moves = 0;  // no plan has fewer
};

// The search ends after this time; what comes before it takes 30 ms at 5,000 nodes.
inline constexpr Duration kRoomAdviceTime = std::chrono::milliseconds(100);

// Of a pod that waits, or of its gang. Nothing: it fits as it is, moves do not help, or no plan was
// found in that time. Locks nothing while it plans.
std::optional<RoomAdvice> AdviseRoom(const Live& live, const Extender::Moment& now,
                                     const WaitingPod& waiting);

// As RoomSentence.
std::string TextOf(const RoomAdvice& advice);

}  // namespace berth
