// SPDX-License-Identifier: Apache-2.0
//
// GangTable: what filter and preempt say of a member.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "base/text.h"
#include "server/extender/gangs/roster/gang_limits.h"
#include "server/extender/gangs/table/gang_table.h"

namespace berth {

GangVerdict GangTable::NotNow(Unit& unit, const PodRequest& pod, Reason reason) {
  unit.wait.asleep.insert_or_assign(pod.id.uid, pod.id);
  return {GangVerdict::Kind::kNotNow, kNoNode, reason};
}

std::shared_ptr<GangUnit> GangTable::RivalOf(const Unit& unit, const PodRequest& pod,
                                             const Offered& offered) const {
  if (!pod.own_to_scheduler.host_ports && !pod.own_to_scheduler.keeps_apart) return nullptr;
  const auto is_open = [](const auto& member) {
    return member.second.needs_bind() && member.second.asks == 0;
  };
  if (std::cmp_greater_equal(offered.candidates.size(),
                             std::ranges::count_if(unit.plan.members, is_open))) {
    return nullptr;  // there are others for all of them
  }
  std::vector<bool> is_offered(offered.snapshot.size());
  for (const NodeIndex node : offered.candidates) is_offered[node] = true;
  for (NodeIndex node = 0; node < offered.snapshot.size(); ++node) {
    if (is_offered[node]) continue;
    for (const auto& held : offered.snapshot.node(node).pods()) {
      const GangId& other = held->pod.gang.id;
      if (held->state != PodState::kPlanned || other.empty() || other == pod.gang.id) continue;
      if (auto rival = Find(other)) return rival;
    }
  }
  return nullptr;
}

void GangTable::GiveWay(Unit& unit, Instant now, GangActions& actions) {
  const MutexLock lock(unit.mutex);
  if (unit.plan.phase != GangPlanned::Phase::kPlanned || unit.roll.began) return;
  commits_.Abort(unit, gangs::Conflict(gangs::kRival), "rival", now, actions);
}

Reason GangTable::FindPlace(Engine& engine, Unit& unit,
                            const std::shared_ptr<const PodRequest>& pod, const Offered& offered,
                            Instant now, GangActions& actions) {
  const std::string& uid = pod->id.uid;
  const Roster roster = rosters_.Read(unit, pod);
  rosters_.Note(unit, roster, now);
  // It is woken if there is room.
  if (unit.plan.in_the_making || unit.plan.allocating) return Reason::kGangNoRoom;
  const bool tends = plans_.IsSmall(unit) && Tend(engine, unit, roster, now, actions);
  if (tends && unit.plan.members.contains(uid)) return Reason::kFits;
  if (unit.roll.began && plans_.TakeKeptPlace(engine, unit, pod, offered)) return Reason::kFits;
  // What was planned for it may be over, and its devices are there all the same.
  const bool has_devices =
      rosters_.ClaimsOf(unit, *pod) == ClaimState::kAllocated && rosters_.IsAllocated(unit, roster);
  if (has_devices || rosters_.MayGo(unit, roster, *pod, now)) {
    unit.wait.asleep.erase(uid);
    unit.roll.alone.insert(uid);
    return Reason::kFits;
  }
  if (unit.roll.Missing(roster.all) > 0) {
    unit.wait.again = unit.roll.grew + gangs::kWaitsForGpuMembers;
    return Reason::kGangIncomplete;
  }
  return plans_.PlanFor(engine, unit, roster, pod, now, actions) ? Reason::kFits
                                                                 : Reason::kGangNoRoom;
}

GangVerdict GangTable::Judge(Engine& engine, Unit& unit, const Offered& offered,
                             const std::shared_ptr<const PodRequest>& pod, Instant now,
                             GangActions& actions, std::shared_ptr<Unit>& rival) {
  if (!pod->gang.minimum) {
    // What holds no GPU keeps none idle. But the object may be seen a moment after its pods.
    const bool may_come =
        !pod->gang.controller.empty() && now - unit.roll.since < gangs::kWaitsForGpuMembers;
    if (!rosters_.WantsDevices(unit, *pod) && !may_come) return {};
    unit.wait.again = unit.roll.since + gangs::kWaitsForGpuMembers;
    GangVerdict verdict = NotNow(unit, *pod, Reason::kGangUnknown);
    if (!pod->gang.controller.empty()) {
      verdict.text = gangs::UnseenController(pod->gang);
    }
    return verdict;
  }
  const std::string& uid = pod->id.uid;
  if (rosters_.IsBeingBound(uid)) return NotNow(unit, *pod, Reason::kGangNoRoom);  // or in doubt
  unit.ComesBack(*pod, now);
  constexpr std::size_t kMost = gangs::kExclusionsOfAFilter;
  for (std::size_t tries = 0; tries <= kMost; ++tries) {
    auto planned = unit.plan.members.find(uid);
    // Of the others Look makes sure: there may be thousands, and this is asked about each of them.
    if (planned == unit.plan.members.end() ||
        !PlanHolds(*parts_.state.Current(), *pod, planned->second.node)) {
      const Reason reason = FindPlace(engine, unit, pod, offered, now, actions);
      if (reason != Reason::kFits) return NotNow(unit, *pod, reason);
      planned = unit.plan.members.find(uid);
      if (planned == unit.plan.members.end()) return {};
    }
    unit.plan.touched = now;
    const ClaimState claims = rosters_.ClaimsOf(unit, *pod);
    if (!rosters_.WantsDevices(unit, *pod)) {  // kube-scheduler's own, once the others are there
      if (!unit.roll.began && !pod->gang.comes_at_once())
        return NotNow(unit, *pod, Reason::kGangNoRoom);
      unit.wait.asleep.erase(uid);
      return {};
    }
    GangPlanned::Member& member = planned->second;
    const bool is_out = unit.wait.IsOut(uid, member.node, now);
    const NodeIndex node = is_out ? kNoNode : offered.Find(member.node);
    if (node != kNoNode && claims != ClaimState::kNone) return JudgeClaims(unit, *pod, node);
    if (node != kNoNode) {
      unit.wait.asleep.erase(uid);
      if (member.asks == 0 || now - member.answered >= gangs::kComesBackAfter) {
        ++member.asks;
        member.answered = now;
      }
      return {GangVerdict::Kind::kThere, node, Reason::kFits};
    }
    // kube-scheduler keeps the pod from that node for a reason of its own: planned around it.
    if (!is_out) unit.plan.excluded[uid].insert(member.node);
    if (auto other = RivalOf(unit, *pod, offered); other != nullptr && !unit.roll.began) {
      if (unit.number > other->number) {
        commits_.Abort(unit, gangs::Conflict(gangs::kRival), "rival", now, actions);
        break;
      }
      rival = std::move(other);
    }
    if (plans_.IsSmall(unit) &&
        plans_.Plan(engine, unit, rosters_.Read(unit, pod), now, actions, uid, &offered)) {
      continue;
    }
    if (rival != nullptr) break;  // its nodes are soon there
    if (!unit.roll.began && !plans_.IsSmall(unit) && unit.plan.excluded[uid].size() <= kMost) {
      commits_.DropPlan(unit, gangs::Conflict(gangs::kPlanBroken),
                        actions);  // Look makes another one
      break;
    }
    if (unit.roll.began) {  // it only goes forward: the others keep their places
      commits_.GiveUp(unit, uid, gangs::Conflict(gangs::kPlanBroken), actions);
      unit.plan.excluded.erase(uid);  // what kept it from these may be over when it comes again
    } else {
      commits_.Abort(unit, gangs::Conflict(gangs::kPlanBroken), "no_room", now, actions);
    }
    break;
  }
  return NotNow(unit, *pod, Reason::kGangNoRoom);
}

GangVerdict GangTable::Preempt(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
                               const PodRequest& pod, std::span<const NodeIndex> candidates,
                               const EvictionLimits& limits, Instant now) {
  if (!Takes(*rosters_.settings(), pod)) return {};
  const GangVerdict nowhere{GangVerdict::Kind::kNotNow, kNoNode, Reason::kGangNoRoom};
  if (!pod.gang.minimum) return nowhere;
  const std::shared_ptr<Unit> known = UnitOf(pod, now);
  if (known == nullptr) return nowhere;
  Unit& unit = *known;
  const MutexLock lock(unit.mutex);
  unit.HasCome(pod, now);
  unit.Heed(pod);
  // Nobody is evicted for devices of claims: Kubernetes takes them back later than the pod ends.
  if (rosters_.ClaimsOf(unit, pod) != ClaimState::kNone) return nowhere;
  const Roster roster = rosters_.Read(unit, std::make_shared<const PodRequest>(pod));
  rosters_.Note(unit, roster, now);
  if (rosters_.MayGo(unit, roster, pod, now)) return {};
  // kube-scheduler found no room for it, perhaps without asking filter.
  unit.wait.asleep.insert_or_assign(pod.id.uid, pod.id);
  const bool is_enough = unit.roll.Missing(roster.all) == 0;
  if (!is_enough || !plans_.MayPlan(unit, now)) return nowhere;
  if (!unit.clearing.nominated.empty()) plans_.KeepWhatIsFree(engine, unit, roster);
  plans_.PlanToClear(engine, unit, roster, limits, true, now);
  const Offered offered{*snapshot, candidates};
  GangPlans::MoveToAsked(unit, roster, pod, offered);
  const NodesByUid& nodes = unit.clearing.nodes.to_clear;
  const auto own = nodes.find(pod.id.uid);
  if (own == nodes.end() || unit.clearing.kept.contains(pod.id.uid)) return nowhere;
  const NodeIndex node = offered.Find(own->second);
  if (node == kNoNode) return nowhere;
  plans_.KeepWhatIsFree(engine, unit, roster);
  return {.kind = GangVerdict::Kind::kThere, .node = node, .ending = unit.clearing.nodes.ending};
}

std::set<std::string> GangTable::WouldEvict(Engine& engine, const PodRequest& pod,
                                            const EvictionLimits& limits, Instant now) {
  const std::shared_ptr<Unit> unit = Find(pod.gang.id);
  if (unit == nullptr || !pod.gang.minimum) return {};
  std::optional<GangToPlan> ask;
  {
    const MutexLock lock(unit->mutex);
    if (rosters_.ClaimsOf(*unit, pod) != ClaimState::kNone) return {};
    const Roster roster = rosters_.Read(*unit, std::make_shared<const PodRequest>(pod));
    if (rosters_.MayGo(*unit, roster, pod, now) || unit->roll.Missing(roster.all) > 0) return {};
    if (plans_.MayPlan(*unit, now)) ask = plans_.MembersToPlan(*unit, roster, now);
    if (ask) ask->nominated = unit->clearing.nominated;
  }
  if (!ask) return {};
  return plans_.planning().PlanAfterEvictions(engine, *ask, limits).victims;
}

void GangTable::Answered(const PodRequest& pod, bool evicts, Instant now) {
  const std::shared_ptr<Unit> unit = Find(pod.gang.id);
  if (unit == nullptr) return;
  const MutexLock lock(unit->mutex);
  if (evicts) {
    unit->clearing.nominated.insert(pod.id.uid);
    unit->clearing.nominated_at = now;
  } else if (unit->clearing.nominated.empty()) {
    plans_.StopClearing(*unit);  // it keeps what is free for nothing
  }
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
  if (!unit.roll.says.minimum || !plans_.MayPlan(unit, now)) return nowhere;
  if (rosters_.ClaimsOf(unit, pod) != ClaimState::kNone) return nowhere;
  const Roster roster = rosters_.Read(unit, std::make_shared<const PodRequest>(pod));
  const std::int64_t needed = unit.roll.Missing(roster.placed);
  if (std::ssize(roster.waiting) < needed) return nowhere;
  const std::string& uid = pod.id.uid;
  if (unit.clearing.told.contains(uid)) unit.clearing.told.clear();  // it asks about all anew
  plans_.PlanToClear(engine, unit, roster, limits, false, now);
  const Offered offered{*snapshot, candidates};
  GangPlans::MoveToAsked(unit, roster, pod, offered);
  const std::string* const own = unit.clearing.nodes.NodeOf(uid);
  const NodeIndex node = own == nullptr ? kNoNode : offered.Find(*own);
  if (node == kNoNode) return nowhere;
  if (!GangPlans::MayTell(unit, roster, pod, snapshot->node(node))) return nowhere;
  unit.clearing.told.insert(uid);
  if (std::ssize(unit.clearing.told) >= needed) {
    unit.clearing.nominated.insert(unit.clearing.told.begin(), unit.clearing.told.end());
    unit.clearing.nominated_at = now;
    plans_.KeepWhatIsFree(engine, unit, roster);
  }
  return {GangVerdict::Kind::kThere, node, Reason::kFits};
}

// GangTable: members that get their devices by ResourceClaims. kube-scheduler binds these pods, so
// no bind of theirs is held. In place of that the claims of the whole plan are allocated at once,
// while kube-scheduler waits for what filter says of one member, that one's first: before that
// nothing is written, after it every member fits the node of its devices alone.
// What of it is there after a restart: members whose claims are allocated stay on the nodes of
// their devices in the next plan, and those of the others are allocated. If there is no such plan
// they fit nowhere, and kube-scheduler takes their devices back.

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
