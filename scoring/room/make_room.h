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

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "cluster/state/snapshot.h"
#include "cluster/values/pod_record.h"
#include "scoring/room/move_bound.h"
#include "scoring/room/room_nodes.h"

namespace berth {

// OrderMoves: in which order the moves of a plan are made, so that each pod finds its place free.
//
// A place is free once the amounts fit beside who is there at that moment, and the devices are
// nobody's. Moves that wait for each other in a circle have no such order: then one of them is
// evicted early, and has no place until a later move has been made. A pure function; bounded in
// steps.

struct PodMove {
  std::shared_ptr<const PodRecord> pod;  // as it is, with the devices that it frees
  NodeIndex from = kNoNode, to = kNoNode;
  Placement place;  // there
  std::int64_t cost = 0;
  // It is evicted at its turn, and its place is free only after the last move of `waits_for` (an
  // index into the list) has been made; kNoMove: at once.
  std::size_t waits_for = static_cast<std::size_t>(-1);
  NodeIndex spare = kNoNode;  // where it would fit meanwhile; kNoNode: nowhere
};
inline constexpr std::size_t kNoMove = static_cast<std::size_t>(-1);

// The same moves, in order.
std::vector<PodMove> OrderMoves(const Snapshot& snapshot, std::vector<PodMove> moves,
                                const MoveRules& rules);

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
  std::int64_t cost = 0;        // of all moves (room_nodes.h)
  bool optimal = false;         // no plan costs less; if none was found: there is none
  RoomBound least_cost = {}, least_moves = {};
  // Why residents of all nodes stay, and how many: what else could have moved.
  std::map<Stays, std::int64_t> staying;
  // The cluster once all of it is done; pods that were moved or placed are not moved again.
  std::shared_ptr<const Snapshot> after;
};

RoomPlan MakeRoom(const RoomAsk& ask);

}  // namespace berth
