// SPDX-License-Identifier: Apache-2.0
//
// GangTable: from the first bind that is held to the last that is released.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "server/extender/gang_limits.h"
#include "server/extender/gang_table.h"

namespace berth {

// kube-scheduler may need some seconds to come with all of them: no less than gangs::kShortestHold.
Duration GangTable::HoldOf(const Settings& settings, const Unit& unit) {
  if (!unit.roll.says.hold) return settings.hold;
  return std::clamp(*unit.roll.says.hold, std::min(gangs::kShortestHold, settings.hold),
                    settings.hold);
}

void GangTable::Fail(const BindsUnderWay::Entry& bind, std::string_view why, Instant now,
                     GangActions& actions) {
  if (lets_go_) {
    actions.answers.emplace_back(bind, tl::unexpected(gangs::Conflict(why)));
    return;
  }
  const MutexLock lock(mutex_);
  failing_.push_back({bind, gangs::Conflict(why), now + gangs::kFailsAfter});
}

bool GangTable::Hold(Engine& engine, const BindsUnderWay::Entry& bind,
                     const std::shared_ptr<const PodRequest>& pod, Instant now,
                     GangActions& actions) {
  const std::shared_ptr<const Settings> settings = this->settings();
  if (!Takes(*settings, *pod) || !pod->gang.minimum) return false;
  const std::shared_ptr<Unit> known = UnitOf(*pod, now);
  if (known == nullptr) {
    Fail(bind, gangs::kTooManyGangs, now, actions);
    return true;
  }
  Unit& unit = *known;
  const MutexLock lock(unit.mutex);
  const std::string& uid = pod->id.uid;
  HasCome(unit, *pod, now);
  unit.wait.asleep.erase(uid);
  PlanAtLast(engine, unit, pod, now, actions);
  const auto planned = unit.plan.members.find(uid);
  if (planned != unit.plan.members.end()) planned->second.asks = 0;
  // One without GPUs goes where kube-scheduler puts it.
  const bool is_there = planned != unit.plan.members.end() &&
                        (planned->second.node == bind->request.node || !pod->shape.wants_gpu());
  const Instant until = bind->request.asked.value_or(now) + HoldOf(*settings, unit);
  const auto hold = [&] {
    planned->second.bind = bind;
    planned->second.held = now;
    planned->second.until = until;
    unit.plan.touched = now;
  };
  if (is_there && unit.plan.phase == GangPlanned::Phase::kPlanned && !unit.roll.began) {
    if (settings->most_held > 0 && unit.plan.held() >= settings->most_held) {
      Fail(bind, gangs::kNoPlan, now, actions);  // the gang does not need it
      return true;
    }
    hold();
    if (!IsReady(unit, now)) return true;  // by far the most
    const Roster roster = RosterOf(unit, pod);
    Note(unit, roster, now);
    CommitIfWhole(engine, unit, roster, now, actions);
    return true;
  }
  const bool is_first =
      unit.plan.phase == GangPlanned::Phase::kCommitting && unit.plan.first == uid;
  if (is_there && unit.roll.began && !is_first) return false;  // thousands are released at a time
  const Roster roster = RosterOf(unit, pod);
  Note(unit, roster, now);
  if (is_first) {
    if (IsStillWhole(unit, roster, actions) && !lets_go_) return false;
    unit.plan.FirstIsOver();
  }
  if (is_there) {
    if (unit.roll.began) return false;
    hold();
    return true;
  }
  if (!unit.plan.members.contains(uid) &&
      (MayGo(unit, roster, *pod, now) || unit.roll.alone.contains(uid))) {
    return false;
  }
  Fail(bind, unit.roll.says.minimum ? gangs::kNoPlan : gangs::kNoSize, now, actions);
  return true;
}

void GangTable::Ended(const PodRequest& pod, const Status& bound, Instant now,
                      GangActions& actions) {
  const std::shared_ptr<Unit> known = Find(pod.gang.id);
  if (known == nullptr) return;
  Unit& unit = *known;
  const MutexLock lock(unit.mutex);
  const std::string& uid = pod.id.uid;
  unit.roll.alone.erase(uid);
  unit.roll.is_stale = true;  // its state is shown as it is now
  unit.plan.excluded.erase(uid);
  const bool is_first =
      unit.plan.phase == GangPlanned::Phase::kCommitting && unit.plan.first == uid;
  if (bound) unit.plan.Drop(uid);
  if (!is_first) return;
  if (bound) return Begin(unit, pod.id, now, actions);
  if (bound.error().code == Errc::kUnavailable) return;  // Look finds out
  unit.plan.Drop(uid);
  unit.plan.FirstIsOver();
  if (bound.error().code == Errc::kNotFound) return;  // the next one is tried, if enough are left
  Abort(unit, gangs::Conflict(gangs::kFirstRefused), "first_refused", now, actions);
}

bool GangTable::IsReady(const Unit& unit, Instant now) {
  GangCount ready{unit.roll.bound, unit.roll.bound_roles};
  bool any_held = false;
  for (const auto& [uid, member] : unit.plan.members) {
    const bool is_held = member.bind != nullptr && member.until - now > gangs::kMargin;
    any_held = any_held || member.bind != nullptr;
    if (is_held || !member.pod->shape.wants_gpu()) ready.Add(unit.roll.says, *member.pod);
  }
  return any_held && unit.roll.Missing(ready) == 0;
}

bool GangTable::IsStillWhole(Unit& unit, const Roster& roster, GangActions& actions) {
  DropUnawaited(unit, actions);
  GangCount ready = roster.bound;
  for (const auto& [uid, member] : unit.plan.members) {
    const bool is_first = uid == unit.plan.first;
    const bool is_ready = member.bind != nullptr || !member.pod->shape.wants_gpu();
    if (is_first || (is_ready && roster.uids.contains(uid))) ready.Add(unit.roll.says, *member.pod);
  }
  return unit.roll.Missing(ready) == 0;
}

void GangTable::DropUnawaited(Unit& unit, GangActions& actions) {
  for (auto& [uid, member] : unit.plan.members) {
    if (member.bind == nullptr || !member.bind->waits || member.bind->waits()) continue;
    actions.answers.emplace_back(std::exchange(member.bind, nullptr),
                                 tl::unexpected(gangs::Conflict(gangs::kClientGone)));
  }
}

void GangTable::CommitIfWhole(Engine& engine, Unit& unit, const Roster& roster, Instant now,
                              GangActions& actions) {
  if (unit.plan.phase != GangPlanned::Phase::kPlanned || lets_go_) return;
  if (unit.roll.began) return Release(unit, actions);
  if (!IsReady(unit, now)) return;
  DropUnawaited(unit, actions);
  if (!IsReady(unit, now)) return;
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const bool holds = std::ranges::all_of(unit.plan.members, [&snapshot](const auto& member) {
    return PlanHolds(*snapshot, *member.second.pod, member.second.node);
  });
  if (!holds) {
    if (!Plan(engine, unit, roster, now, actions)) {
      return Abort(unit, gangs::Conflict(gangs::kPlanBroken), "plan_broken", now, actions);
    }
    if (!IsReady(unit, now)) return;  // others may have been planned elsewhere
  }
  SendFirst(unit, actions);
}

// The one whose client gives up first.
void GangTable::SendFirst(Unit& unit, GangActions& actions) {
  const GangPlanned::Member* first = nullptr;
  for (const auto& [uid, member] : unit.plan.members) {
    if (member.bind == nullptr) continue;
    if (first == nullptr || member.until < first->until) first = &member;
  }
  BERTH_CHECK(first != nullptr);
  const std::string uid = first->pod->id.uid;
  actions.binds.push_back(unit.plan.SendFirst(uid));
}

void GangTable::Begin(Unit& unit, const PodId& first, Instant now, GangActions& actions) {
  unit.plan.FirstIsOver();
  unit.roll.began = unit.roll.ran = true;
  unit.wait.pause = unit.wait.absent_pause = {};
  unit.wait.absent_last.clear();
  unit.plan.touched = now;
  Instant held = now;
  for (const auto& [uid, member] : unit.plan.members) {
    if (member.bind != nullptr) held = std::min(held, member.held);
  }
  actions.news.push_back(
      {.what = GangNews::What::kBegun,
       .gang = unit.roll.says.id,
       .pod = first,
       .text = gangs::Count(1 + static_cast<std::int64_t>(unit.plan.held()), "bind") + " released",
       .took = now - held});
  Release(unit, actions);
}

void GangTable::Release(Unit& unit, GangActions& actions) {
  for (auto& [uid, member] : unit.plan.members) {
    if (member.bind != nullptr) {
      actions.binds.push_back(std::exchange(member.bind, nullptr));
    } else if (const auto asleep = unit.wait.asleep.find(uid); asleep != unit.wait.asleep.end()) {
      actions.wakes.push_back(asleep->second);
      unit.wait.asleep.erase(asleep);
    }
  }
}

void GangTable::DropMember(Unit& unit, const std::string& uid, const Error& why,
                           GangActions& actions) {
  BindsUnderWay::Entry bind = unit.plan.Drop(uid);
  if (bind != nullptr) actions.answers.emplace_back(std::move(bind), tl::unexpected(why));
}

void GangTable::GiveUp(Unit& unit, const std::string& uid, const Error& why, GangActions& actions) {
  DropMember(unit, uid, why, actions);
  parts_.state.Unplan(std::span(&uid, 1));
}

void GangTable::AnswerHeld(Unit& unit, const Error& why, GangActions& actions) {
  for (auto& [uid, member] : unit.plan.members) {
    if (member.bind == nullptr) continue;
    actions.answers.emplace_back(std::exchange(member.bind, nullptr), tl::unexpected(why));
  }
}

void GangTable::DropPlan(Unit& unit, const Error& why, GangActions& actions) {
  AnswerHeld(unit, why, actions);
  std::vector<std::string> uids;
  for (const auto& [uid, member] : unit.plan.members) uids.push_back(uid);
  parts_.state.Unplan(uids);
  unit.plan.Clear();
  DropFollowers(unit);
  Promise(unit);
  StopClearing(unit);
}

void GangTable::Abort(Unit& unit, const Error& why, std::string_view label, Instant now,
                      GangActions& actions) {
  const PodId one = unit.plan.members.empty() ? PodId() : unit.plan.members.begin()->second.pod->id;
  DropPlan(unit, why, actions);
  unit.plan.excluded.clear();  // what kept a pod from a node may be over by the next plan
  unit.wait.pause =
      std::clamp(unit.wait.pause * 2, gangs::kFirstAbortPause, gangs::kLongestAbortPause);
  unit.wait.not_before = now + unit.wait.pause;
  unit.wait.refused_on = {};
  actions.news.push_back({.what = GangNews::What::kAborted,
                          .gang = unit.roll.says.id,
                          .pod = one,
                          .text = why.message,
                          .why = label});
}

}  // namespace berth
