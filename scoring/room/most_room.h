// SPDX-License-Identifier: Apache-2.0
//
// MostRoom: how the most pods that wait are let in by so many moves in all.
//
//   one by one  what needs no move first, then what needs one, and so on, each time the smallest
//               pods; each on the cluster as those before it leave it
//   all sets    where every set of them can be tried with a plan of its own, which is so in small
//               clusters with few pods
//   at most     of pods that are alike, as many as BoundOfMoves allows; of all, the smallest that
//               the free GPUs are enough for; the smaller sum
//
// A gang is let in as a whole. With moves that are left over nothing is done.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "scoring/room/make_room.h"

namespace berth {

struct MostWish {
  // Without a goal. Requires: most_moves is set: of all of them together.
  RoomAsk ask;
  // Pods that are let in together, or not at all; those first that come first. UIDs unique.
  std::vector<RoomGoal> goals = {};
  // Called before each search: its limits; nothing: there is no time for more. Empty: the ask's.
  std::function<std::optional<SearchLimits>()> limits = {};
};

struct MostRoom {
  std::vector<std::size_t> in;  // goals that are let in, ascending
  std::size_t pods = 0;         // of these
  std::size_t at_most = 0;      // no plan lets more pods in
  // Of the pods of these goals, one after the other. Its optimal: it lets in the most.
  RoomPlan plan = {};
};

MostRoom FindMostRoom(const MostWish& wish);

}  // namespace berth
