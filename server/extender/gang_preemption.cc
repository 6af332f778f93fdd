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
#include "server/extender/gang_limits.h"
#include "server/extender/gang_table.h"

namespace berth {
namespace {

// Whether each of the pods may still come to its node, once there is room.
bool MayStillCome(const Snapshot& snapshot, std::span<const std::shared_ptr<const PodRequest>> pods,
                  const NodesByUid& nodes) {
  return std::ranges::all_of(pods, [&](const auto& pod) {
    const auto at = nodes.find(pod->id.uid);
    if (at == nodes.end()) return true;
    const NodeIndex node = snapshot.names().Find(at->second);
    if (node == kNoNode) return false;
    return VerdictOf(FirstObjection(snapshot.node(node), pod->shape)) != Verdict::kUnresolvable;
  });
}

}  // namespace

GangVerdict GangTable::Preempt(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
                               const PodRequest& pod, std::span<const NodeIndex> candidates,
                               const EvictionLimits& limits, Instant now) {
  const MutexLock lock(mutex_);
  if (!ConcernsLocked(pod)) return {};
  const GangVerdict nowhere{GangVerdict::Kind::kNotNow, kNoNode, Reason::kGangNoRoom};
  if (!pod.gang.minimum) return nowhere;
  Unit& unit = UnitOf(pod, now);
  unit.says = pod.gang;
  unit.scheduler = pod.scheduler;
  const Roster roster = RosterOf(unit, std::make_shared<const PodRequest>(pod));
  Note(unit, roster, now);
  if (MayGo(unit, roster, pod, now)) return {};
  // kube-scheduler found no room for it, perhaps without asking filter.
  unit.asleep.insert_or_assign(pod.id.uid, pod.id);
  const bool is_enough = roster.placed + std::ssize(roster.waiting) >= *unit.says.minimum;
  if (!is_enough || unit.phase != Unit::Phase::kWaiting || lets_go_) return nowhere;
  PlanToClear(engine, unit, roster, limits, now);
  NodesByUid& nodes = unit.clearing.to_clear;
  const auto is_asked = [&](const std::string& name) {
    const NodeIndex node = snapshot->names().Find(name);
    return node != kNoNode && std::ranges::find(candidates, node) != candidates.end();
  };
  const auto own = nodes.find(pod.id.uid);
  if (own == nodes.end() || unit.kept.contains(pod.id.uid)) return nowhere;
  // kube-scheduler asks about some nodes of a large cluster. Pods that ask for the same may change
  // places, until others are evicted for one of them: kube-scheduler counts it as nominated to its
  // node then, and would evict for the second one beside it.
  const auto may_move = [&unit](const std::string& uid) {
    return !unit.kept.contains(uid) && !unit.nominated.contains(uid);
  };
  for (const auto& member : roster.waiting) {
    if (is_asked(own->second) || !may_move(pod.id.uid)) break;
    const auto other = nodes.find(member->id.uid);
    if (other == nodes.end() || !may_move(member->id.uid)) continue;
    if (is_asked(other->second) && AskForTheSame(*member, pod)) {
      std::swap(own->second, other->second);
    }
  }
  if (!is_asked(own->second)) return nowhere;
  unit.nominated.insert(pod.id.uid);
  unit.keeps_until = now + gangs::kKeepsFor;
  KeepWhatIsFree(engine, unit, roster);
  return {GangVerdict::Kind::kThere, snapshot->names().Find(own->second), Reason::kFits};
}

void GangTable::PlanToClear(Engine& engine, Unit& unit, const Roster& roster,
                            const EvictionLimits& limits, Instant now) {
  if (unit.cleared_members == roster.waiting.size()) {
    if (now < unit.keeps_until || now - unit.cleared_at < gangs::kBetweenClearings) return;
    if (unit.cleared_on == parts_.state.Current()) return;
  }
  StopClearing(unit);
  unit.cleared_on = parts_.state.Current();
  unit.cleared_at = now;
  unit.cleared_members = roster.waiting.size();
  unit.clearing = planning_.PlanAfterEvictions(engine, MembersToPlan(unit, roster), limits);
}

void GangTable::KeepWhatIsFree(Engine& engine, Unit& unit, const Roster& roster) {
  for (const auto& pod : roster.waiting) {
    const std::string& uid = pod->id.uid;
    if (unit.kept.contains(uid)) continue;
    for (const NodesByUid* nodes : {&unit.clearing.to_clear, &unit.clearing.beside}) {
      const auto node = nodes->find(uid);
      if (node != nodes->end() && planning_.Keep(engine, *pod, node->second)) unit.kept.insert(uid);
    }
  }
}

void GangTable::TendClearing(Engine& engine, Unit& unit, const Roster& roster, Instant now,
                             GangActions& actions) {
  if (unit.keeps_until == Instant()) return;
  const bool is_enough = roster.placed + std::ssize(roster.waiting) >= *unit.says.minimum;
  if (now >= unit.keeps_until || !is_enough) return StopClearing(unit);
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  if (!MayStillCome(*snapshot, roster.waiting, unit.clearing.to_clear) ||
      !MayStillCome(*snapshot, roster.waiting, unit.clearing.beside)) {
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
  unit.clearing = {};
  unit.keeps_until = {};
  unit.cleared_members = 0;
}

}  // namespace berth
