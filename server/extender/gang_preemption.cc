// SPDX-License-Identifier: Apache-2.0
//
// GangTable: for which members others may be evicted, and where.
#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "scoring/gangs/gang_class.h"
#include "scoring/reason.h"
#include "scoring/registry.h"
#include "scoring/taken_away.h"
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
  return VerdictOf(reason) != Verdict::kUnresolvable;
}

bool HasLeaving(const Snapshot& snapshot, const std::string& name) {
  const NodeIndex index = snapshot.names().Find(name);
  return index != kNoNode && std::ranges::any_of(snapshot.node(index).pods(),
                                                 [](const auto& held) { return held->leaving; });
}

// Whether the node of that name is one of the candidates.
auto AmongThem(const Snapshot& snapshot, std::span<const NodeIndex> candidates) {
  return [&snapshot, candidates](const std::string& name) {
    const NodeIndex node = snapshot.names().Find(name);
    return node != kNoNode && std::ranges::find(candidates, node) != candidates.end();
  };
}

}  // namespace

GangVerdict GangTable::Preempt(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
                               const PodRequest& pod, std::span<const NodeIndex> candidates,
                               const EvictionLimits& limits, Instant now) {
  const MutexLock lock(mutex_);
  if (!Takes(pod)) return {};
  const GangVerdict nowhere{GangVerdict::Kind::kNotNow, kNoNode, Reason::kGangNoRoom};
  if (!pod.gang.minimum) return nowhere;
  Unit* const known = UnitOf(pod, now);
  if (known == nullptr) return nowhere;
  Unit& unit = *known;
  unit.says = pod.gang;
  unit.scheduler = pod.scheduler;
  const Roster roster = RosterOf(unit, std::make_shared<const PodRequest>(pod));
  Note(unit, roster, now);
  if (MayGo(unit, roster, pod, now)) return {};
  // kube-scheduler found no room for it, perhaps without asking filter.
  unit.asleep.insert_or_assign(pod.id.uid, pod.id);
  const bool is_enough = roster.placed + std::ssize(roster.waiting) >= *unit.says.minimum;
  if (!is_enough || unit.phase != Unit::Phase::kWaiting || lets_go_) return nowhere;
  if (!unit.nominated.empty()) KeepWhatIsFree(engine, unit, roster);
  PlanToClear(engine, unit, roster, limits, now);
  const auto is_asked = AmongThem(*snapshot, candidates);
  MoveToAsked(unit, roster, pod, is_asked);
  const NodesByUid& nodes = unit.clearing.to_clear;
  const auto own = nodes.find(pod.id.uid);
  if (own == nodes.end() || unit.kept.contains(pod.id.uid)) return nowhere;
  if (!is_asked(own->second)) return nowhere;
  unit.nominated.insert(pod.id.uid);
  unit.nominated_at = now;
  KeepWhatIsFree(engine, unit, roster);
  return {GangVerdict::Kind::kThere, snapshot->names().Find(own->second), Reason::kFits};
}

// kube-scheduler asks about some nodes of a large cluster. Pods that ask for the same may change
// places, until others are evicted for one of them: kube-scheduler counts it as nominated to its
// node then, and would evict for the second one beside it.
void GangTable::MoveToAsked(Unit& unit, const Roster& roster, const PodRequest& pod,
                            const std::function<bool(const std::string& node)>& is_asked) const {
  NodesByUid& nodes = unit.clearing.to_clear;
  const auto may_move = [&unit](const std::string& uid) {
    return !unit.kept.contains(uid) && !unit.nominated.contains(uid) &&
           !unit.told_nodes.contains(uid);
  };
  const auto own = nodes.find(pod.id.uid);
  if (own == nodes.end() || is_asked(own->second) || !may_move(pod.id.uid)) return;
  for (const auto& member : roster.waiting) {
    const auto other = nodes.find(member->id.uid);
    if (other == nodes.end() || !may_move(member->id.uid)) continue;
    if (!is_asked(other->second) || !AskForTheSame(*member, pod)) continue;
    std::swap(own->second, other->second);
    return;
  }
}

bool GangTable::MayTell(const Unit& unit, const Roster& roster, const PodRequest& pod,
                        const Node& node) const {
  // Without those that need room they are too few, so that nothing is bound.
  if (unit.clearing.beside.contains(pod.id.uid)) {
    return roster.placed + std::ssize(unit.clearing.beside) < *unit.says.minimum;
  }
  std::int64_t given = 0;
  for (const auto& member : roster.waiting) {
    const std::string& uid = member->id.uid;
    const std::string* const other = unit.clearing.NodeOf(uid);
    if (unit.told_nodes.contains(uid) && other != nullptr && *other == node.spec().name) {
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
  const MutexLock lock(mutex_);
  const GangVerdict nowhere{GangVerdict::Kind::kNotNow, kNoNode, Reason::kGangNoRoom};
  const auto entry = units_.find(pod.gang.id);
  if (entry == units_.end() || !entry->second.says.minimum) return nowhere;
  Unit& unit = entry->second;
  const Roster roster = RosterOf(unit, std::make_shared<const PodRequest>(pod));
  const std::int64_t needed = *unit.says.minimum - roster.placed;
  if (std::ssize(roster.waiting) < needed) return nowhere;
  if (unit.phase != Unit::Phase::kWaiting || lets_go_) return nowhere;
  const std::string& uid = pod.id.uid;
  if (unit.told_nodes.contains(uid)) unit.told_nodes.clear();  // it asks about all anew
  PlanToClear(engine, unit, roster, limits, now);
  const auto is_asked = AmongThem(*snapshot, candidates);
  MoveToAsked(unit, roster, pod, is_asked);
  const std::string* const own = unit.clearing.NodeOf(uid);
  if (own == nullptr || !is_asked(*own)) return nowhere;
  const NodeIndex node = snapshot->names().Find(*own);
  if (!MayTell(unit, roster, pod, snapshot->node(node))) return nowhere;
  unit.told_nodes.insert(uid);
  if (std::ssize(unit.told_nodes) >= needed) {
    unit.nominated.insert(unit.told_nodes.begin(), unit.told_nodes.end());
    unit.nominated_at = now;
    KeepWhatIsFree(engine, unit, roster);
  }
  return {GangVerdict::Kind::kThere, node, Reason::kFits};
}

void GangTable::PlanToClear(Engine& engine, Unit& unit, const Roster& roster,
                            const EvictionLimits& limits, Instant now) {
  const bool is_same = unit.cleared_members == roster.waiting.size();
  const bool is_young = now - unit.cleared_at < gangs::kBetweenClearings;
  if (is_same && (is_young || unit.cleared_on == parts_.state.Current())) return;
  const GangToPlan ask = MembersToPlan(unit, roster);
  // Those for which others are evicted already, or are to be, or that keep a place, stay there.
  GangToPlan as_begun = ask;
  for (const auto& pod : roster.waiting) {
    const std::string& uid = pod->id.uid;
    const bool is_said = unit.nominated.contains(uid) || unit.told_nodes.contains(uid);
    if (!is_said && !unit.kept.contains(uid)) continue;
    if (const auto* const node = unit.clearing.NodeOf(uid)) as_begun.fixed.emplace(uid, *node);
  }
  GangClearing clearing = planning_.PlanAfterEvictions(engine, as_begun, limits);
  if (clearing.empty() && as_begun.fixed.size() > ask.fixed.size()) {
    StopClearing(unit);
    clearing = planning_.PlanAfterEvictions(engine, ask, limits);
  }
  unit.clearing = std::move(clearing);
  unit.cleared_on = parts_.state.Current();
  unit.cleared_at = now;
  unit.cleared_members = roster.waiting.size();
}

void GangTable::KeepWhatIsFree(Engine& engine, Unit& unit, const Roster& roster) {
  for (const auto& pod : roster.waiting) {
    const std::string& uid = pod->id.uid;
    if (unit.kept.contains(uid)) continue;
    const std::string* const node = unit.clearing.NodeOf(uid);
    if (node != nullptr && planning_.Keep(engine, *pod, *node)) unit.kept.insert(uid);
  }
}

bool GangTable::MayFinishClearing(const Unit& unit, const Roster& roster, Instant now) const {
  if (roster.placed + std::ssize(roster.waiting) < *unit.says.minimum) return false;
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  bool ending = false;
  for (const auto& pod : roster.waiting) {
    const std::string& uid = pod->id.uid;
    if (unit.kept.contains(uid)) continue;
    const std::string* const node = unit.clearing.NodeOf(uid);
    if (node == nullptr) continue;
    if (!MayStillCome(*snapshot, *pod, *node)) return false;
    ending = ending || (unit.nominated.contains(uid) && HasLeaving(*snapshot, *node));
  }
  const Duration since = now - unit.nominated_at;
  return since < gangs::kBetweenNominations || (ending && since < gangs::kKeepsFor);
}

void GangTable::TendClearing(Engine& engine, Unit& unit, const Roster& roster, Instant now,
                             GangActions& actions) {
  if (unit.nominated.empty()) return;
  if (!MayFinishClearing(unit, roster, now)) {
    StopClearing(unit);  // kube-scheduler asks again about those that are woken
    for (const auto& [uid, id] : unit.asleep) actions.wakes.push_back(id);
    return;
  }
  std::vector<std::string> gone;
  std::erase_if(unit.kept, [&](const std::string& uid) {
    if (roster.uids.contains(uid)) return false;
    gone.push_back(uid);
    return true;
  });
  parts_.state.Unplan(gone);
  KeepWhatIsFree(engine, unit, roster);
}

void GangTable::StopClearing(Unit& unit) {
  const std::vector<std::string> uids(unit.kept.begin(), unit.kept.end());
  parts_.state.Unplan(uids);
  unit.kept.clear();
  unit.nominated.clear();
  unit.told_nodes.clear();
  unit.clearing = {};
  unit.nominated_at = {};
  unit.cleared_members = 0;
}

}  // namespace berth
