// SPDX-License-Identifier: Apache-2.0
#include "scoring/room/make_room.h"

#include <algorithm>
#include <utility>

#include "scoring/room/move_search.h"
#include "scoring/room/room_nodes.h"

namespace berth {
namespace {

std::map<Stays, std::int64_t> StayingOf(const RoomAsk& ask) {
  std::map<Stays, std::int64_t> staying;
  for (NodeIndex i = 0; i < ask.snapshot->size(); ++i) {
    for (const auto& pod : ask.snapshot->node(i).pods()) {
      if (!pod->pod.shape.wants_gpu()) continue;
      const Stays stays = WhyItStays(*pod, ask.rules);
      if (stays != Stays::kNot) ++staying[stays];
    }
  }
  return staying;
}

// A pod that came is not moved again.
Node Settled(const Node& before, const RoomNodes& nodes, const SearchedMoves::Node& changed) {
  const RoomNodes::State& state = *changed.state;
  const std::vector<Resident>& residents = nodes.residents(changed.node);
  Node node = before.Without([&](const PodRecord& pod) {
    for (std::size_t i = 0; i < residents.size(); ++i) {
      if ((state.gone >> i & 1) != 0 && residents[i].pod.get() == &pod) return true;
    }
    return false;
  });
  for (std::size_t i = 0; i < state.arrivals.size(); ++i) {
    PodRequest pod = *state.arrivals[i].pod;
    pod.keep = true;
    node.Put(std::make_shared<const PodRecord>(
        PodRecord{std::move(pod), state.placements[i], PodState::kBound, {}}));
  }
  return node;
}

void Tell(const RoomAsk& ask, const RoomNodes& nodes, const SearchedMoves& searched,
          RoomPlan& plan) {
  std::vector<PodMove> moves;
  Snapshot after = *ask.snapshot;
  for (const SearchedMoves::Node& changed : searched.nodes) {
    const RoomNodes::State& state = *changed.state;
    if (state.closed) plan.idle.push_back(changed.node);
    for (std::size_t i = 0; i < state.arrivals.size(); ++i) {
      const Arrival& arrival = state.arrivals[i];
      if (arrival.from == kNoNode) {
        plan.places.push_back({arrival.index, changed.node, state.placements[i]});
        continue;
      }
      const Resident& resident = nodes.residents(arrival.from)[arrival.index];
      moves.push_back({.pod = resident.pod,
                       .from = arrival.from,
                       .to = changed.node,
                       .place = state.placements[i],
                       .cost = MoveCost(*resident.pod, ask.rules.now)});
    }
    after = after.With(changed.node, std::make_shared<const Node>(Settled(
                                         ask.snapshot->node(changed.node), nodes, changed)));
  }
  std::ranges::sort(plan.places, {}, &RoomPlan::Place::pod);
  plan.moves = OrderMoves(*ask.snapshot, std::move(moves), ask.rules);
  plan.after = std::make_shared<const Snapshot>(std::move(after));
}

}  // namespace

RoomPlan MakeRoom(const RoomAsk& ask) {
  RoomPlan plan;
  plan.after = ask.snapshot;
  plan.staying = StayingOf(ask);
  RoomNodes nodes(ask);
  plan.least_cost = BoundOfMoves(nodes, Prices::kCosts);
  plan.least_moves = BoundOfMoves(nodes, Prices::kMoves);
  const bool is_beyond = ask.most_moves && plan.least_moves.price > *ask.most_moves;
  if (plan.least_cost.impossible || is_beyond) {
    if (is_beyond) plan.least_cost.price = 0;
    plan.optimal = true;
    return plan;
  }
  const SearchedMoves searched = SearchMoves(nodes, plan.least_cost.price);
  plan.found = searched.found;
  plan.cost = searched.cost;
  plan.optimal = searched.complete || (searched.found && searched.cost <= plan.least_cost.price);
  if (ask.most_moves) plan.least_cost.price = 0;
  if (!searched.found) return plan;
  Tell(ask, nodes, searched, plan);
  if (ask.most_moves) {
    plan.cost = 0;
    for (const PodMove& move : plan.moves) plan.cost += move.cost;
  }
  return plan;
}

}  // namespace berth
