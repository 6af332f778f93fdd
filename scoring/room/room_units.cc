// SPDX-License-Identifier: Apache-2.0
#include "scoring/room/room_units.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "scoring/explain/node_report.h"
#include "scoring/gangs/gang_ranks.h"

namespace berth {
namespace {

class UnitPlanner {
 public:
  explicit UnitPlanner(const RoomWish& wish) : wish_(wish), now_(wish.ask.snapshot) {
    units_.now = wish.ask.rules.now;
    FindMembers();
  }

  RoomUnits Plan() {
    if (wish_.idle_nodes > 0) Add({});
    std::set<GangId> done;
    for (std::size_t i = 0; i < wish_.pods.size(); ++i) {
      const PodRequest& pod = wish_.pods[i];
      if (const auto planned = planned_.find(pod.id.uid); planned != planned_.end()) {
        AddPlanned(i, *planned->second);
      } else if (!StartsWhole(pod)) {
        Add({.name = pod.id.full_name(), .pods = {i}});
      } else if (done.insert(pod.gang.id).second) {
        AddGang(pod.gang.id);
      }
    }
    return std::move(units_);
  }

 private:
  [[nodiscard]] bool StartsWhole(const PodRequest& pod) const {
    return !pod.gang.empty() && wish_.starts_whole && wish_.starts_whole(pod);
  }

  // What is planned already, and the members of gangs: those that wait, and where the others are.
  void FindMembers() {
    std::set<GangId> asked;
    for (const PodRequest& pod : wish_.pods) {
      if (!pod.gang.empty()) asked.insert(pod.gang.id);
    }
    now_->ForEachPod([&](const auto& held, NodeIndex node) {
      if (held->state == PodState::kPlanned) planned_.emplace(held->pod.id.uid, held.get());
      const GangId& gang = held->pod.gang.id;
      if (!held->leaving && asked.contains(gang)) present_[gang].push_back(node);
    });
    for (std::size_t i = 0; i < wish_.pods.size(); ++i) {
      const PodRequest& pod = wish_.pods[i];
      const bool is_planned = planned_.contains(pod.id.uid);
      if (StartsWhole(pod) && !is_planned) waiting_[pod.gang.id].push_back(i);
    }
  }

  // A goal that is about to be reached: its pods have their places.
  void AddPlanned(std::size_t i, const PodRecord& held) {
    const PodRequest& pod = wish_.pods[i];
    const bool is_gang = StartsWhole(pod);
    const std::string name = is_gang ? pod.gang.id.full_name() : pod.id.full_name();
    auto unit = std::ranges::find(units_.units, name, &RoomUnit::name);
    if (unit == units_.units.end()) {
      unit = units_.units.insert(unit, {.name = name, .is_gang = is_gang});
      unit->plan.found = unit->plan.optimal = true;
    }
    const NodeIndex node = now_->names().Find(held.placement.node);
    unit->plan.places.push_back({unit->pods.size(), node, held.placement});
    unit->pods.push_back(i);
  }

  void AddGang(const GangId& gang) {
    std::vector<std::size_t> members = waiting_[gang];
    std::ranges::sort(members, {}, [this](std::size_t i) {
      const PodRequest& pod = wish_.pods[i];
      return std::tuple<int, std::string_view>(MemberRank(pod), pod.id.name);
    });
    const PodRequest& first = wish_.pods[members.front()];
    std::erase_if(members, [&](std::size_t i) {
      return !WhyApart(wish_.pods[i], first.gang, first.scheduler).empty();
    });
    const std::int64_t minimum = first.gang.minimum.value_or(0);
    const auto present = std::ssize(present_[gang]);
    const std::int64_t needed = minimum == 0 ? std::ssize(members) : minimum - present;
    if (needed <= 0) {  // it has begun: the others come as they come
      for (const std::size_t i : members) {
        Add({.name = wish_.pods[i].id.full_name(), .pods = {i}});
      }
      return;
    }
    RoomUnit unit{.name = gang.full_name(), .is_gang = true};
    if (std::ssize(members) < needed) {
      unit.problem = "of the " + CountText(needed, "pod") + " that it needs, " +
                     std::to_string(members.size()) + (members.size() == 1 ? " waits" : " wait");
    } else if (RequiresParts(first.gang)) {
      unit.problem = "its groups have topology levels of their own, and room is not planned so";
    } else if (!first.gang.has_roles) {  // else which of them it needs is for the plan of the gang
      members.resize(static_cast<std::size_t>(needed));
    }
    unit.pods = std::move(members);
    Add(std::move(unit));
  }

  // The nodes of each domain that the unit's pods could be in together; nothing: any nodes.
  [[nodiscard]] std::optional<std::vector<std::vector<NodeIndex>>> DomainsFor(
      const RoomUnit& unit) const {
    if (unit.pods.empty() || wish_.tree == nullptr) return std::nullopt;
    const PodRequest& first = wish_.pods[unit.pods.front()];
    const std::optional<std::size_t> level = first.domain.required;
    if (!level || *level >= wish_.tree->levels()) return std::nullopt;
    std::map<TopologyDomain, std::vector<NodeIndex>> domains;
    for (NodeIndex i = 0; i < now_->size(); ++i) {
      const TopologyDomain domain = wish_.tree->DomainOf(i, *level);
      if (wish_.tree->named(domain)) domains[domain].push_back(i);
    }
    const auto present = present_.find(first.gang.id);
    std::vector<std::vector<NodeIndex>> places;
    for (auto& [domain, nodes] : domains) {
      const bool has_all = first.gang.empty() || present == present_.end() ||
                           std::ranges::all_of(present->second, [&, in = domain](NodeIndex node) {
                             return wish_.tree->DomainOf(node, *level) == in;
                           });
      if (has_all) places.push_back(std::move(nodes));
    }
    return places;
  }

  // What it asks for; if it cannot be planned for, the unit says why.
  [[nodiscard]] RoomGoal GoalOf(RoomUnit& unit) const {
    RoomGoal goal;
    if (unit.pods.empty()) {
      goal.idle_nodes = wish_.idle_nodes;
      goal.model = wish_.model;
      const auto may = [&](NodeIndex i) { return CanBeIdle(now_->node(i), goal.model); };
      if (!goal.model.empty() && std::ranges::none_of(UpTo(now_->size()), may)) {
        unit.problem = "no node that is ready and takes GPU pods has GPUs of that model";
      }
    }
    if (unit.pods.size() > kMostUnitPods && unit.problem.empty()) {
      unit.problem = "it has " + CountText(std::ssize(unit.pods), "pod") +
                     ", and room is planned for at most " + std::to_string(kMostUnitPods);
      unit.pods.clear();
    }
    for (const std::size_t i : unit.pods) {
      if (unit.problem.empty()) unit.problem = wish_.pods[i].refusal;
      goal.pods.push_back(wish_.pods[i]);
    }
    if (auto places = DomainsFor(unit)) {
      if (places->empty() && unit.problem.empty()) {
        unit.problem = "no topology domain of the level that it requires holds its other pods";
      }
      goal.within = *std::move(places);
    }
    return goal;
  }

  void Add(RoomUnit unit) {
    const std::optional<SearchLimits> limits = units_.units.size() == kMostUnits ? std::nullopt
                                               : wish_.limits                    ? wish_.limits()
                                                                                 : wish_.ask.limits;
    if (!limits) {
      ++units_.beyond;
      return;
    }
    RoomAsk ask = wish_.ask;
    ask.snapshot = now_;
    ask.limits = *limits;
    ask.goal = GoalOf(unit);
    if (unit.problem.empty()) {
      unit.plan = MakeRoom(ask);
      if (unit.plan.found) now_ = unit.plan.after;
    }
    units_.units.push_back(std::move(unit));
  }

  const RoomWish& wish_;
  std::shared_ptr<const Snapshot> now_;
  std::map<GangId, std::vector<std::size_t>> waiting_;
  std::map<GangId, std::vector<NodeIndex>> present_;      // a node for each member
  std::map<std::string_view, const PodRecord*> planned_;  // by UID; of the wish's snapshot
  RoomUnits units_;
};

}  // namespace

RoomUnits RoomFor(const RoomWish& wish) { return UnitPlanner(wish).Plan(); }

}  // namespace berth
