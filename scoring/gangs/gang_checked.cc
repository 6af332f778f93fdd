// SPDX-License-Identifier: Apache-2.0
#include "scoring/gangs/gang_checked.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "cluster/values/alike.h"
#include "scoring/admission.h"
#include "scoring/explain/other_limits.h"
#include "scoring/judgement.h"
#include "scoring/registry.h"
#include "scoring/victims.h"

namespace berth {

void Exclude(GangMember& member, NodeIndex node) {
  const auto at = std::ranges::lower_bound(member.excluded, node);
  if (at == member.excluded.end() || *at != node) member.excluded.insert(at, node);
}

tl::expected<GangPlan, GangShortage> PlanChecked(const GangAsk& ask, const GangPlanner& plan,
                                                 PlacesCheck& check) {
  constexpr int kMostTries = 32, kMostThatStay = 8;
  tl::expected<GangPlan, GangShortage> found = plan(ask);
  GangAsk first_stay, without;  // a large gang is copied only where a place is refused
  bool do_stay = true;
  for (int tries = 0; found; ++tries) {
    check.Begin();
    std::vector<const GangPlan::Place*> taken, refused;
    for (const GangPlan::Place& place : found->places) {
      const bool is_taken = check.Take(place);
      if (ask.members[place.member].fixed != kNoNode) continue;  // it is there, or has to be
      (is_taken ? taken : refused).push_back(&place);
    }
    if (refused.empty()) return found;
    if (tries == kMostTries) return tl::unexpected(GangShortage{.searched = false});
    if (tries == 0) first_stay = without = ask;
    for (const auto* place : taken) first_stay.members[place->member].fixed = place->node;
    for (const auto* place : refused) {
      Exclude(first_stay.members[place->member], place->node);
      for (std::size_t i = 0; i < ask.members.size(); ++i) {
        if (ask.members[i].fixed != place->node) Exclude(without.members[i], place->node);
      }
    }
    do_stay = do_stay && tries < kMostThatStay;
    if (do_stay) found = plan(first_stay);
    if (!do_stay || !found) {
      do_stay = false;
      found = plan(without);
    }
  }
  return found;
}

namespace {

// Between a number of nodes that is too small and one that suffices the smallest is looked for
// where that is so cheap.
constexpr std::size_t kMostNodesToSpare = 512;
constexpr int kMostTriesOfGangs = 16;  // which of those on several nodes go

struct Clearable {
  NodeIndex node = kNoNode;
  GangId gang = {};               // that ends with others on other nodes
  std::vector<std::string> uids;  // that may go
  int priority = std::numeric_limits<int>::min();
  int pods = 0;
};

std::vector<Clearable> ClearableNodes(const Snapshot& snapshot, const PodRequest& pod,
                                      const EvictionLimits& limits) {
  std::vector<Clearable> nodes;
  for (NodeIndex index = 0; index < snapshot.size(); ++index) {
    const Node& node = snapshot.node(index);
    if (node.gpus().empty() || node.lowest_priority() >= pod.priority) continue;
    Clearable clearable{.node = index, .uids = EvictableFrom(node, pod, limits)};
    for (const std::string& uid : clearable.uids) {
      const PodRecord* const held = node.FindPod(uid);
      if (limits.Ends(held->pod.gang.id)) clearable.gang = held->pod.gang.id;
      if (held->leaving) continue;
      clearable.priority = std::max(clearable.priority, held->pod.priority);
      ++clearable.pods;
    }
    if (!clearable.uids.empty()) nodes.push_back(std::move(clearable));
  }
  std::ranges::sort(nodes, {}, [](const Clearable& node) {
    return std::tuple(node.priority, node.pods, std::cref(node.gang), node.node);
  });
  return nodes;
}

const PodRequest& LeastOf(const GangAsk& ask) {
  const auto priority = [](const GangMember& member) { return member.pod.priority; };
  return std::ranges::min_element(ask.members, {}, priority)->pod;
}

struct GangOnNodes {
  GangId id = {};
  std::set<NodeIndex> nodes = {};     // of all of its pods
  std::set<NodeIndex> to_clear = {};  // of those with GPUs that do not end anyway
  int priority = std::numeric_limits<int>::min();
  std::vector<const PodRecord*> pods = {};

  [[nodiscard]] bool Allows(const PodDisruptionBudget& budget) const {
    const auto spends = [&budget](const PodRecord* held) {
      return !held->leaving && budget.Covers(held->pod);
    };
    return std::cmp_less_equal(std::ranges::count_if(pods, spends),
                               std::max(budget.disruptions_allowed, 0));
  }
};

// Gangs on several nodes all of whose pods may be evicted for the pod, the least important first.
std::vector<GangOnNodes> GangsOnNodes(const Snapshot& snapshot, const PodRequest& pod,
                                      const EvictionLimits& limits) {
  std::map<GangId, GangOnNodes> found;
  for (NodeIndex index = 0; limits.gang_size && index < snapshot.size(); ++index) {
    if (snapshot.node(index).lowest_priority() >= pod.priority) continue;
    for (const auto& held : snapshot.node(index).pods()) {
      if (held->pod.gang.empty() || held->pod.gang.id == pod.gang.id) continue;
      if (!held->leaving && !MayBeEvictedFor(*held, pod)) continue;
      GangOnNodes& gang = found[held->pod.gang.id];
      gang.pods.push_back(held.get());
      gang.nodes.insert(index);
      if (held->leaving) continue;
      gang.priority = std::max(gang.priority, held->pod.priority);
      if (held->pod.shape.wants_gpu()) gang.to_clear.insert(index);
    }
  }
  std::vector<GangOnNodes> gangs;
  for (auto& [id, gang] : found) {
    if (gang.nodes.size() < 2 || gang.pods.size() != limits.gang_size(id)) continue;
    const GangOnNodes& its = gang;
    if (!std::ranges::all_of(limits.budgets, [&its](const auto& b) { return its.Allows(b); }))
      continue;
    gang.id = id;
    gangs.push_back(std::move(gang));
  }
  std::ranges::sort(gangs, {}, [](const GangOnNodes& gang) {
    return std::tuple(gang.priority, gang.pods.size(), std::cref(gang.id));
  });
  return gangs;
}

// The plan where the first nodes are emptied.
tl::expected<GangPlan, GangShortage> PlanWith(const Planning& with, const GangAsk& ask,
                                              std::span<const Clearable> emptied) {
  std::shared_ptr<const Snapshot> snapshot = with.snapshot;
  for (const Clearable& clearable : emptied) {
    auto node =
        std::make_shared<const Node>(WithoutPods(snapshot->node(clearable.node), clearable.uids));
    snapshot = std::make_shared<const Snapshot>(snapshot->With(clearable.node, std::move(node)));
  }
  return PlanGang({snapshot, with.tree, with.engine, with.room}, ask);
}

// Nodes on which nobody is evicted for the pod: kube-scheduler has room there by its own count, so
// that it names no victims; or others have room kept there, which may come free later. Sorted.
std::vector<NodeIndex> NotCleared(const Snapshot& snapshot, const PodRequest& pod,
                                  const Reservations& kept) {
  std::vector<NodeIndex> nodes;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    if (Admits(node.spec(), pod) != Reason::kFits) continue;
    const bool names_nobody = FirstObjection(node, pod.shape) != Reason::kFits &&
                              HasSchedulersRoom(node, pod) && LackOf(node, pod).empty();
    if (names_nobody || !kept.MayClear(pod, snapshot, i)) nodes.push_back(i);
  }
  return nodes;
}

class AfterClearing final : public BesideKept {
 public:
  AfterClearing(const GangAsk& ask, const Snapshot& snapshot, const Clearing& clearing)
      : BesideKept(ask, clearing.kept.earmarks(), snapshot), clearing_(clearing) {}

  void Begin() override {
    nodes_.clear();
    fit_now.clear();
    cleared.clear();
    ending.clear();
    victims.clear();
    BesideKept::Begin();
  }

  bool Take(const GangPlan::Place& place) override {
    const PodRequest& pod = PodOf(place);
    const std::shared_ptr<const Node> node = snapshot().shared(place.node);
    OnNode& on = nodes_.try_emplace(place.node, OnNode{node, node}).first->second;
    auto with = WithPod(*on.now, pod);
    const bool one_by_one = clearing_.nominated != nullptr;
    if (with == nullptr && !pod.may_preempt) return false;  // nobody is evicted for it
    if (with == nullptr && one_by_one && !AreNamed(place, on)) return false;
    if (!BesideKept::Take(place)) return false;
    if (with == nullptr || (one_by_one && clearing_.nominated->contains(pod.id.uid))) {
      const Placement counted{
          place.placement.node, pod.shape.cpu_milli, pod.shape.memory_bytes, {}};
      auto nominated = std::make_shared<Node>(*on.by_scheduler);
      nominated->Put(
          std::make_shared<const PodRecord>(PodRecord{pod, counted, PodState::kBound, {}}));
      on.by_scheduler = std::move(nominated);
    }
    if (with == nullptr) return true;
    on.now = std::move(with);
    fit_now.insert(place.member);
    return true;
  }

  std::set<std::size_t> fit_now;
  std::set<NodeIndex> cleared;
  std::set<GangId> ending;  // those of limits.ending with a victim
  std::set<std::string> victims;

 private:
  struct OnNode {
    std::shared_ptr<const Node> now;           // with those that need nobody to go
    std::shared_ptr<const Node> by_scheduler;  // with those that are nominated
  };

  bool AreNamed(const GangPlan::Place& place, const OnNode& on) {
    const EvictionLimits& limits = clearing_.limits;
    const PodRequest& pod = PodOf(place);
    const auto named = SchedulerVictims(*on.by_scheduler, pod, limits.budgets);
    if (!named) return false;
    const auto agreed = AgreedVictims(snapshot().With(place.node, on.now), pod, {}, place.node,
                                      *named, limits, &clearing_.kept, limits.gangs_may_break);
    if (!agreed) return false;
    cleared.insert(place.node);
    for (const std::string& uid : agreed->uids) {
      const PodRecord* const held = on.now->FindPod(uid);
      if (held == nullptr) continue;
      victims.insert(held->pod.id.full_name());
      if (limits.Ends(held->pod.gang.id)) ending.insert(held->pod.gang.id);
    }
    return true;
  }

  const Clearing clearing_;
  std::map<NodeIndex, OnNode> nodes_;
};

}  // namespace

tl::expected<GangPlan, GangShortage> PlanAfterEvictions(const Planning& with, const GangAsk& ask,
                                                        const EvictionLimits& limits) {
  const std::vector<Clearable> nodes = ClearableNodes(*with.snapshot, LeastOf(ask), limits);
  if (nodes.empty()) return PlanGang(with, ask);
  const auto first = [&nodes](std::size_t count) { return std::span(nodes).first(count); };
  std::size_t too_few = 0, enough = std::min(nodes.size(), ask.members.size());
  auto plan = PlanWith(with, ask, first(enough));
  while (!plan && enough < nodes.size()) {
    too_few = std::exchange(enough, std::min(nodes.size(), enough * 2));
    plan = PlanWith(with, ask, first(enough));
  }
  while (plan && enough - too_few > 1 && enough <= kMostNodesToSpare) {
    const std::size_t middle = (too_few + enough) / 2;
    auto smaller = PlanWith(with, ask, first(middle));
    (smaller ? enough : too_few) = middle;
    if (smaller) plan = std::move(smaller);
  }
  return plan;
}

std::optional<ClearedPlan> PlanToClear(const Planning& with, GangAsk ask,
                                       const Clearing& clearing) {
  const PodRequest* alike = nullptr;  // the last one that is not cleared for on these nodes
  std::vector<NodeIndex> closed;
  for (GangMember& member : ask.members) {
    if (alike == nullptr || !SamePodKind(*alike, member.pod)) {
      closed = NotCleared(*with.snapshot, member.pod, clearing.kept);
    }
    alike = &member.pod;
    for (const NodeIndex node : closed) {
      if (member.fixed != node) Exclude(member, node);
    }
  }
  std::set<NodeIndex> cleared;
  std::set<GangId> ending;
  EvictionLimits limits = clearing.limits;
  limits.ending = &ending;
  const auto plan_so = [&]() -> std::optional<ClearedPlan> {
    AfterClearing check(ask, *with.snapshot, {clearing.kept, limits, clearing.nominated});
    auto plan = PlanChecked(
        ask, [&](const GangAsk& members) { return PlanAfterEvictions(with, members, limits); },
        check);
    if (!plan) return std::nullopt;
    cleared = std::move(check.cleared);
    return ClearedPlan{*std::move(plan), std::move(check.fit_now), std::move(check.ending),
                       std::move(check.victims)};
  };
  auto found = plan_so();
  if (found || clearing.nominated == nullptr) return found;
  // Gangs on several nodes: as few as will do, each of which goes whole.
  std::vector<GangOnNodes> gangs = GangsOnNodes(*with.snapshot, LeastOf(ask), limits);
  for (const GangOnNodes& gang : gangs) ending.insert(gang.id);
  if (gangs.empty() || !plan_so()) return std::nullopt;
  ending.clear();
  std::optional<ClearedPlan> breaking;
  std::size_t next = 0, more = 1;
  bool fits = false;
  for (int tries = 1; tries < kMostTriesOfGangs; ++tries) {
    if (!fits && next == gangs.size()) break;
    for (std::size_t i = 0; !fits && i < more && next < gangs.size(); ++i) {
      ending.insert(gangs[next++].id);
    }
    if (!fits && tries > kMostTriesOfGangs / 4) more *= 2;
    found = plan_so();
    fits = found.has_value();
    if (!fits) continue;
    std::size_t broken = 0;
    for (const GangOnNodes& gang : gangs) {
      if (!found->ending.contains(gang.id) || std::ranges::includes(cleared, gang.to_clear))
        continue;
      broken += ending.erase(gang.id);
    }
    if (broken == 0) return found;
    if (limits.gangs_may_break && !breaking) breaking = std::move(found);
  }
  return breaking;
}

}  // namespace berth
