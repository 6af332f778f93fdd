// SPDX-License-Identifier: Apache-2.0
//
// The rules that `berth-lab room` compares.
//
//   berth        For the pod that has waited longest, and longer than a time, the plan of
//                scoring/room, under the restraint of makeRoom in mode act (RoomMaker): pods that
//                ran for ten minutes, at most so many moves, none to a node with as much room as
//                is made; one plan at a time, kMoveTakes for each move; at most so many moves for
//                100 pods placed.
//   kai          As KAI's consolidation (pkg/scheduler/actions/consolidation, by_pod_solver.go):
//                each second, for each pod that waits, the oldest first, at most kMostVictims
//                pods that run, whichever come first (drawn), the newest first; one by one they
//                are added, those of its node leave, and if the pod fits and all of them have a
//                place again, it is done. Pods that ask for no less than one that failed are left
//                out.
//   descheduler  As HighNodeUtilization without a threshold: every five minutes the pods with GPUs
//                of the node that has the smallest part of its GPUs in use, if each of them fits
//                elsewhere. They are evicted, and wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/replay/time/room_rule.h"

namespace berth::replay {

struct RoomRuleOptions {
  int after_minutes = 30;        // that a pod has waited; berth
  int most_moves = 8;            // of one plan; berth
  double moves_per_hundred = 1;  // pods placed; berth
  std::uint64_t seed = 42;       // kai
};

inline constexpr std::size_t kMostVictims = 16;
inline constexpr Duration kMoveTakes = std::chrono::seconds(30);

// Those with a rule: "none" and "fluid" (fluid.h) are not among them.
const std::vector<std::string>& RoomRuleNames();
// Error: kInvalidArgument naming those there are.
Result<std::unique_ptr<RoomRule>> MakeRoomRule(std::string_view name,
                                               const RoomRuleOptions& options);

}  // namespace berth::replay
