// SPDX-License-Identifier: Apache-2.0
//
// GangTable: what time and the cluster bring.
#include <algorithm>
#include <utility>

#include "server/extender/gang_limits.h"
#include "server/extender/gang_table.h"

namespace berth {

bool GangTable::IsChecked(const Unit& unit) const {
  return unit.checked_on == parts_.state.Current() &&
         unit.checked_members == parts_.waiting.ChangesOf(unit.says.id);
}

GangTable::Amiss GangTable::LookThrough(Unit& unit, const Roster& roster, Instant now,
                                        GangActions& actions) {
  Amiss amiss;
  const std::uint64_t members = parts_.waiting.ChangesOf(unit.says.id);
  const bool is_checked = unit.checked_on == roster.snapshot && unit.checked_members == members;
  for (auto& [uid, member] : unit.plan) {
    if (!roster.uids.contains(uid)) {
      amiss.gone.push_back(uid);
      continue;
    }
    const bool holds = is_checked || PlanHolds(*roster.snapshot, *member.pod, member.node);
    if (!holds) amiss.broken.push_back(uid);
    if (member.bind == nullptr) continue;
    if (!holds) {  // it needs another node, and its bind names this one
      actions.answers.emplace_back(std::exchange(member.bind, nullptr),
                                   tl::unexpected(gangs::Conflict(gangs::kPlanBroken)));
      continue;
    }
    amiss.is_over = amiss.is_over || member.until <= now + gangs::kMargin / 2;
  }
  if (amiss.broken.empty()) {
    unit.checked_on = roster.snapshot;
    unit.checked_members = members;
  }
  return amiss;
}

void GangTable::TimeOut(Unit& unit, const Roster& roster, Instant now, GangActions& actions) {
  const Error why = gangs::Conflict(gangs::kHoldOver);
  if (!unit.began) return Abort(unit, why, "timeout", now, actions);
  if (roster.placed >= *unit.says.minimum) return DropPlan(unit, why, actions);
  unit.touched = now;  // it only goes forward: who is missing is woken again
  Release(unit, actions);
}

bool GangTable::Tend(Engine& engine, Unit& unit, const Roster& roster, Instant now,
                     GangActions& actions) {
  if (unit.plan.empty() || unit.phase == Unit::Phase::kCommitting) return !unit.plan.empty();
  const Amiss amiss = LookThrough(unit, roster, now, actions);
  DropUnawaited(unit, actions);
  for (const std::string& uid : amiss.gone)
    DropMember(unit, uid, gangs::Conflict(gangs::kMemberGone), actions);
  parts_.state.Unplan(amiss.gone);
  const std::int64_t minimum = *unit.says.minimum;
  const bool is_broken = !amiss.broken.empty();
  if (amiss.is_over) {
    TimeOut(unit, roster, now, actions);
  } else if (roster.placed + std::ssize(unit.plan) < minimum || is_broken) {
    const bool enough = roster.placed + std::ssize(roster.waiting) >= minimum;
    const bool may_try = !unit.began || IsWorthATry(unit, roster, now);
    if (enough && may_try && Plan(engine, unit, roster, now, actions)) return !unit.plan.empty();
    if (unit.began) {  // it only goes forward: what holds stays
      for (const std::string& uid : amiss.broken)
        GiveUp(unit, uid, gangs::Conflict(gangs::kPlanBroken), actions);
    } else {
      Abort(unit, gangs::Conflict(is_broken ? gangs::kPlanBroken : gangs::kMemberGone),
            is_broken ? "plan_broken" : "member_gone", now, actions);
    }
  } else if (now - unit.touched > HoldOf(unit)) {
    TimeOut(unit, roster, now, actions);
  }
  if (unit.plan.empty()) unit.phase = Unit::Phase::kWaiting;
  return !unit.plan.empty();
}

// A refused bind makes kube-scheduler look again at every pod that it has put aside. It costs the
// member that was held a back-off, so it is for members that the plan needs, and once.
void GangTable::Nudge(Unit& unit, const Roster& roster, Instant now, GangActions& actions) {
  if (unit.began || unit.nudged || unit.phase != Unit::Phase::kPlanned) return;
  if (now - unit.touched < gangs::kNudgeAfter) return;
  std::int64_t missing = *unit.says.minimum - roster.placed;
  bool sleeps = false;
  for (const auto& [uid, member] : unit.plan) {
    const bool is_missing = member.bind == nullptr && member.pod->shape.wants_gpu();
    if (!is_missing) --missing;
    sleeps = sleeps || (is_missing && unit.asleep.contains(uid));
  }
  if (missing <= 0 || !sleeps) return;
  for (auto& [uid, member] : unit.plan) {
    if (member.bind == nullptr) continue;
    actions.answers.emplace_back(std::exchange(member.bind, nullptr),
                                 tl::unexpected(gangs::Conflict(gangs::kWaking)));
    unit.nudged = true;
    return;
  }
}

// The first Binding is under way, or in doubt.
void GangTable::LookAtFirst(Unit& unit, Instant now, GangActions& actions) {
  const std::optional<PodRecord> first = parts_.state.FindPod(unit.first);
  if (first && first->state == PodState::kBound) return Begin(unit, first->pod.id, now, actions);
  if (!first || first->state == PodState::kPlanned) {  // nothing has begun
    unit.phase = Unit::Phase::kPlanned;
    return;
  }
  const bool is_over = std::ranges::any_of(unit.plan, [now](const auto& member) {
    return member.second.bind != nullptr && member.second.until <= now + gangs::kMargin / 2;
  });
  if (!is_over) return;
  // Those that are held come again, and find the gang begun, or not.
  AnswerHeld(unit, gangs::Conflict(gangs::kHoldOver), actions);
}

GangTable::Roster GangTable::Count(Unit& unit, Instant now) {
  Roster roster = RosterOf(unit, nullptr);
  Note(unit, roster, now);
  std::erase_if(unit.alone,
                [&roster](const std::string& uid) { return !roster.uids.contains(uid); });
  std::erase_if(unit.asleep, [&](const auto& asleep) {
    // One whose bind is in doubt may wait again soon.
    return !roster.uids.contains(asleep.first) && !IsBeingBound(asleep.first);
  });
  return roster;
}

void GangTable::LookAt(Engine& engine, Unit& unit, Instant now, int& plans, GangActions& actions) {
  const std::optional<int> minimum = unit.says.minimum;
  if (parts_.groups != nullptr) parts_.groups->Update(unit.says);
  if (minimum != unit.says.minimum) unit.nothing_to_do = false;
  if (!unit.says.minimum) {  // its object has gone
    const Error why = gangs::Conflict(gangs::kNoSize);
    if (unit.phase == Unit::Phase::kPlanned) {
      unit.began ? DropPlan(unit, why, actions) : Abort(unit, why, "no_size", now, actions);
    }
    StopClearing(unit);
    if (now - unit.counted >= gangs::kCountEvery) Count(unit, now);
    return;
  }
  if (unit.phase == Unit::Phase::kCommitting) return LookAtFirst(unit, now, actions);
  const bool is_quiet =
      unit.is_idle() || (unit.plan.empty() && unit.nothing_to_do && IsChecked(unit));
  if (is_quiet && now - unit.counted < gangs::kCountEvery) return;
  unit.nothing_to_do = false;
  const Roster roster = Count(unit, now);
  if (Tend(engine, unit, roster, now, actions)) {
    CommitIfWhole(engine, unit, roster, now, actions);
    return Nudge(unit, roster, now, actions);
  }
  TendClearing(engine, unit, roster, now, actions);
  if (plans <= 0 || unit.asleep.empty() || lets_go_ || now < unit.not_before) return;
  if (roster.waiting.empty()) return;
  if (MayGo(unit, roster, *roster.waiting.front(), now)) {
    for (const auto& [uid, id] : unit.asleep) actions.wakes.push_back(id);
    unit.asleep.clear();
    return;
  }
  const bool enough = roster.placed + std::ssize(roster.waiting) >= *unit.says.minimum;
  if (enough && !IsWorthATry(unit, roster, now)) return;
  unit.checked_on = parts_.state.Current();
  unit.checked_members = parts_.waiting.ChangesOf(unit.says.id);
  if (enough) --plans;
  unit.nothing_to_do = !enough || !Plan(engine, unit, roster, now, actions);
}

void GangTable::Look(Engine& engine, Instant now, GangActions& actions) {
  const MutexLock lock(mutex_);
  std::erase_if(failing_, [&](Failing& failing) {
    if (failing.at > now) return false;
    actions.answers.emplace_back(std::move(failing.bind), tl::unexpected(std::move(failing.why)));
    return true;
  });
  int plans = gangs::kPlansOfALook;
  std::erase_if(units_, [now](const auto& entry) {
    const Unit& unit = entry.second;
    return unit.has_no_members() && now - unit.had_members >= gangs::kForgottenAfter;
  });
  // Those that were not reached last time come first.
  auto unit = units_.upper_bound(last_looked_);
  for (std::size_t left = units_.size(); left > 0; --left) {
    if (unit == units_.end()) unit = units_.begin();
    LookAt(engine, unit->second, now, plans, actions);
    if (plans > 0) last_looked_ = unit->first;
    ++unit;
  }
}

void GangTable::TakeOver(Engine& engine, Instant now, GangActions& actions) {
  const MutexLock lock(mutex_);
  lets_go_ = false;
  for (const GangId& gang : parts_.waiting.Gangs()) {
    const std::shared_ptr<const PodRequest> pod = parts_.waiting.AnyMember(gang);
    if (pod == nullptr || !Takes(*pod) || !pod->gang.minimum) continue;
    Unit* const known = UnitOf(*pod, now);
    if (known == nullptr) return;
    Unit& unit = *known;
    unit.says = pod->gang;
    unit.scheduler = pod->scheduler;
    const Roster roster = RosterOf(unit, nullptr);
    Note(unit, roster, now);
    // Whoever led before may have refused any of them.
    for (const auto& waiting : roster.waiting) unit.asleep.emplace(waiting->id.uid, waiting->id);
    if (!unit.began || roster.placed >= *unit.says.minimum || !unit.plan.empty()) continue;
    Plan(engine, unit, roster, now, actions);
  }
}

void GangTable::LetGo(const Error& why, GangActions& actions) {
  const MutexLock lock(mutex_);
  lets_go_ = true;
  for (Failing& failing : failing_) {
    actions.answers.emplace_back(std::move(failing.bind), tl::unexpected(std::move(failing.why)));
  }
  failing_.clear();
  for (auto& [id, unit] : units_) DropPlan(unit, why, actions);
  units_.clear();
}

}  // namespace berth
