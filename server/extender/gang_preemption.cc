// SPDX-License-Identifier: Apache-2.0
//
// GangTable: for which members others may be evicted, and where.
#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "cluster/values/alike.h"
#include "scoring/explain/other_limits.h"
#include "scoring/reason.h"
#include "scoring/registry.h"
#include "scoring/scheduler_victims.h"
#include "server/extender/gang_limits.h"
#include "server/extender/gang_table.h"

namespace berth {
namespace {

// Whether the pod fits the node, or would without pods of lower priority.
bool MayStillCome(const Snapshot& snapshot, const PodRequest& pod, const std::string& name) {
  const NodeIndex index = snapshot.names().Find(name);
  if (index == kNoNode) return false;
  const Node& node = snapshot.node(index);
  const Reason reason = AfterEvictions(node, pod, FirstObjection(node, pod.shape));
  if (VerdictOf(reason) == Verdict::kUnresolvable) return false;
  const Node left = node.Without(
      [&pod](const PodRecord& held) { return held.leaving || held.pod.priority < pod.priority; });
  return LackOf(left, pod).empty();
}

bool HasLeaving(const Snapshot& snapshot, const std::string& name) {
  const NodeIndex index = snapshot.names().Find(name);
  return index != kNoNode && std::ranges::any_of(snapshot.node(index).pods(),
                                                 [](const auto& held) { return held->leaving; });
}

}  // namespace

GangVerdict GangTable::Preempt(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
                               const PodRequest& pod, std::span<const NodeIndex> candidates,
                               const EvictionLimits& limits, Instant now) {
  if (!Takes(*settings(), pod)) return {};
  const GangVerdict nowhere{GangVerdict::Kind::kNotNow, kNoNode, Reason::kGangNoRoom};
  if (!pod.gang.minimum) return nowhere;
  const std::shared_ptr<Unit> known = UnitOf(pod, now);
  if (known == nullptr) return nowhere;
  Unit& unit = *known;
  const MutexLock lock(unit.mutex);
  HasCome(unit, pod, now);
  Heed(unit, pod);
  // Nobody is evicted for devices of claims: Kubernetes takes them back later than the pod ends.
  if (ClaimsOf(unit, pod) != ClaimState::kNone) return nowhere;
  const Roster roster = RosterOf(unit, std::make_shared<const PodRequest>(pod));
  Note(unit, roster, now);
  if (MayGo(unit, roster, pod, now)) return {};
  // kube-scheduler found no room for it, perhaps without asking filter.
  unit.wait.asleep.insert_or_assign(pod.id.uid, pod.id);
  const bool is_enough = unit.roll.Missing(roster.all) == 0;
  if (!is_enough || !MayPlan(unit, now)) return nowhere;
  if (!unit.clearing.nominated.empty()) KeepWhatIsFree(engine, unit, roster);
  PlanToClear(engine, unit, roster, limits, true, now);
  const Offered offered{*snapshot, candidates};
  MoveToAsked(unit, roster, pod, offered);
  const NodesByUid& nodes = unit.clearing.nodes.to_clear;
  const auto own = nodes.find(pod.id.uid);
  if (own == nodes.end() || unit.clearing.kept.contains(pod.id.uid)) return nowhere;
  const NodeIndex node = offered.Find(own->second);
  if (node == kNoNode) return nowhere;
  KeepWhatIsFree(engine, unit, roster);
  return {GangVerdict::Kind::kThere, node, Reason::kFits};
}

void GangTable::Answered(const PodRequest& pod, bool evicts, Instant now) {
  const std::shared_ptr<Unit> unit = Find(pod.gang.id);
  if (unit == nullptr) return;
  const MutexLock lock(unit->mutex);
  if (evicts) {
    unit->clearing.nominated.insert(pod.id.uid);
    unit->clearing.nominated_at = now;
  } else if (unit->clearing.nominated.empty()) {
    StopClearing(*unit);  // it keeps what is free for nothing
  }
}

// kube-scheduler asks about some nodes of a large cluster. Pods that ask for the same may change
// places, until others are evicted for one of them: kube-scheduler counts it as nominated to its
// node then, and would evict for the second one beside it.
void GangTable::MoveToAsked(Unit& unit, const Roster& roster, const PodRequest& pod,
                            const Offered& offered) {
  NodesByUid& nodes = unit.clearing.nodes.to_clear;
  const auto may_move = [&unit](const std::string& uid) {
    return !unit.clearing.kept.contains(uid) && !unit.clearing.nominated.contains(uid) &&
           !unit.clearing.told.contains(uid);
  };
  const auto own = nodes.find(pod.id.uid);
  if (own == nodes.end() || !may_move(pod.id.uid)) return;
  if (offered.Find(own->second) != kNoNode) return;
  for (const auto& member : roster.waiting) {
    const auto other = nodes.find(member->id.uid);
    if (other == nodes.end() || !may_move(member->id.uid)) continue;
    if (offered.Find(other->second) == kNoNode || !SamePodKind(*member, pod)) continue;
    std::swap(own->second, other->second);
    return;
  }
}

bool GangTable::MayPlan(const Unit& unit, Instant now) const {
  return unit.plan.phase == GangPlanned::Phase::kNone && !lets_go_ && !unit.forgotten &&
         now >= unit.wait.not_before && MayHold(unit);
}

bool GangTable::MayTell(const Unit& unit, const Roster& roster, const PodRequest& pod,
                        const Node& node) {
  // Without those that need room they are too few, so that nothing is bound.
  if (unit.clearing.nodes.beside.contains(pod.id.uid)) {
    return roster.placed.pods + std::ssize(unit.clearing.nodes.beside) < unit.roll.needs;
  }
  std::int64_t given = 0;
  for (const auto& member : roster.waiting) {
    const std::string& uid = member->id.uid;
    const std::string* const other = unit.clearing.nodes.NodeOf(uid);
    if (unit.clearing.told.contains(uid) && other != nullptr && *other == node.spec().name) {
      given += GpusCountedFor(node.spec(), member->shape);
    }
  }
  return PodsAreTakenAway(node, pod, given) && AnyEvictionsWillDo(node, pod);
}

GangVerdict GangTable::FilterWithoutOthers(Engine& engine,
                                           const std::shared_ptr<const Snapshot>& snapshot,
                                           const PodRequest& pod,
                                           std::span<const NodeIndex> candidates,
                                           const EvictionLimits& limits, Instant now) {
  const GangVerdict nowhere{GangVerdict::Kind::kNotNow, kNoNode, Reason::kGangNoRoom};
  const std::shared_ptr<Unit> known = Find(pod.gang.id);
  if (known == nullptr) return nowhere;
  Unit& unit = *known;
  const MutexLock lock(unit.mutex);
  unit.may_give_way = false;
  if (!unit.roll.says.minimum || !MayPlan(unit, now)) return nowhere;
  if (ClaimsOf(unit, pod) != ClaimState::kNone) return nowhere;
  const Roster roster = RosterOf(unit, std::make_shared<const PodRequest>(pod));
  const std::int64_t needed = unit.roll.Missing(roster.placed);
  if (std::ssize(roster.waiting) < needed) return nowhere;
  const std::string& uid = pod.id.uid;
  if (unit.clearing.told.contains(uid)) unit.clearing.told.clear();  // it asks about all anew
  PlanToClear(engine, unit, roster, limits, false, now);
  const Offered offered{*snapshot, candidates};
  MoveToAsked(unit, roster, pod, offered);
  const std::string* const own = unit.clearing.nodes.NodeOf(uid);
  const NodeIndex node = own == nullptr ? kNoNode : offered.Find(*own);
  if (node == kNoNode) return nowhere;
  if (!MayTell(unit, roster, pod, snapshot->node(node))) return nowhere;
  unit.clearing.told.insert(uid);
  if (std::ssize(unit.clearing.told) >= needed) {
    unit.clearing.nominated.insert(unit.clearing.told.begin(), unit.clearing.told.end());
    unit.clearing.nominated_at = now;
    KeepWhatIsFree(engine, unit, roster);
  }
  return {GangVerdict::Kind::kThere, node, Reason::kFits};
}

void GangTable::PlanToClear(Engine& engine, Unit& unit, const Roster& roster,
                            const EvictionLimits& limits, bool one_by_one, Instant now) {
  const bool is_same = unit.clearing.found_change == roster.change;
  const bool is_young = now - unit.clearing.found_at < gangs::kBetweenClearings;
  if (is_same && (is_young || unit.clearing.found_on == planning_.Ground(false))) return;
  std::optional<GangToPlan> ask = MembersToPlan(unit, roster, now);
  if (!ask) return;
  // Those for which others are evicted already, or are to be, or that keep a place, stay there.
  if (one_by_one) ask->nominated = unit.clearing.nominated;
  bool has_begun = !unit.clearing.nominated.empty();
  for (const auto& pod : roster.waiting) {
    const std::string& uid = pod->id.uid;
    if (!unit.clearing.told.contains(uid) && !unit.clearing.kept.contains(uid)) continue;
    const auto* const node = unit.clearing.nodes.NodeOf(uid);
    if (node != nullptr && ask->fixed.emplace(uid, *node).second) has_begun = true;
  }
  GangClearing clearing = planning_.PlanAfterEvictions(engine, *ask, limits);
  if (clearing.empty() && has_begun) {
    StopClearing(unit);
    return PlanToClear(engine, unit, roster, limits, one_by_one, now);
  }
  unit.clearing.nodes = std::move(clearing);
  unit.clearing.found_on = planning_.Ground(false);
  unit.clearing.found_at = now;
  unit.clearing.found_change = roster.change;
}

void GangTable::KeepWhatIsFree(Engine& engine, Unit& unit, const Roster& roster) {
  for (const auto& pod : roster.waiting) {
    const std::string& uid = pod->id.uid;
    if (unit.clearing.kept.contains(uid)) continue;
    const std::string* const node = unit.clearing.nodes.NodeOf(uid);
    if (node == nullptr || planning_.IsKeptFrom(*pod, *node)) continue;
    if (planning_.Keep(engine, *pod, *node)) unit.clearing.kept.insert(uid);
  }
  KeepCleared(unit, roster);
}

// Also where nobody is evicted yet: without that node those on others would be in vain.
void GangTable::KeepCleared(const Unit& unit, const Roster& roster) {
  if (parts_.rooms == nullptr) return;
  KeptNodes nodes;
  for (const auto& pod : roster.waiting) {
    const std::string& uid = pod->id.uid;
    const auto node = unit.clearing.nodes.to_clear.find(uid);
    if (unit.clearing.kept.contains(uid)) continue;
    if (node == unit.clearing.nodes.to_clear.end()) continue;
    nodes.try_emplace(node->second, KeptNode{{pod->id, pod->gang.id, pod->priority}});
  }
  parts_.rooms->KeepFor(unit.roll.says.id, std::move(nodes));
}

bool GangTable::MayFinishClearing(const Unit& unit, const Roster& roster, Instant now) const {
  if (unit.roll.Missing(roster.all) > 0) return false;
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  bool ending = false, all_kept = true;
  for (const auto& pod : roster.waiting) {
    const std::string& uid = pod->id.uid;
    if (unit.clearing.kept.contains(uid)) continue;
    const std::string* const node = unit.clearing.nodes.NodeOf(uid);
    if (node == nullptr) continue;
    all_kept = false;
    if (!MayStillCome(*snapshot, *pod, *node)) return false;
    ending = ending || (unit.clearing.nominated.contains(uid) && HasLeaving(*snapshot, *node));
  }
  const Duration since = now - unit.clearing.nominated_at;
  return since < gangs::kBetweenNominations || ((ending || all_kept) && since < gangs::kKeepsFor);
}

void GangTable::TendClearing(Engine& engine, Unit& unit, const Roster& roster, Instant now,
                             GangActions& actions) {
  if (unit.clearing.nominated.empty()) return;
  std::vector<std::string> gone;
  std::erase_if(unit.clearing.kept, [&](const std::string& uid) {
    if (roster.uids.contains(uid)) return false;
    gone.push_back(uid);
    return true;
  });
  parts_.state.Unplan(gone);
  KeepWhatIsFree(engine, unit, roster);  // first: the last of those evicted may have gone just now
  if (MayFinishClearing(unit, roster, now)) return;
  StopClearing(unit);  // kube-scheduler asks again about those that are woken
  for (const auto& [uid, id] : unit.wait.asleep) actions.wakes.push_back(id);
}

void GangTable::StopClearing(Unit& unit) {
  const std::vector<std::string> uids(unit.clearing.kept.begin(), unit.clearing.kept.end());
  parts_.state.Unplan(uids);
  if (parts_.rooms != nullptr) parts_.rooms->KeepFor(unit.roll.says.id, {});
  unit.clearing.kept.clear();
  unit.clearing.nominated.clear();
  unit.clearing.told.clear();
  unit.clearing.nodes = {};
  unit.clearing.nominated_at = {};
  unit.clearing.found_change = 0;
}

}  // namespace berth
