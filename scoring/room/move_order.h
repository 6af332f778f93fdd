// SPDX-License-Identifier: Apache-2.0
//
// OrderMoves: in which order the moves of a plan are made, so that each pod finds its place free.
//
// A place is free once the amounts fit beside who is there at that moment, and the devices are
// nobody's. Moves that wait for each other in a circle have no such order: then one of them is
// evicted early, and has no place until a later move has been made. A pure function; bounded in
// steps.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cluster/state/snapshot.h"
#include "cluster/values/pod_record.h"
#include "scoring/room/move_cost.h"

namespace berth {

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

}  // namespace berth
