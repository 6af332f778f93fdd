// SPDX-License-Identifier: Apache-2.0
//
// GangTable: members that get their devices by ResourceClaims. kube-scheduler binds these pods, so
// no bind of theirs is held. In place of that the claims of the whole plan are allocated at once,
// while kube-scheduler waits for what filter says of one member, that one's first: before that
// nothing is written, after it every member fits the node of its devices alone.
//
// What of it is there after a restart: members whose claims are allocated stay on the nodes of
// their devices in the next plan, and those of the others are allocated. If there is no such plan
// they fit nowhere, and kube-scheduler takes their devices back.
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "server/extender/gangs/roster/gang_limits.h"
#include "server/extender/gangs/table/gang_table.h"

namespace berth {

bool GangTable::MayAllocate(const Unit& unit) const {
  if (unit.roll.began) return true;
  GangCount ready{unit.roll.bound, unit.roll.bound_roles};
  for (const auto& [uid, member] : unit.plan.members) {
    if (!member.needs_bind()) ready.Add(unit.roll.says, *member.pod);
  }
  return unit.roll.Missing(ready) == 0;
}

GangVerdict GangTable::JudgeClaims(Unit& unit, const PodRequest& pod, NodeIndex node) {
  if (unit.plan.allocating || !plans_.leads() || !MayAllocate(unit)) {
    return NotNow(unit, pod, Reason::kGangNoRoom);
  }
  const ClaimState claims = rosters_.ClaimsOf(unit, pod);
  if (claims == ClaimState::kUnseen) return NotNow(unit, pod, Reason::kGangNoRoom);
  const bool is_allocated = claims == ClaimState::kAllocated;
  GangVerdict verdict{GangVerdict::Kind::kAllocates, node, Reason::kFits};
  for (const auto& [uid, member] : unit.plan.members) {
    if (rosters_.ClaimsOf(unit, *member.pod) != ClaimState::kOpen) continue;
    verdict.allocate.push_back({member.pod->id, member.pod->claims, member.node});
    if (uid == pod.id.uid) std::swap(verdict.allocate.front(), verdict.allocate.back());
  }
  if (is_allocated && (verdict.allocate.empty() || unit.roll.began)) {
    unit.wait.asleep.erase(pod.id.uid);
    return {GangVerdict::Kind::kThere, node, Reason::kFits};
  }
  verdict.goes_on = is_allocated;
  unit.plan.allocating = true;
  unit.wait.asleep.insert_or_assign(pod.id.uid, pod.id);
  return verdict;
}

void GangTable::Allocated(const GangId& gang, bool allocated, Instant now, GangActions& actions) {
  const std::shared_ptr<Unit> known = Find(gang);
  if (known == nullptr) return;
  Unit& unit = *known;
  const MutexLock lock(unit.mutex);
  if (!std::exchange(unit.plan.allocating, false) || unit.forgotten) return;
  if (!allocated) {
    unit.roll.claims_left = ++unit.plan.lost_claims >= gangs::kMostLostClaims;
    if (unit.roll.began) {  // it only goes forward: what is bound stays
      return commits_.DropPlan(unit, gangs::Conflict(gangs::kClaimsLost), actions);
    }
    return commits_.Abort(unit, gangs::Conflict(gangs::kClaimsLost), "claims_lost", now, actions);
  }
  unit.plan.lost_claims = 0;
  unit.plan.touched = now;
  std::int64_t members = 0;
  PodId first;
  for (const auto& [uid, member] : unit.plan.members) {
    if (rosters_.ClaimsOf(unit, *member.pod) == ClaimState::kNone) continue;
    if (++members == 1) first = member.pod->id;
    const auto asleep = unit.wait.asleep.find(uid);
    if (asleep == unit.wait.asleep.end()) continue;
    unit.wait.asked.insert(uid);
    actions.wakes.push_back(asleep->second);
    unit.wait.asleep.erase(asleep);
  }
  if (unit.roll.began || members == 0) return;
  unit.wait.pause = unit.wait.absent_pause = {};
  actions.news.push_back({.what = GangNews::What::kBegun,
                          .gang = unit.roll.says.id,
                          .pod = first,
                          .text = CountText(members, "pod") + " got devices by claims"});
}

}  // namespace berth
