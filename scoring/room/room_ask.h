// SPDX-License-Identifier: Apache-2.0
//
// RoomAsk: what room is asked for, and by whose moves it may be made. Values.
#pragma once

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

}  // namespace berth
