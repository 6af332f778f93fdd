// SPDX-License-Identifier: Apache-2.0
//
// MakeRoom: which running pods to move where, so that pods that wait have a place, or nodes are
// wholly idle; with a proof of how few moves would do.
//
//   const RoomPlan plan = MakeRoom({.snapshot = state.Current(), .goal = {.pods = {pod}}, ...});
//   plan.moves[0];          // from, to with GPUs, what it costs, in the order of making them
//   plan.least_moves;       // no plan has fewer; plan.least_cost: none costs less
//
// Moved pods keep what they ask for; where they and the pods of the goal go is judged by the
// engine's filters and device picker (room_nodes.h). Gangs that run stay where they are. What
// kube-scheduler alone judges is not looked at. Nothing is changed: it works on a snapshot.
//
// A function of its arguments, but for SearchLimits::enough. Any thread may call it; some
// milliseconds per thousand nodes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "scoring/room/move_bound.h"
#include "scoring/room/move_order.h"
#include "scoring/room/room_within.h"

namespace berth {

struct RoomPlan {
  struct Place {
    std::size_t pod = 0;  // of the goal
    NodeIndex node = kNoNode;
    Placement placement;
  };
  bool found = false;
  std::vector<PodMove> moves;   // in order
  std::vector<Place> places;    // of the goal's pods, once all moves are made; by pod
  std::vector<NodeIndex> idle;  // of the goal's nodes; ascending
  std::int64_t cost = 0;        // of all moves (move_cost.h)
  bool optimal = false;         // no plan costs less; if none was found: there is none
  RoomBound least_cost = {}, least_moves = {};  // of the first no price with RoomAsk::most_moves
  // Why residents of all nodes stay, and how many: what else could have moved.
  std::map<Stays, std::int64_t> staying;
  // The cluster once all of it is done; pods that were moved or placed are not moved again.
  std::shared_ptr<const Snapshot> after;
};

RoomPlan MakeRoom(const RoomAsk& ask);

}  // namespace berth
