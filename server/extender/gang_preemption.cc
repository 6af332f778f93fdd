// SPDX-License-Identifier: Apache-2.0
//
// GangTable: for which members others may be evicted, and where.
#include <algorithm>
#include <utility>

#include "scoring/gangs/gang_class.h"
#include "server/extender/gang_limits.h"
#include "server/extender/gang_table.h"

namespace berth {

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
  const bool is_enough = roster.placed + std::ssize(roster.waiting) >= *unit.says.minimum;
  if (!is_enough || unit.phase != Unit::Phase::kWaiting || lets_go_) return nowhere;
  PlanToClear(engine, unit, roster, limits, now);
  const auto is_asked = [&](const std::string& name) {
    const NodeIndex node = snapshot->names().Find(name);
    return node != kNoNode && std::ranges::find(candidates, node) != candidates.end();
  };
  const auto own = unit.to_clear.find(pod.id.uid);
  if (own == unit.to_clear.end()) return nowhere;
  // kube-scheduler asks about some nodes of a large cluster. Pods that ask for the same may change
  // places.
  for (const auto& member : roster.waiting) {
    if (is_asked(own->second)) break;
    const auto other = unit.to_clear.find(member->id.uid);
    if (other == unit.to_clear.end() || !is_asked(other->second)) continue;
    if (AskForTheSame(*member, pod)) std::swap(own->second, other->second);
  }
  if (!is_asked(own->second)) return nowhere;
  return {GangVerdict::Kind::kThere, snapshot->names().Find(own->second), Reason::kFits};
}

void GangTable::PlanToClear(Engine& engine, Unit& unit, const Roster& roster,
                            const EvictionLimits& limits, Instant now) {
  const bool is_same = unit.cleared_members == roster.waiting.size();
  const bool is_young = now - unit.cleared_at < gangs::kBetweenClearings;
  if (is_same && (is_young || unit.cleared_on == parts_.state.Current())) return;
  unit.cleared_on = parts_.state.Current();
  unit.cleared_at = now;
  unit.cleared_members = roster.waiting.size();
  unit.to_clear = planning_.PlanAfterEvictions(engine, MembersToPlan(unit, roster), limits);
}

}  // namespace berth
