// SPDX-License-Identifier: Apache-2.0
//
// BoundOfMoves: what any plan costs at least, and how many moves it has at least.
//
//   one pod       the cheapest set of pods that has to leave one node for it, over all nodes: what
//                 leaves must be moved, wherever it goes
//   n alike       the cheapest slots of all nodes: for each node what 1, 2, ... slots cost at least
//                 by amounts, from below made convex, and of these the n cheapest
//   idle nodes    the nodes whose pods with GPUs are the cheapest to move
//   several kinds the largest of these
//   impossible    no node takes the pod even with all residents gone, or fewer GPUs are free than
//                 the pods ask for: a move makes no GPU
//
// It assumes that a node that lacks room for a pod lacks it also when more pods have come.
#pragma once

#include <cstdint>

#include "scoring/room/leaving_sets.h"
#include "scoring/room/room_nodes.h"

namespace berth {

enum class BoundBy : std::uint8_t { kNothing, kOneNode, kSlots, kIdleNodes, kFreeGpus, kNoPlace };

struct RoomBound {
  std::int64_t price = 0;
  bool impossible = false;  // there is no plan
  BoundBy by = BoundBy::kNothing;
};

RoomBound BoundOfMoves(const RoomNodes& nodes, Prices prices);

}  // namespace berth
