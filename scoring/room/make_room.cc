// SPDX-License-Identifier: Apache-2.0
#include "scoring/room/make_room.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "scoring/room/room_nodes.h"

namespace berth {
namespace {

constexpr int kMostSteps = 5000;

class Orderer {
 public:
  Orderer(const Snapshot& snapshot, std::vector<PodMove> moves, const MoveRules& rules)
      : snapshot_(snapshot), rules_(rules), moves_(std::move(moves)), made_(moves_.size()) {}

  std::vector<PodMove> Order() {
    while (!Finish(nodes_)) {
      // All moves that need no choice, then one more pod leaves early.
      while (MakeAny()) {
      }
      LeaveEarly();
    }
    std::vector<PodMove> ordered;
    std::map<std::size_t, std::size_t> evicted_at;
    for (const Step& step : steps_) {
      if (step.evicted) {
        evicted_at[step.move] = ordered.size();
        ordered.push_back(moves_[step.move]);
      } else if (const auto early = evicted_at.find(step.move); early != evicted_at.end()) {
        ordered[early->second].waits_for = ordered.size() - 1;
      } else {
        ordered.push_back(moves_[step.move]);
      }
    }
    return ordered;
  }

 private:
  using Nodes = std::map<NodeIndex, Node>;
  struct Step {
    std::size_t move;
    bool evicted = false;  // and nothing else
  };
  enum class Made : std::uint8_t { kNo, kEvicted, kYes };

  Node& NodeIn(Nodes& nodes, NodeIndex index) const {
    return nodes.try_emplace(index, snapshot_.node(index)).first->second;
  }

  // Makes the move; false: its place is not free, and nothing has changed.
  bool Make(Nodes& nodes, std::size_t i) const {
    const PodMove& move = moves_[i];
    const std::string& uid = move.pod->pod.id.uid;
    Node target = NodeIn(nodes, move.to);
    if (made_[i] == Made::kNo && move.from == move.to) target.Remove(uid);
    if (!target.CanTake(move.place)) return false;
    if (made_[i] == Made::kNo) NodeIn(nodes, move.from).Remove(uid);
    if (move.from == move.to) NodeIn(nodes, move.to).Remove(uid);
    NodeIn(nodes, move.to)
        .Put(std::make_shared<const PodRecord>(
            PodRecord{move.pod->pod, move.place, PodState::kBound, {}}));
    return true;
  }

  // All that are left, in an order that a search finds; false: it finds none.
  bool Finish(const Nodes& nodes) {
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < moves_.size(); ++i) {
      if (made_[i] != Made::kYes) left.push_back(i);
    }
    std::vector<std::size_t> order;
    seen_.clear();
    if (!Search(nodes, left, order)) return false;
    for (const std::size_t i : order) steps_.push_back({i});
    return true;
  }

  bool Search(const Nodes& nodes, const std::vector<std::size_t>& left,
              std::vector<std::size_t>& order) {
    if (left.empty()) return true;
    if (seen_.size() >= kMostSteps || !seen_.insert(left).second) return false;
    for (std::size_t k = 0; k < left.size(); ++k) {
      Nodes next = nodes;
      if (!Make(next, left[k])) continue;
      std::vector<std::size_t> rest = left;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(k));
      order.push_back(left[k]);
      if (Search(next, rest, order)) return true;
      order.pop_back();
    }
    return false;
  }

  bool MakeAny() {
    for (std::size_t i = 0; i < moves_.size(); ++i) {
      if (made_[i] == Made::kYes || !Make(nodes_, i)) continue;
      made_[i] = Made::kYes;
      steps_.push_back({i});
      return true;
    }
    return false;
  }

  // The cheapest that opens the place of another one, else the cheapest.
  void LeaveEarly() {
    std::optional<std::pair<bool, std::int64_t>> best;
    std::size_t who = 0;
    for (std::size_t i = 0; i < moves_.size(); ++i) {
      if (made_[i] != Made::kNo) continue;
      Nodes without = nodes_;
      NodeIn(without, moves_[i].from).Remove(moves_[i].pod->pod.id.uid);
      bool opens = false;
      for (std::size_t other = 0; other < moves_.size() && !opens; ++other) {
        Nodes after = without;
        opens = other != i && made_[other] != Made::kYes && Make(after, other);
      }
      const std::pair rank(!opens, moves_[i].cost);
      if (best && rank >= *best) continue;
      best = rank;
      who = i;
    }
    if (!best) return;
    NodeIn(nodes_, moves_[who].from).Remove(moves_[who].pod->pod.id.uid);
    made_[who] = Made::kEvicted;
    moves_[who].spare = SpareFor(moves_[who]);
    steps_.push_back({who, true});
  }

  [[nodiscard]] NodeIndex SpareFor(const PodMove& move) const {
    for (NodeIndex i = 0; i < snapshot_.size(); ++i) {
      if (i == move.from) continue;  // there it is in the way
      const auto found = nodes_.find(i);
      const Node& node = found == nodes_.end() ? snapshot_.node(i) : found->second;
      if (!MayMoveTo(node, move.pod->pod, snapshot_.node(move.from), rules_)) continue;
      if (PlaceOnNode(node, move.pod->pod)) return i;
    }
    return kNoNode;
  }

  const Snapshot& snapshot_;
  const MoveRules& rules_;
  std::vector<PodMove> moves_;
  std::vector<Made> made_;
  Nodes nodes_;  // that are not as in the snapshot
  std::vector<Step> steps_;
  std::set<std::vector<std::size_t>> seen_;
};

std::map<Stays, std::int64_t> StayingOf(const RoomAsk& ask) {
  std::map<Stays, std::int64_t> staying;
  ask.snapshot->ForEachPod([&](const auto& pod, NodeIndex) {
    if (!pod->pod.shape.wants_gpu()) return;
    const Stays stays = WhyItStays(*pod, ask.rules);
    if (stays != Stays::kNot) ++staying[stays];
  });
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

std::vector<PodMove> OrderMoves(const Snapshot& snapshot, std::vector<PodMove> moves,
                                const MoveRules& rules) {
  return Orderer(snapshot, std::move(moves), rules).Order();
}

RoomPlan MakeRoom(const RoomAsk& ask) {
  RoomPlan plan;
  plan.after = ask.snapshot;
  plan.staying = StayingOf(ask);
  RoomNodes nodes(ask);
  plan.least_cost = BoundOfMoves(nodes, Prices::kCosts);
  plan.least_moves = BoundOfMoves(nodes, Prices::kMoves);
  if (plan.least_cost.impossible) {
    plan.optimal = true;
    return plan;
  }
  const SearchedMoves searched = SearchMoves(nodes, plan.least_cost.price);
  plan.found = searched.found;
  plan.cost = searched.cost;
  plan.optimal = searched.complete || (searched.found && searched.cost <= plan.least_cost.price);
  if (searched.found) Tell(ask, nodes, searched, plan);
  return plan;
}

}  // namespace berth
