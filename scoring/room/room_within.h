// SPDX-License-Identifier: Apache-2.0
//
// RoomWithin: how many more whole nodes 1, 2, 4 and 8 moves would make idle, by model and size.
//
// The nodes whose pods with GPUs are the fewest are emptied first, one after the other. Each pod
// goes to a node with room for it that is neither idle nor emptied (what is counted is more idle
// nodes, not others), first to those that are the hardest to empty. Nobody else leaves for these
// pods, so more may be possible; less is not.
//
// A function of its arguments, but for SearchLimits::enough. Any thread may call it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "scoring/room/room_ask.h"

namespace berth {

inline constexpr std::array<int, 4> kMovesWithin = {1, 2, 4, 8};
// Of so many kinds of nodes, those with the most GPUs.
inline constexpr std::size_t kMostRoomKinds = 8;

struct RoomWithin {
  std::string model;
  int gpus = 0;                                           // of each node
  std::array<std::int64_t, kMovesWithin.size()> nodes{};  // by kMovesWithin
};

// By model, then by size. The goal of the ask is not looked at.
std::vector<RoomWithin> FindRoomWithin(const RoomAsk& ask);

}  // namespace berth
