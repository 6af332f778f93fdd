// SPDX-License-Identifier: Apache-2.0
//
// GangTable: what time and the cluster bring.
#include <algorithm>
#include <utility>

#include "server/extender/gangs/roster/gang_limits.h"
#include "server/extender/gangs/table/gang_table.h"

namespace berth {
namespace {

// The nodes that are other objects than before; all of them where that cannot be told.
class Changed {
 public:
  Changed(const Snapshot& now, const Snapshot* before) {
    if (before == nullptr || !now.SameNodes(*before)) return;
    is_known_ = true;
    now.ForEachDifference(*before, [this](NodeIndex node) { nodes_.push_back(node); });
  }
  [[nodiscard]] bool Has(NodeIndex node) const {
    return !is_known_ || node == kNoNode || std::ranges::binary_search(nodes_, node);
  }

 private:
  bool is_known_ = false;
  std::vector<NodeIndex> nodes_;  // sorted
};

}  // namespace

bool GangTable::IsChecked(const Unit& unit) const {
  return unit.plan.checked_on == parts_.state.Current() &&
         unit.plan.checked_members == parts_.waiting.ChangesOf(unit.roll.says.id);
}

// These and the members of the plan.
GangCount GangTable::WithPlan(const Unit& unit, GangCount there) {
  for (const auto& [uid, member] : unit.plan.members) there.Add(unit.roll.says, *member.pod);
  return there;
}

GangTable::Amiss GangTable::LookThrough(Unit& unit, const Roster& roster, Instant now,
                                        GangActions& actions) {
  Amiss amiss;
  const Changed changed(*roster.snapshot, unit.plan.checked_on.get());
  for (auto& [uid, member] : unit.plan.members) {
    if (!roster.uids.contains(uid)) {
      amiss.gone.push_back(uid);
      continue;
    }
    const bool holds = !changed.Has(roster.snapshot->names().Find(member.node)) ||
                       PlanHolds(*roster.snapshot, *member.pod, member.node);
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
    unit.plan.checked_on = roster.snapshot;
    unit.plan.checked_members = roster.change;
  }
  return amiss;
}

void GangTable::TimeOut(Unit& unit, const Roster& roster, Instant now, GangActions& actions) {
  const Error why = gangs::Conflict(gangs::kHoldOver);
  if (unit.roll.began) {
    if (unit.roll.Missing(roster.placed) == 0) return commits_.DropPlan(unit, why, actions);
    unit.plan.touched = now;  // it only goes forward: who is missing is woken again
    return GangCommits::Release(unit, actions);
  }
  std::map<std::string, std::string, std::less<>> absent;
  for (const auto& [uid, member] : unit.plan.members) {
    if (!member.needs_bind()) continue;
    const bool took_long = member.asks > 0 && now - member.answered >= gangs::kBindsWithin;
    if (member.asks > 1 || took_long) {
      unit.wait.TakeOut(member, member.asks, now);
    } else {
      absent.emplace(uid, member.pod->id.name);
    }
  }
  commits_.Abort(unit, why, "timeout", now, actions);
  if (absent.empty()) return;
  GangWait& wait = unit.wait;
  const Duration hold = GangCommits::HoldOf(*rosters_.settings(), unit);
  std::set<std::string, std::less<>> who;
  for (const auto& [uid, name] : absent) who.insert(uid);
  wait.absent_differ = !wait.absent_last.empty() && wait.absent_last != who;
  wait.absent_last = std::move(who);
  wait.absent = std::move(absent);
  wait.absent_pause = std::clamp(wait.absent_pause * 2, hold, gangs::kLongestAbsentPause);
  wait.not_before = std::max(wait.not_before, now + wait.absent_pause);
}

bool GangTable::Tend(Engine& engine, Unit& unit, const Roster& roster, Instant now,
                     GangActions& actions) {
  GangPlanned& plan = unit.plan;
  if (plan.members.empty() || plan.phase == GangPlanned::Phase::kCommitting) {
    return !plan.members.empty();
  }
  const Amiss amiss = LookThrough(unit, roster, now, actions);
  GangCommits::DropUnawaited(unit, actions);
  for (const std::string& uid : amiss.gone)
    GangCommits::DropMember(unit, uid, gangs::Conflict(gangs::kMemberGone), actions);
  parts_.state.Unplan(amiss.gone);
  const bool is_broken = !amiss.broken.empty();
  if (amiss.is_over) {
    TimeOut(unit, roster, now, actions);
  } else if (unit.roll.Missing(WithPlan(unit, roster.placed)) > 0 || is_broken) {
    const bool enough = unit.roll.Missing(roster.all) == 0;
    const bool may_try =
        plans_.IsSmall(unit) && (!unit.roll.began || plans_.IsWorthATry(unit, roster, now));
    if (enough && may_try && plans_.Plan(engine, unit, roster, now, actions))
      return !plan.members.empty();
    if (unit.roll.began) {  // it only goes forward: what holds stays
      for (const std::string& uid : amiss.broken)
        commits_.GiveUp(unit, uid, gangs::Conflict(gangs::kPlanBroken), actions);
    } else {
      commits_.Abort(unit, gangs::Conflict(is_broken ? gangs::kPlanBroken : gangs::kMemberGone),
                     is_broken ? "plan_broken" : "member_gone", now, actions);
    }
  } else if (now - plan.touched > GangCommits::HoldOf(*rosters_.settings(), unit)) {
    TimeOut(unit, roster, now, actions);
  }
  return !plan.members.empty();
}

// A refused bind makes kube-scheduler look again at every pod that it has put aside. It costs the
// member that was held a back-off, so it is for members that the plan needs, and once.
void GangTable::Nudge(Unit& unit, const Roster& roster, Instant now, GangActions& actions) {
  GangPlanned& plan = unit.plan;
  if (plan.phase != GangPlanned::Phase::kPlanned) return;
  // One that was told its node and is not bound there was refused by somebody after filter, or is
  // still on its way, and then the wake is for nothing. When it comes again its node is out soon.
  for (const auto& [uid, member] : plan.members) {
    const bool is_late = member.asks > 0 && now - member.answered >= gangs::kNudgeAfter;
    if (!is_late || !member.needs_bind()) continue;
    if (unit.wait.asleep.emplace(uid, member.pod->id).second)
      actions.wakes.push_back(member.pod->id);
  }
  if (unit.roll.began || plan.nudged || now - plan.touched < gangs::kNudgeAfter) return;
  std::int64_t missing = unit.roll.needs - roster.placed.pods;
  bool sleeps = false;
  for (const auto& [uid, member] : plan.members) {
    if (!member.needs_bind()) --missing;
    const bool is_woken = member.asks == 0 || now - member.answered >= 2 * gangs::kNudgeAfter;
    sleeps = sleeps || (member.needs_bind() && is_woken && unit.wait.asleep.contains(uid));
  }
  if (missing <= 0 || !sleeps) return;
  for (auto& [uid, member] : plan.members) {
    if (member.bind == nullptr) continue;
    actions.answers.emplace_back(std::exchange(member.bind, nullptr),
                                 tl::unexpected(gangs::Conflict(gangs::kWaking)));
    plan.nudged = true;
    return;
  }
}

// The first Binding is under way, or in doubt.
void GangTable::LookAtFirst(Unit& unit, Instant now, GangActions& actions) {
  const std::optional<PodRecord> first = parts_.state.FindPod(unit.plan.first);
  if (first && first->state == PodState::kBound)
    return GangCommits::Begin(unit, first->pod.id, now, actions);
  if (!first || first->state == PodState::kPlanned) return unit.plan.FirstIsOver();  // not begun
  const bool is_over = std::ranges::any_of(unit.plan.members, [now](const auto& member) {
    return member.second.bind != nullptr && member.second.until <= now + gangs::kMargin / 2;
  });
  if (!is_over) return;
  // Those that are held come again, and find the gang begun, or not.
  GangCommits::AnswerHeld(unit, gangs::Conflict(gangs::kHoldOver), actions);
}

void GangTable::LookAtUnsized(Unit& unit, Instant now, GangActions& actions) {
  const Error why = gangs::Conflict(gangs::kNoSize);
  if (unit.plan.phase == GangPlanned::Phase::kPlanned) {
    unit.roll.began ? commits_.DropPlan(unit, why, actions)
                    : commits_.Abort(unit, why, "no_size", now, actions);
  }
  plans_.StopClearing(unit);
  const bool is_due = unit.wait.again <= now && unit.roll.counted < unit.wait.again;
  if (is_due || now - unit.roll.counted >= gangs::kCountEvery) rosters_.Count(unit, now);
  if (!is_due) return;
  for (const auto& [uid, id] : unit.wait.asleep) actions.wakes.push_back(id);  // those without GPUs
}

bool GangTable::IsQuiet(const Unit& unit, Instant now) const {
  if (unit.roll.is_stale || now - unit.roll.counted >= gangs::kCountEvery) return false;
  if (unit.wait.again <= now && unit.roll.counted < unit.wait.again) return false;
  if (unit.is_idle() && unit.followers.places.empty()) return true;
  if (!unit.plan.members.empty() || !unit.wait.nothing_to_do) return false;
  const GangGround& refused_on = unit.wait.refused_on;
  const bool is_same = refused_on.snapshot == nullptr || refused_on == plans_.GroundOf(unit);
  return (is_same && IsChecked(unit)) || plans_.IsHopeless(unit, now);
}

std::optional<GangToPlan> GangTable::LookAt(Engine& engine, Unit& unit, Instant now, bool may_plan,
                                            GangActions& actions) {
  Gang& says = unit.roll.says;
  const std::optional<int> minimum = says.minimum;
  if (parts_.groups != nullptr) parts_.groups->Update(says);
  if (minimum != says.minimum) unit.roll.is_stale = true;
  if (!says.minimum) {
    LookAtUnsized(unit, now, actions);
    return std::nullopt;
  }
  if (unit.plan.phase == GangPlanned::Phase::kCommitting) {
    LookAtFirst(unit, now, actions);
    return std::nullopt;
  }
  if (unit.plan.allocating && now - unit.plan.touched < gangs::kLongestAllocation) {
    return std::nullopt;
  }
  unit.plan.allocating = false;
  if (IsQuiet(unit, now)) return std::nullopt;
  unit.wait.nothing_to_do = false;
  const Roster roster = rosters_.Count(unit, now);
  if (Tend(engine, unit, roster, now, actions)) {
    commits_.CommitIfWhole(engine, unit, roster, now, actions);
    Nudge(unit, roster, now, actions);
    return std::nullopt;
  }
  plans_.TendFollowers(unit, now);
  plans_.TendClearing(engine, unit, roster, now, actions);
  auto& asleep = unit.wait.asleep;
  const Instant least = std::max(unit.wait.not_before, unit.wait.unasked_until);
  if (!may_plan || asleep.empty() || !plans_.leads() || now < least) return std::nullopt;
  if (roster.waiting.empty()) return std::nullopt;
  if (rosters_.MayGo(unit, roster, *roster.waiting.front(), now)) {
    for (const auto& [uid, id] : asleep) {
      unit.wait.asked.insert(uid);
      actions.wakes.push_back(id);
    }
    asleep.clear();
    return std::nullopt;
  }
  const bool enough = unit.roll.Missing(roster.all) == 0;
  if (enough && !plans_.IsWorthATry(unit, roster, now)) return std::nullopt;
  unit.plan.checked_on = roster.snapshot;
  unit.plan.checked_members = roster.change;
  auto ask = plans_.MembersToPlan(unit, roster, now);
  unit.plan.in_the_making = ask.has_value() && plans_.MayHold(unit);
  const bool is_known =
      std::ranges::none_of(roster.waiting, [&](const auto& pod) BERTH_REQUIRES(unit.mutex) {
        return rosters_.ClaimsOf(unit, *pod) == ClaimState::kUnseen;
      });
  unit.wait.nothing_to_do = !unit.plan.in_the_making && is_known;
  return unit.plan.in_the_making ? std::move(ask) : std::nullopt;
}

// A tree of groups may be seen after its pods.
void GangTable::Regroup() {
  const std::uint64_t changes = parts_.groups == nullptr ? 0 : parts_.groups->changes();
  if (std::exchange(regrouped_, changes) == changes) return;
  std::vector<PodRequest> moved;
  const auto read = [&](const PodRequest& known) {
    if (!known.gang.comes_at_once() || known.gang.object == Gang::Object::kFound) return;
    PodRequest pod = known;
    (void)parts_.groups->Read(pod);
    if (pod.gang.id != known.gang.id) moved.push_back(std::move(pod));
  };
  for (const GangId& gang : parts_.waiting.Gangs()) {
    if (gang.convention != kNativeGroups) continue;
    for (const WaitingPod& member : parts_.waiting.WaitingMembers(gang)) read(*member.pod);
  }
  parts_.state.Current()->ForEachPod([&read](const auto& held, NodeIndex) { read(held->pod); });
  for (const PodRequest& pod : moved) parts_.waiting.Regroup(pod);
  if (!moved.empty()) parts_.state.Regroup(moved);
}

void GangTable::Look(Engine& engine, Instant now, GangActions& actions) {
  commits_.AnswerFailing(now, actions);
  Regroup();
  if (!plans_.leads()) {
    noticed_ = 0;
  } else {
    Notice(now);
  }
  Forget(now, gangs::kForgottenAfter);
  std::vector<std::shared_ptr<Unit>> units = Units();
  // Those that were not reached last time come first.
  std::size_t next = last_looked_ < units.size() ? last_looked_ : 0;
  int plans = gangs::kPlansOfALook;
  for (std::size_t left = units.size(); left > 0; --left) {
    const std::shared_ptr<Unit> looked_at = std::move(units[next]);  // the table may forget it
    Unit& unit = *looked_at;
    next = next + 1 < units.size() ? next + 1 : 0;
    std::optional<GangToPlan> ask;
    {
      const MutexLock lock(unit.mutex);
      ask = LookAt(engine, unit, now, plans > 0, actions);
      plans_.Promise(unit);
      unit.over_since = unit.has_no_members() ? unit.roll.had_members.time_since_epoch().count()
                                              : GangUnit::kNotOver;
      unit.may_give_way = unit.holds_nothing();
    }
    if (ask) {
      plans_.PlanOutside(engine, unit, *ask, now, actions);
      if (--plans == 0) last_looked_ = next;
    }
    plans_.FindLack(unit, now, actions);
  }
}

}  // namespace berth
