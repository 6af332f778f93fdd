// SPDX-License-Identifier: Apache-2.0
//
// GangTable: what filter says of a member.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "cluster/values/alike.h"
#include "server/extender/gang_limits.h"
#include "server/extender/gang_table.h"

namespace berth {

NodeIndex GangTable::Offered::Find(const std::string& name) const {
  const NodeIndex node = snapshot.names().Find(name);
  const bool is_there = node != kNoNode && std::ranges::find(candidates, node) != candidates.end();
  return is_there ? node : kNoNode;
}

GangVerdict GangTable::NotNow(Unit& unit, const PodRequest& pod, Reason reason) {
  unit.wait.asleep.insert_or_assign(pod.id.uid, pod.id);
  return {GangVerdict::Kind::kNotNow, kNoNode, reason};
}

void GangTable::ComesBack(Unit& unit, const PodRequest& pod, Instant now) {
  const auto planned = unit.plan.members.find(pod.id.uid);
  if (planned == unit.plan.members.end()) return;
  const GangPlanned::Member& member = planned->second;
  if (member.asks == 0 || now - member.answered < gangs::kComesBackAfter) return;
  // kube-scheduler binds none of its own gangs' pods while it finds no node for another of them.
  if (pod.gang.comes_at_once() && unit.plan.held() == 0 && !unit.roll.began) return;
  const bool is_known = std::ranges::any_of(unit.wait.out, [&member](const GangWait::Out& out) {
    return out.node == member.node && SamePodKind(*out.pod, *member.pod);
  });
  const int asks = member.asks + 1;
  if (asks >= (is_known ? 2 : gangs::kAsksWithoutBind)) TakeOut(unit, member, asks, now);
}

void GangTable::TakeOut(Unit& unit, const GangPlanned::Member& member, int asks, Instant now) {
  auto& all = unit.wait.out;
  auto out = std::ranges::find_if(all, [&member](const GangWait::Out& known) {
    return known.node == member.node && SamePodKind(*known.pod, *member.pod);
  });
  if (out == all.end()) {
    if (all.size() >= gangs::kMostOut) all.erase(all.begin());
    out = all.insert(all.end(), GangWait::Out{{.node = member.node}, member.pod});
  }
  out->pod = member.pod;
  out->uids.insert(member.pod->id.uid);
  out->Take(asks, now);
}

bool GangTable::IsOut(const Unit& unit, const std::string& uid, const std::string& node,
                      Instant now) {
  return std::ranges::any_of(unit.wait.out, [&](const GangWait::Out& out) {
    return out.node == node && now < out.until && out.uids.contains(uid);
  });
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
  Abort(unit, gangs::Conflict(gangs::kRival), "rival", now, actions);
}

std::string GangTable::Objection(const Settings& settings, const Unit& unit) {
  const GangRoll& roll = unit.roll;
  if (roll.kinds > gangs::kMostKinds) {
    return "want at most " + std::to_string(gangs::kMostKinds) +
           " different kinds of pods, got more";
  }
  if (settings.most_held == 0 || roll.began || !roll.says.minimum) return "";
  const std::int64_t needed = roll.needs - roll.bound;
  if (std::cmp_less_equal(needed, settings.most_held)) return "";
  return "want at most " + std::to_string(settings.most_held) + " pods that start together, got " +
         std::to_string(needed) +
         "; each one holds a connection of kube-scheduler until all have come";
}

Reason GangTable::FindPlace(Engine& engine, Unit& unit,
                            const std::shared_ptr<const PodRequest>& pod, const Offered& offered,
                            Instant now, GangActions& actions) {
  const std::string& uid = pod->id.uid;
  const Roster roster = RosterOf(unit, pod);
  Note(unit, roster, now);
  // It is woken if there is room.
  if (unit.plan.in_the_making || unit.plan.allocating) return Reason::kGangNoRoom;
  const bool tends = IsSmall(unit) && Tend(engine, unit, roster, now, actions);
  if (tends && unit.plan.members.contains(uid)) return Reason::kFits;
  if (unit.roll.began && TakeKeptPlace(engine, unit, pod, offered)) return Reason::kFits;
  // What was planned for it may be over, and its devices are there all the same.
  const bool has_devices =
      ClaimsOf(unit, *pod) == ClaimState::kAllocated && IsAllocated(unit, roster);
  if (has_devices || MayGo(unit, roster, *pod, now)) {
    unit.wait.asleep.erase(uid);
    unit.roll.alone.insert(uid);
    return Reason::kFits;
  }
  if (unit.roll.Missing(roster.all) > 0) {
    unit.wait.again = unit.roll.grew + gangs::kWaitsForGpuMembers;
    return Reason::kGangIncomplete;
  }
  return PlanFor(engine, unit, roster, pod, now, actions) ? Reason::kFits : Reason::kGangNoRoom;
}

GangVerdict GangTable::Judge(Engine& engine, Unit& unit, const Offered& offered,
                             const std::shared_ptr<const PodRequest>& pod, Instant now,
                             GangActions& actions, std::shared_ptr<Unit>& rival) {
  if (!pod->gang.minimum) {
    // What holds no GPU keeps none idle. But the object may be seen a moment after its pods.
    const bool may_come =
        !pod->gang.controller.empty() && now - unit.roll.since < gangs::kWaitsForGpuMembers;
    if (!WantsDevices(unit, *pod) && !may_come) return {};
    unit.wait.again = unit.roll.since + gangs::kWaitsForGpuMembers;
    GangVerdict verdict = NotNow(unit, *pod, Reason::kGangUnknown);
    if (!pod->gang.controller.empty()) {
      verdict.text = gangs::UnseenController(pod->gang);
    }
    return verdict;
  }
  const std::string& uid = pod->id.uid;
  if (IsBeingBound(uid)) return NotNow(unit, *pod, Reason::kGangNoRoom);  // or in doubt
  ComesBack(unit, *pod, now);
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
    const ClaimState claims = ClaimsOf(unit, *pod);
    if (!WantsDevices(unit, *pod)) {  // kube-scheduler's own, once the others are there
      if (!unit.roll.began && !pod->gang.comes_at_once())
        return NotNow(unit, *pod, Reason::kGangNoRoom);
      unit.wait.asleep.erase(uid);
      return {};
    }
    GangPlanned::Member& member = planned->second;
    const bool is_out = IsOut(unit, uid, member.node, now);
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
        Abort(unit, gangs::Conflict(gangs::kRival), "rival", now, actions);
        break;
      }
      rival = std::move(other);
    }
    if (IsSmall(unit) && Plan(engine, unit, RosterOf(unit, pod), now, actions, uid, &offered)) {
      continue;
    }
    if (rival != nullptr) break;  // its nodes are soon there
    if (!unit.roll.began && !IsSmall(unit) && unit.plan.excluded[uid].size() <= kMost) {
      DropPlan(unit, gangs::Conflict(gangs::kPlanBroken), actions);  // Look makes another one
      break;
    }
    if (unit.roll.began) {  // it only goes forward: the others keep their places
      GiveUp(unit, uid, gangs::Conflict(gangs::kPlanBroken), actions);
      unit.plan.excluded.erase(uid);  // what kept it from these may be over when it comes again
    } else {
      Abort(unit, gangs::Conflict(gangs::kPlanBroken), "no_room", now, actions);
    }
    break;
  }
  return NotNow(unit, *pod, Reason::kGangNoRoom);
}

}  // namespace berth
