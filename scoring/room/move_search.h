// SPDX-License-Identifier: Apache-2.0
//
// SearchMoves: who moves where, so that the goal is reached at the lowest cost.
//
// Branch and bound: the next one that has no place goes to a node where it fits, or to one that
// fewest have to leave for it (move_bound.h); these are then without a place themselves. A pod
// that leaves a node for one that comes does so in a set without a needless pod: nothing is missed.
// First without chains (each that leaves finds a free place), then with chains of one, two, and any
// number of pods; each search is cut off by the best plan of those before it.
//
// In a small cluster every choice is tried. In a large one only the first few of them: then a plan
// is optimal if it costs no more than the bound. A function of its arguments, but for
// SearchLimits::enough.
#pragma once

#include <cstdint>
#include <vector>

#include "scoring/room/room_nodes.h"

namespace berth {

struct SearchedMoves {
  struct Node {
    NodeIndex node;
    std::shared_ptr<const RoomNodes::State> state;
  };
  bool found = false;
  std::int64_t cost = 0;
  std::vector<Node> nodes;  // that change, by index
  bool complete = false;    // every choice was tried: none is cheaper, or there is none at all
};

// at_least: no plan costs less. It leaves the nodes as they were.
SearchedMoves SearchMoves(RoomNodes& nodes, std::int64_t at_least);

}  // namespace berth
