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
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"
#include "scoring/node_guard.h"
#include "scoring/reservations/reservations.h"
#include "scoring/room/move_cost.h"

namespace berth {

// RoomAsk: what room is asked for, and by whose moves it may be made. Values.

// All of these pods have a place, and so many nodes have nothing but idle GPUs.
struct RoomGoal {
  std::vector<PodRequest> pods = {};  // UIDs unique, none of them on a node
  int idle_nodes = 0;
  std::string model = {};  // of the idle nodes; empty: any
  // The pods have to be on the nodes of one of these sets; empty: anywhere.
  std::vector<std::vector<NodeIndex>> within = {};
};

struct SearchLimits {
  std::int64_t steps = 100'000;       // nodes of the search tree and evaluations of nodes
  std::function<bool()> enough = {};  // asked now and then: the best plan so far will do
};

struct RoomAsk {
  std::shared_ptr<const Snapshot> snapshot;
  RoomGoal goal = {};
  MoveRules rules = {};
  NodeGuard guard = NodeGuard::kOff;
  const Reservations* reservations = nullptr;  // as in Question; they outlive the ask
  // Set: no plan with more moves counts; of the others that with the fewest is the best, then the
  // cheapest. Empty: the cheapest is.
  std::optional<int> most_moves = {};
  SearchLimits limits = {};
};

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
