// SPDX-License-Identifier: Apache-2.0
#include "server/extender/gang_table.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "scoring/by_claim.h"
#include "server/extender/gang_limits.h"

namespace berth {

void GangTable::Use(Settings settings) {
  const MutexLock lock(mutex_);
  settings_ = std::move(settings);
}

static_assert(GangTable::kMostGangs == 16'384);  // gangs::kTooManyGangs says it

bool GangTable::Concerns(const Settings& settings, const PodRequest& pod) {
  if (pod.gang.empty() || !pod.refusal.empty()) return false;
  if (!pod.gang.minimum && pod.gang.object != Gang::Object::kMissing) return false;
  if (pod.gang.minimum && *pod.gang.minimum <= 1) return false;
  return std::ranges::find(settings.conventions, pod.gang.id.convention) !=
         settings.conventions.end();
}

bool GangTable::Takes(const PodRequest& pod) const {
  // There is nothing to plan where only kube-scheduler knows the GPUs.
  return Concerns(settings_, pod) && !GetsClaimAnywhere(*parts_.state.Current(), pod);
}

// --- who is there --------------------------------------------------------------------------------

GangUnit* GangTable::UnitOf(const PodRequest& pod, Instant now) {
  if (const auto known = units_.find(pod.gang.id); known != units_.end()) return &known->second;
  if (units_.size() >= kMostGangs) {
    std::erase_if(units_, [](const auto& entry) { return entry.second.has_no_members(); });
    if (units_.size() >= kMostGangs) return nullptr;
  }
  Unit& unit = units_[pod.gang.id];
  unit.since = unit.grew = unit.had_members = now;
  unit.says = pod.gang;
  return &unit;
}

GangTable::Roster GangTable::RosterOf(const Unit& unit,
                                      const std::shared_ptr<const PodRequest>& asker) const {
  Roster roster;
  std::unordered_set<std::string_view> placed;
  ClusterState::GangContents there = parts_.state.GangPods(unit.says.id);
  roster.snapshot = std::move(there.snapshot);
  for (const auto& record : there.pods) {
    if (record->state == PodState::kPlanned) continue;
    placed.insert(record->pod.id.uid);
    if (record->leaving) continue;
    ++roster.placed;
    if (record->state != PodState::kBound) continue;
    ++roster.bound;
    roster.gpus_bound = roster.gpus_bound || record->pod.shape.wants_gpu();
  }
  bool has_asker = asker == nullptr;
  const std::string& scheduler = asker == nullptr ? unit.scheduler : asker->scheduler;
  for (WaitingPod& waiting : parts_.waiting.WaitingMembers(unit.says.id, scheduler)) {
    const std::string& uid = waiting.pod->id.uid;
    if (placed.contains(uid)) continue;
    const bool is_asker = asker != nullptr && uid == asker->id.uid;
    has_asker = has_asker || is_asker;
    roster.waiting.push_back(is_asker ? asker : std::move(waiting.pod));
  }
  if (!has_asker && !placed.contains(asker->id.uid)) roster.waiting.push_back(asker);
  for (const auto& pod : roster.waiting) roster.uids.insert(pod->id.uid);
  return roster;
}

std::optional<int> GangTable::OtherSize(const Unit& unit, const PodRequest& pod) const {
  if (pod.gang.object != Gang::Object::kNone || !pod.gang.minimum || !unit.says.minimum ||
      unit.says.minimum == pod.gang.minimum) {
    return std::nullopt;
  }
  for (const WaitingPod& other : parts_.waiting.WaitingMembers(pod.gang.id, pod.scheduler)) {
    if (other.pod->id.uid != pod.id.uid && other.pod->gang.minimum == unit.says.minimum) {
      return unit.says.minimum;
    }
  }
  return std::nullopt;
}

void GangTable::Note(Unit& unit, const Roster& roster, Instant now) {
  const std::int64_t members = roster.placed + std::ssize(roster.waiting);
  if (members > 0) unit.had_members = now;
  // Its controller may create all of it anew, under the same name: that is another beginning.
  const bool began = roster.bound > 0 && (unit.began || roster.gpus_bound);
  if (members > unit.placed + unit.waiting || (unit.began && !began)) unit.grew = now;
  unit.began = began;
  unit.ran = unit.ran || began;
  if (roster.bound == 0) unit.alone.clear();
  unit.placed = roster.placed;
  unit.bound = roster.bound;
  unit.waiting = std::ssize(roster.waiting);
  unit.counted = now;
  // Minimums of kinds of pods are met for certain where all that there are start.
  if (unit.says.has_roles && unit.says.minimum) {
    unit.says.minimum = std::max(*unit.says.minimum, static_cast<int>(members));
  }
}

// --- filter --------------------------------------------------------------------------------------

GangVerdict GangTable::Filter(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
                              const PodRequest& pod, std::span<const NodeIndex> candidates,
                              Instant now, GangActions& actions) {
  const MutexLock lock(mutex_);
  if (!Takes(pod)) return {};
  Unit* const known = UnitOf(pod, now);
  if (known == nullptr) {
    return {.kind = GangVerdict::Kind::kNotNow,
            .reason = Reason::kPodRefused,
            .text = std::string(gangs::kTooManyGangs),
            .remembered = false};
  }
  Unit& unit = *known;
  if (const auto other = OtherSize(unit, pod)) {
    return {GangVerdict::Kind::kNotNow, kNoNode, Reason::kPodRefused,
            "the pod's group " + pod.gang.id.full_name() + ": want one size, got " +
                std::to_string(*pod.gang.minimum) + " and, of other pods, " +
                std::to_string(*other)};
  }
  unit.says = pod.gang;
  unit.scheduler = pod.scheduler;
  return Judge(engine, unit, snapshot, std::make_shared<const PodRequest>(pod), candidates, now,
               actions);
}

GangVerdict GangTable::NotNow(Unit& unit, const PodRequest& pod, Reason reason) {
  unit.asleep.insert_or_assign(pod.id.uid, pod.id);
  return {GangVerdict::Kind::kNotNow, kNoNode, reason};
}

bool GangTable::IsBeingBound(std::string_view uid) const {
  const std::optional<PodRecord> held = parts_.state.FindPod(uid);
  return held && held->state == PodState::kReserved;
}

Reason GangTable::FindPlace(Engine& engine, Unit& unit,
                            const std::shared_ptr<const PodRequest>& pod, Instant now,
                            GangActions& actions) {
  const std::string& uid = pod->id.uid;
  const Roster roster = RosterOf(unit, pod);
  Note(unit, roster, now);
  if (Tend(engine, unit, roster, now, actions) && unit.plan.contains(uid)) return Reason::kFits;
  if (MayGo(unit, roster, *pod, now)) {
    unit.asleep.erase(uid);
    unit.alone.insert(uid);
    return Reason::kFits;
  }
  if (roster.placed + std::ssize(roster.waiting) < *unit.says.minimum) {
    return Reason::kGangIncomplete;
  }
  return PlanFor(engine, unit, roster, pod, now, actions) ? Reason::kFits : Reason::kGangNoRoom;
}

GangVerdict GangTable::Judge(Engine& engine, Unit& unit,
                             const std::shared_ptr<const Snapshot>& snapshot,
                             const std::shared_ptr<const PodRequest>& pod,
                             std::span<const NodeIndex> candidates, Instant now,
                             GangActions& actions) {
  if (!pod->gang.minimum) {  // what holds no GPU keeps none idle
    return pod->shape.wants_gpu() ? NotNow(unit, *pod, Reason::kGangUnknown) : GangVerdict();
  }
  const std::string& uid = pod->id.uid;
  if (IsBeingBound(uid)) return NotNow(unit, *pod, Reason::kGangNoRoom);  // or in doubt
  for (int tries = 0; tries <= gangs::kExclusionsOfAFilter; ++tries) {
    if (!unit.plan.contains(uid) || !IsChecked(unit)) {
      const Reason reason = FindPlace(engine, unit, pod, now, actions);
      if (reason != Reason::kFits) return NotNow(unit, *pod, reason);
      if (!unit.plan.contains(uid)) return {};
    }
    const auto planned = unit.plan.find(uid);
    unit.touched = now;
    if (!pod->shape.wants_gpu()) {  // kube-scheduler's own, once the others are there
      if (!unit.began) return NotNow(unit, *pod, Reason::kGangNoRoom);
      unit.asleep.erase(uid);
      return {};
    }
    const NodeIndex node = snapshot->names().Find(planned->second.node);
    if (node != kNoNode && std::ranges::find(candidates, node) != candidates.end()) {
      unit.asleep.erase(uid);
      return {GangVerdict::Kind::kThere, node, Reason::kFits};
    }
    // kube-scheduler keeps the pod from that node for a reason of its own: planned around it.
    unit.excluded[uid].insert(planned->second.node);
    if (Plan(engine, unit, RosterOf(unit, pod), now, actions)) continue;
    if (unit.began) {  // it only goes forward: the others keep their places
      GiveUp(unit, uid, gangs::Conflict(gangs::kPlanBroken), actions);
      unit.excluded.erase(uid);  // what kept it from these nodes may be over when it comes again
    } else {
      Abort(unit, gangs::Conflict(gangs::kPlanBroken), "no_room", now, actions);
    }
    break;
  }
  return NotNow(unit, *pod, Reason::kGangNoRoom);
}

// kube-scheduler may need some seconds to come with all of them: no less than gangs::kShortestHold.
Duration GangTable::HoldOf(const Unit& unit) const {
  if (!unit.says.hold) return settings_.hold;
  return std::clamp(*unit.says.hold, std::min(gangs::kShortestHold, settings_.hold),
                    settings_.hold);
}

bool GangTable::MayGo(const Unit& unit, const Roster& roster, const PodRequest& pod,
                      Instant now) const {
  // Pods without GPUs are held only for the sake of others.
  const auto wants = [](const auto& member) { return member->shape.wants_gpu(); };
  if (!pod.shape.wants_gpu() && (unit.began || std::ranges::none_of(roster.waiting, wants))) {
    return true;
  }
  if ((unit.began ? roster.placed : roster.bound) >= *unit.says.minimum) return true;
  const std::int64_t members = roster.placed + static_cast<std::int64_t>(roster.waiting.size());
  return unit.ran && members < *unit.says.minimum && now - unit.grew >= gangs::kRemnantAfter;
}

bool GangTable::IsWorthATry(const Unit& unit, const Roster& roster, Instant now) const {
  if (unit.refused_on == nullptr || unit.refused_members != roster.waiting.size()) return true;
  return now - unit.refused_at >= gangs::kBetweenPlans && unit.refused_on != parts_.state.Current();
}

bool GangTable::PlanFor(Engine& engine, Unit& unit, const Roster& roster,
                        const std::shared_ptr<const PodRequest>& pod, Instant now,
                        GangActions& actions) {
  if (lets_go_ || unit.phase == Unit::Phase::kCommitting || now < unit.not_before) return false;
  if (!IsWorthATry(unit, roster, now)) return false;
  if (unit.plan.empty()) {
    if (!Plan(engine, unit, roster, now, actions)) return false;
    if (unit.plan.contains(pod->id.uid)) return true;
  }
  // Beyond the plan: the others stay where they are.
  const auto nodes = planning_.Plan(engine, {.members = {pod}, .excluded = unit.excluded});
  if (nodes) {
    if (nodes->empty()) return false;  // its bind has begun
    unit.plan.emplace(pod->id.uid, Unit::Member{.pod = pod, .node = nodes->begin()->second});
    return true;
  }
  unit.refused_on = nodes.error().snapshot;
  unit.refused_members = roster.waiting.size();
  unit.refused_at = now;
  return false;
}

GangToPlan GangTable::MembersToPlan(const Unit& unit, const Roster& roster) const {
  GangToPlan ask{.members = roster.waiting,
                 .minimum = std::max<std::int64_t>(*unit.says.minimum - roster.placed, 1),
                 .excluded = unit.excluded};
  for (const auto& [uid, member] : unit.plan) {
    if (member.bind != nullptr) ask.fixed.emplace(uid, member.node);
  }
  return ask;
}

// kube-scheduler counts those for which others were evicted on the nodes that it was told, and lets
// no other member have their places.
GangToPlan GangTable::WithNominated(const Unit& unit, GangToPlan ask) {
  for (const std::string& uid : unit.nominated) {
    if (const auto* const node = unit.clearing.NodeOf(uid)) ask.fixed.emplace(uid, *node);
  }
  return ask;
}

bool GangTable::Plan(Engine& engine, Unit& unit, const Roster& roster, Instant now,
                     GangActions& actions) {
  const GangToPlan ask = MembersToPlan(unit, roster);
  if (ask.members.empty() || static_cast<std::int64_t>(ask.members.size()) < ask.minimum)
    return false;
  auto nodes = planning_.Plan(engine, WithNominated(unit, ask));
  if (!nodes && !unit.nominated.empty()) nodes = planning_.Plan(engine, ask);
  if (!nodes) {
    Refuse(unit, nodes.error(), ask.members.size(), now, actions);
    return false;
  }
  std::map<std::string, Unit::Member, std::less<>> plan;
  for (const auto& pod : ask.members) {
    const std::string& uid = pod->id.uid;
    const auto node = nodes->find(uid);
    if (node == nodes->end()) continue;
    Unit::Member member{.pod = pod, .node = node->second};
    if (const auto before = unit.plan.find(uid); before != unit.plan.end()) {
      member = std::exchange(before->second, {});
      member.node = node->second;
    }
    plan.emplace(uid, std::move(member));
    const bool may_come = pod->shape.wants_gpu() || unit.began;
    if (const auto asleep = unit.asleep.find(uid); may_come && asleep != unit.asleep.end()) {
      actions.wakes.push_back(asleep->second);
    }
  }
  for (auto& [uid, left_out] : unit.plan) {  // it is gone, or was beyond the minimum
    if (left_out.bind == nullptr) continue;
    actions.answers.emplace_back(std::move(left_out.bind),
                                 tl::unexpected(gangs::Conflict(gangs::kNoPlan)));
  }
  const bool is_new = unit.phase == Unit::Phase::kWaiting;
  unit.plan = std::move(plan);
  unit.phase = unit.plan.empty() ? Unit::Phase::kWaiting : Unit::Phase::kPlanned;
  if (is_new) unit.nudged = false;
  std::erase_if(unit.kept, [&nodes](const std::string& uid) { return nodes->contains(uid); });
  StopClearing(unit);
  unit.touched = now;
  unit.refused_on = nullptr;
  unit.shortage.reset();
  unit.told = false;
  if (is_new) {
    actions.news.push_back({.what = GangNews::What::kPlanned,
                            .gang = unit.says.id,
                            .pod = ask.members.front()->id,
                            .text = gangs::Count(std::ssize(unit.plan), "member") + " planned"});
  }
  return true;
}

void GangTable::Refuse(Unit& unit, const NoGangPlan& none, std::size_t members, Instant now,
                       GangActions& actions) {
  unit.refused_on = none.snapshot;
  unit.refused_members = members;
  unit.refused_at = now;
  unit.shortage = none.shortage;
  unit.shortage_domain = none.domain;
  if (std::exchange(unit.told, true)) return;
  actions.news.push_back({.what = GangNews::What::kNoRoom,
                          .gang = unit.says.id,
                          .pod = unit.asleep.empty() ? PodId() : unit.asleep.begin()->second,
                          .text = ViewOf(unit, now).why});
}

}  // namespace berth
