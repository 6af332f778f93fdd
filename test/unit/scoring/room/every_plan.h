// SPDX-License-Identifier: Apache-2.0
//
// What a plan of moves is compared with in small clusters: every set of moves and every place for
// each pod, and a model of the cluster in which a plan is carried out move by move.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cluster/state/cluster_state.h"
#include "scoring/room/make_room.h"
#include "scoring/room/room_nodes.h"

namespace berth::test {

// A node is tried with those that come in every order. Where a pod may go it judges by itself: by
// each taint, and by the selector.
class EveryPlan {
 public:
  explicit EveryPlan(const RoomAsk& ask) : ask_(ask) {
    for (NodeIndex i = 0; i < ask.snapshot->size(); ++i) {
      for (const auto& pod : ask.snapshot->node(i).pods()) {
        if (WhyItStays(*pod, ask.rules) != Stays::kNot) continue;
        movable_.push_back({pod.get(), i, MoveCost(*pod, ask.rules.now)});
      }
    }
  }

  // The lowest price of a plan that reaches the goal with so many moves; nothing: there is none.
  std::optional<std::int64_t> Least(Prices prices, int most_moves = 32) {
    std::vector<std::pair<std::int64_t, std::uint32_t>> sets;
    for (std::uint32_t set = 0; set < 1u << movable_.size(); ++set) {
      if (std::popcount(set) > most_moves) continue;
      std::int64_t price = 0;
      for (std::size_t i = 0; i < movable_.size(); ++i) {
        if ((set >> i & 1) != 0) price += prices == Prices::kMoves ? 1 : movable_[i].cost;
      }
      sets.emplace_back(price, set);
    }
    std::ranges::sort(sets);
    for (const auto& [price, set] : sets) {
      if (Reaches(set)) return price;
    }
    return std::nullopt;
  }

 private:
  struct Movable {
    const PodRecord* pod;
    NodeIndex node;
    std::int64_t cost;
  };

  struct Coming {
    const PodRequest* pod;
    NodeIndex from;
  };

  bool Reaches(std::uint32_t gone) {
    std::vector<Coming> coming;
    for (const PodRequest& pod : ask_.goal.pods) coming.push_back({&pod, kNoNode});
    for (std::size_t i = 0; i < movable_.size(); ++i) {
      if ((gone >> i & 1) != 0) coming.push_back({&movable_[i].pod->pod, movable_[i].node});
    }
    std::vector<std::uint32_t> to(ask_.snapshot->size(), 0);
    return PlaceFrom(0, coming, gone, to);
  }

  bool MayBeOn(const Coming& one, std::size_t index) const {
    const NodeSpec& to = ask_.snapshot->node(static_cast<NodeIndex>(index)).spec();
    const PodRequest& pod = *one.pod;
    if (!to.ready) return false;
    if (one.from != kNoNode && ask_.rules.keep_model && pod.shape.wants_gpu() &&
        ask_.snapshot->node(one.from).spec().gpu_model != to.gpu_model) {
      return false;
    }
    static const NodeConstraints kNone;
    const NodeConstraints& limits = pod.constraints == nullptr ? kNone : *pod.constraints;
    for (const Taint& taint : to.taints) {
      if (!Tolerates(limits.tolerations, taint)) return false;
    }
    return SelectsNode(limits, to.name, to.labels);
  }

  bool PlaceFrom(std::size_t next, const std::vector<Coming>& coming, std::uint32_t gone,
                 std::vector<std::uint32_t>& to) {
    if (next == coming.size()) return IdleNodes(gone, to) >= ask_.goal.idle_nodes;
    for (std::size_t node = 0; node < to.size(); ++node) {
      if (!MayBeOn(coming[next], node)) continue;
      to[node] |= 1u << next;
      if (Holds(static_cast<NodeIndex>(node), coming, gone, to[node]) &&
          PlaceFrom(next + 1, coming, gone, to)) {
        return true;
      }
      to[node] &= ~(1u << next);
    }
    return false;
  }

  Node Bare(NodeIndex index, std::uint32_t gone) const {
    return ask_.snapshot->node(index).Without([&](const PodRecord& pod) {
      for (std::size_t i = 0; i < movable_.size(); ++i) {
        if ((gone >> i & 1) != 0 && movable_[i].pod == &pod) return true;
      }
      return false;
    });
  }

  bool Holds(NodeIndex index, const std::vector<Coming>& coming, std::uint32_t gone,
             std::uint32_t come) {
    const auto [known, is_new] = holds_.try_emplace(std::tuple(index, gone, come), false);
    if (!is_new) return known->second;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < coming.size(); ++i) {
      if ((come >> i & 1) != 0) order.push_back(i);
    }
    do {
      Node node = Bare(index, gone);
      bool fits = true;
      for (const std::size_t i : order) {
        const auto placement = PlaceOnNode(node, *coming[i].pod);
        fits = placement.has_value();
        if (!fits) break;
        node.Put(std::make_shared<const PodRecord>(
            PodRecord{*coming[i].pod, *placement, PodState::kBound, {}}));
      }
      if (fits) return known->second = true;
    } while (std::next_permutation(order.begin(), order.end()));
    return false;
  }

  int IdleNodes(std::uint32_t gone, const std::vector<std::uint32_t>& to) const {
    int idle = 0;
    for (std::size_t i = 0; i < to.size(); ++i) {
      const Node bare = Bare(static_cast<NodeIndex>(i), gone);
      const bool uses = std::ranges::any_of(
          bare.pods(), [](const auto& pod) { return pod->pod.shape.wants_gpu(); });
      if (to[i] == 0 && !uses && bare.healthy_gpus() > 0 &&
          (ask_.goal.model.empty() || bare.spec().gpu_model == ask_.goal.model)) {
        ++idle;
      }
    }
    return idle;
  }

  const RoomAsk& ask_;
  std::vector<Movable> movable_;
  std::map<std::tuple<NodeIndex, std::uint32_t, std::uint32_t>, bool> holds_;
};

// Carries the plan out in the books, which grant nothing that is not free. "": the goal is reached.
inline std::string CarriedOut(const RoomAsk& ask, const RoomPlan& plan) {
  ClusterState state;
  std::vector<ClusterEvent> events;
  for (NodeIndex i = 0; i < ask.snapshot->size(); ++i) {
    const Node& node = ask.snapshot->node(i);
    events.emplace_back(NodeUpserted{node.spec()});
    for (const auto& pod : node.pods()) {
      events.emplace_back(PodBound{.pod = pod->pod, .placement = pod->placement});
    }
  }
  if (!state.Apply(events)) return "the cluster is not taken";
  const auto put = [&state](const PodRequest& pod, const Placement& placement) -> std::string {
    const auto taken = state.Reserve(pod, placement, Instant::max());
    return taken ? "" : pod.id.name + " to " + placement.node + ": " + taken.error().message;
  };
  for (std::size_t i = 0; i < plan.moves.size(); ++i) {
    const PodMove& move = plan.moves[i];
    if (!state.Apply(std::vector<ClusterEvent>{PodGone{move.pod->pod.id.uid}})) return "no end";
    if (move.waits_for == kNoMove) {
      if (std::string why = put(move.pod->pod, move.place); !why.empty()) return why;
    }
    for (const PodMove& early : plan.moves) {
      if (early.waits_for != i) continue;
      if (std::string why = put(early.pod->pod, early.place); !why.empty()) return why;
    }
  }
  if (plan.places.size() != ask.goal.pods.size()) return "not every pod has a place";
  for (const RoomPlan::Place& place : plan.places) {
    std::string why = put(ask.goal.pods[place.pod], place.placement);
    if (!why.empty()) return why;
  }
  if (std::ssize(plan.idle) != ask.goal.idle_nodes) return "not as many nodes";
  const auto now = state.Current();
  for (const NodeIndex idle : plan.idle) {
    const Node& node = now->node(idle);
    if (std::ranges::any_of(node.pods(),
                            [](const auto& pod) { return pod->pod.shape.wants_gpu(); })) {
      return node.spec().name + " is not idle";
    }
  }
  for (NodeIndex i = 0; i < now->size(); ++i) {
    if (now->node(i).pods().size() != plan.after->node(i).pods().size()) return "not as told";
  }
  return "";
}

}  // namespace berth::test
