// SPDX-License-Identifier: Apache-2.0
#include "scoring/room/room_nodes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <tuple>
#include <utility>
#include <variant>

#include "base/text.h"
#include "scoring/admission.h"
#include "scoring/devices/device_picker.h"
#include "scoring/explain/other_limits.h"
#include "scoring/registry.h"
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

// So many pods that come to one node are tried in every order; more of them in one.
constexpr std::size_t kMostOrders = 4;

bool HasGpus(const PodRecord& pod) {
  return pod.pod.shape.wants_gpu() || !pod.placement.grants.empty() || !pod.placement.mig.empty() ||
         pod.placement.places > 0;
}

std::vector<Resident> ResidentsOf(const Node& node, const RoomAsk& ask) {
  const MoveRules& rules = ask.rules;
  std::vector<Resident> residents;
  for (const auto& pod : node.pods()) {
    if (WhyItStays(*pod, rules) != Stays::kNot || node.IsHeldByClaim(pod->pod)) continue;
    residents.push_back({pod, MoveCost(*pod, rules.now), AmountsHeld(*pod)});
  }
  std::ranges::sort(residents, {}, [](const Resident& one) {
    return std::tuple<std::int64_t, std::string_view>(one.cost, one.pod->pod.id.uid);
  });
  return residents;
}

// The largest first.
std::vector<std::size_t> OrderOf(const std::vector<Arrival>& arrivals) {
  std::vector<std::size_t> order = UpTo(arrivals.size());
  std::ranges::sort(order, {}, [&arrivals](std::size_t i) {
    const PodRequest& pod = *arrivals[i].pod;
    return std::tuple<int, int, std::string_view>(-pod.shape.gpu_count(),
                                                  -pod.shape.milli_per_gpu(), pod.id.uid);
  });
  return order;
}

}  // namespace

std::string_view TextOf(Stays stays) {
  constexpr std::array<std::string_view, 15> kTexts = {
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
      "another scheduler would place its successor (spec.schedulerName)",
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
  if (!rules.schedulers.empty() && !rules.schedulers.contains(pod.pod.scheduler)) {
    return Stays::kScheduler;
  }
  if (const Stays stays = OfMobility(pod.pod.mobility); stays != Stays::kNot) return stays;
  if (pod.pod.keep) return Stays::kKeep;
  if (!pod.pod.gang.empty()) return Stays::kGang;
  if (!pod.pod.claims.empty()) return Stays::kClaims;
  if (pod.life.started && rules.now - *pod.life.started < rules.youngest) return Stays::kYoung;
  if (IsHeldByBudget(pod.pod, rules.budgets)) return Stays::kBudget;
  return rules.allows && !rules.allows(pod) ? Stays::kNotAllowed : Stays::kNot;
}

Amounts AmountsHeld(const PodRecord& pod) {
  const auto grants = static_cast<std::int64_t>(pod.placement.grants.size());
  const std::int64_t gpus =
      std::max<std::int64_t>({grants, pod.pod.shape.gpu_count(), pod.placement.places});
  return {gpus, pod.placement.cpu_milli, pod.placement.memory_bytes, pod.placement.ephemeral_bytes};
}

Amounts AmountsMissing(const Node& node, const RequestShape& shape, GpuMask free_gpus) {
  Amounts missing{};
  if (std::holds_alternative<WholeGpus>(shape.gpus) && !node.spec().mig.known()) {
    const bool in_places = node.spec().places.count > 0;
    const int free = in_places ? node.free_places() : std::popcount(free_gpus);
    missing[0] = shape.gpu_count() - free;
  }
  const auto lacks = [](std::int64_t wanted, std::int64_t free) {
    return wanted > 0 ? wanted - free : 0;
  };
  missing[1] = lacks(shape.cpu_milli, node.free_cpu_milli());
  missing[2] = lacks(shape.memory_bytes, node.free_memory_bytes());
  missing[3] = lacks(shape.ephemeral_bytes, node.free_ephemeral_bytes());
  for (std::int64_t& amount : missing) amount = std::max<std::int64_t>(amount, 0);
  return missing;
}

std::optional<Placement> PlaceOnNode(const Node& node, const PodRequest& pod) {
  if (!Fits(node, pod.shape) || !LackOf(node, pod).empty()) return std::nullopt;
  const std::vector<DeviceChoice> choices = DeviceChoices(node, pod.shape, DeviceRule::kTightest);
  if (choices.empty()) return std::nullopt;
  Placement placement = PlacementFor(node, pod.shape, choices.front());
  if (!node.CanTake(placement)) return std::nullopt;
  return placement;
}

RoomNodes::RoomNodes(const RoomAsk& ask)
    : ask_(ask), residents_(ask.snapshot->size()), states_(ask.snapshot->size()) {
  for (NodeIndex i = 0; i < ask.snapshot->size(); ++i) {
    residents_[i] = ResidentsOf(ask.snapshot->node(i), ask);
    if (residents_[i].size() <= kMostResidents) continue;
    residents_[i].resize(kMostResidents);
    is_cut_ = true;
  }
}

bool MayMoveTo(const Node& to, const PodRequest& pod, const Node& from, const MoveRules& rules) {
  const bool has_model =
      !rules.keep_model || !pod.shape.wants_gpu() || to.spec().gpu_model == from.spec().gpu_model;
  return has_model && to.spec().ready && Admits(to.spec(), pod) == Reason::kFits;
}

bool RoomNodes::MayGo(const Arrival& arrival, NodeIndex index) const {
  const PodRequest& pod = *arrival.pod;
  const Node& node = ask_.snapshot->node(index);
  const Node& from = arrival.from == kNoNode ? node : ask_.snapshot->node(arrival.from);
  if (closed(index) && pod.shape.wants_gpu()) return false;
  if (!MayMoveTo(node, pod, from, ask_.rules)) return false;
  if (IsTurnedAway(pod, ask_.guard) && IsGpuNode(node.spec())) return false;
  if (GetsClaimOn(node, pod)) return false;
  return ask_.reservations == nullptr || ask_.reservations->empty() ||
         ask_.reservations->KeptFor(pod, *ask_.snapshot, index) == nullptr;
}

Amounts RoomNodes::Missing(const PodRequest& pod, NodeIndex index) const {
  const Node& node = now(index);
  return AmountsMissing(node, pod.shape, IdleGpus(node));
}

std::shared_ptr<const RoomNodes::State> RoomNodes::With(NodeIndex index, Set leave,
                                                        const Arrival& arrival) const {
  auto state = std::make_shared<State>();
  if (states_[index] != nullptr) *state = *states_[index];
  state->gone |= leave;
  if (arrival.pod == nullptr) {
    state->closed = true;
  } else {
    state->arrivals.push_back(arrival);
  }
  const std::vector<Resident>& residents = residents_[index];
  const Node bare = ask_.snapshot->node(index).Without([&](const PodRecord& pod) {
    for (Set left = state->gone; left != 0; left &= left - 1) {
      if (residents[static_cast<std::size_t>(std::countr_zero(left))].pod.get() == &pod) {
        return true;
      }
    }
    return false;
  });
  if (!Pack(bare, *state)) return nullptr;
  return state;
}

bool RoomNodes::Pack(const Node& bare, State& state) const {
  std::vector<std::size_t> order = OrderOf(state.arrivals);
  if (PackInOrder(bare, order, state)) return true;
  if (order.size() < 2 || order.size() > kMostOrders) return false;
  std::ranges::sort(order);
  do {
    if (PackInOrder(bare, order, state)) return true;
  } while (std::next_permutation(order.begin(), order.end()));
  return false;
}

bool RoomNodes::PackInOrder(const Node& bare, const std::vector<std::size_t>& order,
                            State& state) const {
  auto node = std::make_shared<Node>(bare);
  state.placements.assign(state.arrivals.size(), {});
  for (const std::size_t i : order) {
    const PodRequest& pod = *state.arrivals[i].pod;
    auto placement = PlaceOnNode(*node, pod);
    if (!placement) return false;
    node->Put(std::make_shared<const PodRecord>(PodRecord{pod, *placement, PodState::kBound, {}}));
    state.placements[i] = *std::move(placement);
  }
  state.node = std::move(node);
  return true;
}

bool CanBeIdle(const Node& node, std::string_view model) {
  const NodeSpec& spec = node.spec();
  const bool has_gpus = !spec.gpus.empty() && spec.places.count == 0 && !spec.mig.known();
  if (!has_gpus || !spec.ready || spec.refuses_gpu_pods || !spec.gpu_condition.empty())
    return false;
  return node.healthy_gpus() > 0 && node.claimed() == 0 &&
         (model.empty() || spec.gpu_model == model);
}

bool RoomNodes::MayBeIdle(NodeIndex index) const {
  return CanBeIdle(ask_.snapshot->node(index), ask_.goal.model);
}

std::optional<RoomNodes::Set> RoomNodes::ToBeIdle(NodeIndex index) const {
  const std::vector<Resident>& residents = residents_[index];
  Set leave = 0;
  std::size_t found = 0, holding = 0;
  for (std::size_t i = 0; i < residents.size(); ++i) {
    if (!HasGpus(*residents[i].pod)) continue;
    ++found;
    if ((gone(index) >> i & 1) == 0) leave |= Set{1} << i;
  }
  for (const auto& pod : ask_.snapshot->node(index).pods()) {
    if (HasGpus(*pod)) ++holding;
  }
  if (found != holding) return std::nullopt;
  if (states_[index] != nullptr) {
    for (const Arrival& arrival : states_[index]->arrivals) {
      if (arrival.pod->shape.wants_gpu()) return std::nullopt;
    }
  }
  return leave;
}

std::shared_ptr<const RoomNodes::State> RoomNodes::Replace(NodeIndex index,
                                                           std::shared_ptr<const State> state) {
  std::swap(states_[index], state);
  if (states_[index] == nullptr) {
    changed_.erase(index);
  } else {
    changed_.insert(index);
  }
  return state;
}

}  // namespace berth
