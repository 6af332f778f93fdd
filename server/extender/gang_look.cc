// SPDX-License-Identifier: Apache-2.0
//
// GangTable: what time and the cluster bring.
#include <algorithm>
#include <iterator>
#include <utility>

#include "server/extender/gang_limits.h"
#include "server/extender/gang_table.h"

namespace berth {

bool GangTable::IsChecked(const Unit& unit) const {
  return unit.checked_on == parts_.state.Current() &&
         unit.checked_members == parts_.waiting.ChangesOf(unit.says.id);
}

bool GangTable::Tend(Engine& engine, Unit& unit, const Roster& roster, Instant now,
                     GangActions& actions) {
  if (unit.plan.empty() || unit.phase == Unit::Phase::kCommitting) return !unit.plan.empty();
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const bool is_checked = IsChecked(unit);
  bool is_broken = false, is_over = false;
  std::vector<std::string> gone;
  for (auto& [uid, member] : unit.plan) {
    if (!roster.uids.contains(uid)) {
      gone.push_back(uid);
      continue;
    }
    const bool holds = is_checked || PlanHolds(*snapshot, *member.pod, member.node);
    is_broken = is_broken || !holds;
    if (member.bind == nullptr) continue;
    if (!holds) {  // it needs another node, and its bind names this one
      actions.answers.emplace_back(std::exchange(member.bind, nullptr),
                                   tl::unexpected(gangs::Conflict(gangs::kPlanBroken)));
      continue;
    }
    is_over = is_over || member.until <= now + gangs::kMargin / 2;
  }
  DropUnawaited(unit, actions);
  if (!is_broken) {
    unit.checked_on = snapshot;
    unit.checked_members = parts_.waiting.ChangesOf(unit.says.id);
  }
  for (const std::string& uid : gone)
    DropMember(unit, uid, gangs::Conflict(gangs::kMemberGone), actions);
  parts_.state.Unplan(gone);
  if (is_over) {
    Abort(unit, gangs::Conflict(gangs::kHoldOver), "timeout", now, actions);
  } else if (roster.placed + std::ssize(unit.plan) < *unit.says.minimum || is_broken) {
    const bool enough = roster.placed + std::ssize(roster.waiting) >= *unit.says.minimum;
    if (!enough || !Plan(engine, unit, roster, now, actions)) {
      Abort(unit, gangs::Conflict(is_broken ? gangs::kPlanBroken : gangs::kMemberGone),
            is_broken ? "plan_broken" : "member_gone", now, actions);
    }
  } else if (now - unit.touched > HoldOf(unit)) {  // nobody comes for it
    if (unit.began && roster.placed >= *unit.says.minimum) {
      DropPlan(unit, gangs::Conflict(gangs::kHoldOver), actions);
      return false;
    }
    Abort(unit, gangs::Conflict(gangs::kHoldOver), "timeout", now, actions);
  }
  return !unit.plan.empty();
}

// A refused bind makes kube-scheduler look again at every pod that it has put aside.
void GangTable::Nudge(Unit& unit, const Roster& roster, Instant now, GangActions& actions) {
  if (unit.began || unit.phase != Unit::Phase::kPlanned) return;
  if (now - unit.touched < gangs::kNudgeAfter || now < unit.next_nudge) return;
  std::int64_t missing = *unit.says.minimum - roster.placed;
  for (const auto& [uid, member] : unit.plan) {
    if (member.bind != nullptr || !member.pod->shape.wants_gpu()) --missing;
  }
  if (missing <= 0 || unit.asleep.empty()) return;
  for (auto& [uid, member] : unit.plan) {
    if (member.bind == nullptr) continue;
    actions.answers.emplace_back(std::exchange(member.bind, nullptr),
                                 tl::unexpected(gangs::Conflict(gangs::kWaking)));
    unit.next_nudge = now + gangs::kBetweenNudges;
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

void GangTable::LookAt(Engine& engine, Unit& unit, Instant now, int& plans, GangActions& actions) {
  const std::optional<int> minimum = unit.says.minimum;
  if (parts_.groups != nullptr) parts_.groups->Update(unit.says);
  if (minimum != unit.says.minimum) unit.nothing_to_do = false;
  if (!unit.says.minimum) {  // its object has gone
    if (unit.phase == Unit::Phase::kPlanned && !unit.began) {
      Abort(unit, gangs::Conflict(gangs::kNoSize), "no_size", now, actions);
    }
    StopClearing(unit);
    return;
  }
  if (unit.phase == Unit::Phase::kCommitting) return LookAtFirst(unit, now, actions);
  const bool is_quiet =
      unit.is_idle() || (unit.plan.empty() && unit.nothing_to_do && IsChecked(unit));
  if (is_quiet && now - unit.counted < gangs::kCountEvery) return;
  unit.nothing_to_do = false;
  const Roster roster = RosterOf(unit, nullptr);
  Note(unit, roster, now);
  std::erase_if(unit.alone,
                [&roster](const std::string& uid) { return !roster.uids.contains(uid); });
  for (auto asleep = unit.asleep.begin(); asleep != unit.asleep.end();) {
    // One whose bind is in doubt may wait again soon.
    const bool waits = roster.uids.contains(asleep->first) || IsBeingBound(asleep->first);
    asleep = waits ? std::next(asleep) : unit.asleep.erase(asleep);
  }
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
    if (pod == nullptr || !Concerns(settings_, *pod) || !pod->gang.minimum) continue;
    Unit& unit = UnitOf(*pod, now);
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
