// SPDX-License-Identifier: Apache-2.0
#include "scoring/room/room_within.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

#include "scoring/room/room_nodes.h"
#include "scoring/victims.h"

namespace berth {

namespace {

Stays OfMobility(Mobility mobility) {
  switch (mobility) {
    case Mobility::kMoves:
      return Stays::kNot;
    case Mobility::kNoController:
      return Stays::kNoController;
    case Mobility::kComesBack:
      return Stays::kComesBack;
    case Mobility::kDoNotDisrupt:
      return Stays::kDoNotDisrupt;
    case Mobility::kNotSafeToEvict:
      return Stays::kNotSafeToEvict;
    case Mobility::kHostPath:
      return Stays::kHostPath;
    case Mobility::kUnknown:
      break;
  }
  return Stays::kUnknown;
}

// The API server refuses an eviction of a pod with several budgets.
bool IsHeldByBudget(const PodRequest& pod, std::span<const PodDisruptionBudget> budgets) {
  const std::string& in = pod.id.namespace_name;
  auto budget = std::ranges::lower_bound(budgets, in, {}, &PodDisruptionBudget::namespace_name);
  int covering = 0;
  for (; budget != budgets.end() && budget->namespace_name == in; ++budget) {
    if (!budget->Covers(pod)) continue;
    if (budget->disruptions_allowed < 1 || ++covering > 1) return true;
  }
  return false;
}

std::int64_t WeightOf(const PodRequest& pod) {
  const std::int64_t weight = 1000 + std::int64_t{pod.deletion_cost} * 1000 / (1 << 27) +
                              std::int64_t{pod.priority} * 1000 / (1 << 25);
  return std::clamp<std::int64_t>(weight, 100, 10'000);
}

// So many nodes of one kind are tried, and so many places for one pod.
constexpr int kMostTried = 32;
constexpr int kMostPlaces = 16;

class Emptier {
 public:
  explicit Emptier(const RoomAsk& ask) : ask_(ask), nodes_(ask) {}

  RoomWithin Empty(std::string model, int gpus, const std::vector<NodeIndex>& of_kind) {
    RoomWithin within{.model = std::move(model), .gpus = gpus};
    std::int64_t moves = 0;
    int tried = 0;
    for (const auto& [pods, node] : FewestFirst(of_kind)) {
      if (moves + pods > kMovesWithin.back() || ++tried > kMostTried || IsEnough()) break;
      if (!TryEmpty(node)) continue;
      moves += pods;
      for (std::size_t i = 0; i < kMovesWithin.size(); ++i) {
        if (moves <= kMovesWithin[i]) ++within.nodes[i];
      }
    }
    return within;
  }

  // Each kind is counted for itself, on the cluster as it is.
  void Restore() {
    const std::vector<NodeIndex> changed(nodes_.changed().begin(), nodes_.changed().end());
    for (const NodeIndex node : changed) nodes_.Replace(node, nullptr);
  }

  [[nodiscard]] bool MayBeIdle(NodeIndex node) const { return nodes_.MayBeIdle(node); }

 private:
  using Saved = std::vector<std::pair<NodeIndex, std::shared_ptr<const RoomNodes::State>>>;

  [[nodiscard]] bool IsEnough() const { return ask_.limits.enough && ask_.limits.enough(); }

  // The nodes that could be idle and are not, with how many pods have to move.
  [[nodiscard]] std::vector<std::pair<int, NodeIndex>> FewestFirst(
      const std::vector<NodeIndex>& of_kind) const {
    std::vector<std::pair<int, NodeIndex>> order;
    for (const NodeIndex node : of_kind) {
      const auto leave = nodes_.ToBeIdle(node);
      if (leave && *leave != 0) order.emplace_back(std::popcount(*leave), node);
    }
    std::ranges::sort(order);
    return order;
  }

  // Nodes with pods that have GPUs: first those that would take the most moves to empty themselves,
  // then the fullest.
  [[nodiscard]] std::vector<NodeIndex> Targets() const {
    std::vector<std::tuple<int, std::int64_t, NodeIndex>> order;
    for (NodeIndex i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_.now(i);
      const std::int64_t free = node.free_gpu_milli();
      const std::int64_t all = std::int64_t{node.healthy_gpus()} * kMilliPerGpu;
      if (free > 0 && free < all && !nodes_.closed(i)) order.emplace_back(-MovesOf(i), free, i);
    }
    std::ranges::sort(order);
    std::vector<NodeIndex> targets;
    for (const auto& entry : order) targets.push_back(std::get<NodeIndex>(entry));
    return targets;
  }

  // To empty it; more than are counted where it cannot be done.
  [[nodiscard]] int MovesOf(NodeIndex node) const {
    const auto leave = nodes_.ToBeIdle(node);
    const int most = kMovesWithin.back() + 1;
    return leave ? std::min(std::popcount(*leave), most) : most;
  }

  bool TryEmpty(NodeIndex node) {
    const auto leave = nodes_.ToBeIdle(node);  // again: others may have come meanwhile
    if (!leave) return false;
    Saved saved;
    saved.emplace_back(node, nodes_.Replace(node, nodes_.With(node, *leave, {})));
    const std::vector<NodeIndex> targets = Targets();
    for (const Arrival& pod : LargestFirst(node, *leave)) {
      if (!IsEnough() && PutSomewhere(pod, targets, saved)) continue;
      while (!saved.empty()) {
        nodes_.Replace(saved.back().first, std::move(saved.back().second));
        saved.pop_back();
      }
      return false;
    }
    return true;
  }

  [[nodiscard]] std::vector<Arrival> LargestFirst(NodeIndex node, RoomNodes::Set leave) const {
    std::vector<Arrival> pods;
    for (; leave != 0; leave &= leave - 1) {
      const auto index = static_cast<std::size_t>(std::countr_zero(leave));
      pods.push_back({&nodes_.residents(node)[index].pod->pod, node, index});
    }
    std::ranges::stable_sort(pods, {}, [](const Arrival& one) {
      return std::tuple<int, int>(-one.pod->shape.gpu_count(), -one.pod->shape.milli_per_gpu());
    });
    return pods;
  }

  bool PutSomewhere(const Arrival& pod, const std::vector<NodeIndex>& targets, Saved& saved) {
    int tried = 0;
    for (const NodeIndex target : targets) {
      if (target == pod.from || !nodes_.MayGo(pod, target)) continue;
      if (nodes_.Missing(*pod.pod, target) != Amounts{}) continue;
      if (++tried > kMostPlaces) return false;
      auto state = nodes_.With(target, 0, pod);
      if (state == nullptr) continue;
      saved.emplace_back(target, nodes_.Replace(target, std::move(state)));
      return true;
    }
    return false;
  }

  const RoomAsk& ask_;
  RoomNodes nodes_;
};

}  // namespace

std::string_view TextOf(Stays stays) {
  constexpr std::array<std::string_view, 14> kTexts = {
      "",
      "it is starting or ending",
      "it is not known whether a controller would make it anew",
      "no controller would make it anew",
      "it belongs to its node",
      "annotation karpenter.sh/do-not-disrupt",
      "annotation cluster-autoscaler.kubernetes.io/safe-to-evict",
      "it uses a directory of its node",
      "annotation berth.dev/keep",
      "it has started a short time ago",
      "its disruption budget allows no eviction now",
      "it is part of a gang",
      "it has devices by ResourceClaims",
      "Berth may not move it by its settings, or does not judge all that it needs"};
  return kTexts[static_cast<std::size_t>(stays)];
}

std::chrono::minutes LostByMove(const PodRecord& pod, WallTime now) {
  const auto since = pod.pod.checkpointed ? pod.pod.checkpointed : pod.life.started;
  if (!since) return kMostLost;
  const auto lost = std::chrono::floor<std::chrono::minutes>(now - *since);
  return std::clamp(lost, std::chrono::minutes(0), kMostLost);
}

std::int64_t MoveCost(const PodRecord& pod, WallTime now) {
  const std::int64_t milli = std::max(GpuMilliOf(pod), kLeastMilli);
  const std::chrono::seconds all =
      LostByMove(pod, now) + kRestart + std::chrono::seconds(pod.pod.grace_seconds);
  const std::int64_t work = milli * all.count() / 60;
  return std::max<std::int64_t>(work * WeightOf(pod.pod) / 1000, 1);
}

Stays WhyItStays(const PodRecord& pod, const MoveRules& rules) {
  if (pod.state != PodState::kBound || pod.leaving) return Stays::kUnder;
  if (pod.life.comes_back) return Stays::kComesBack;
  if (!pod.pod.refusal.empty()) return Stays::kUnknown;  // nobody would place its successor
  if (const Stays stays = OfMobility(pod.pod.mobility); stays != Stays::kNot) return stays;
  if (pod.pod.keep) return Stays::kKeep;
  if (!pod.pod.gang.empty()) return Stays::kGang;
  if (!pod.pod.claims.empty()) return Stays::kClaims;
  if (pod.life.started && rules.now - *pod.life.started < rules.youngest) return Stays::kYoung;
  if (IsHeldByBudget(pod.pod, rules.budgets)) return Stays::kBudget;
  return rules.allows && !rules.allows(pod) ? Stays::kNotAllowed : Stays::kNot;
}

std::vector<RoomWithin> FindRoomWithin(const RoomAsk& ask) {
  RoomAsk any = ask;
  any.goal = {};
  Emptier emptier(any);
  std::map<std::pair<std::string, int>, std::vector<NodeIndex>> kinds;
  for (NodeIndex i = 0; i < any.snapshot->size(); ++i) {
    if (!emptier.MayBeIdle(i)) continue;
    const NodeSpec& spec = any.snapshot->node(i).spec();
    kinds[{spec.gpu_model, static_cast<int>(spec.gpus.size())}].push_back(i);
  }
  using Kind = decltype(kinds)::value_type;
  std::vector<const Kind*> largest;
  for (const Kind& kind : kinds) largest.push_back(&kind);
  std::ranges::stable_sort(largest, {}, [](const Kind* kind) {
    return -static_cast<std::int64_t>(kind->second.size()) * kind->first.second;
  });
  if (largest.size() > kMostRoomKinds) largest.resize(kMostRoomKinds);
  std::vector<RoomWithin> all;
  for (const Kind* kind : largest) {
    all.push_back(emptier.Empty(kind->first.first, kind->first.second, kind->second));
    emptier.Restore();
  }
  std::ranges::sort(all, {}, [](const RoomWithin& one) {
    return std::pair<std::string_view, int>(one.model, one.gpus);
  });
  return all;
}

}  // namespace berth
