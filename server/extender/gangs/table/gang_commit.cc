// SPDX-License-Identifier: Apache-2.0
#include "server/extender/gangs/table/gang_commit.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "server/extender/gangs/roster/gang_limits.h"

namespace berth {

// kube-scheduler may need some seconds to come with all of them: no less than gangs::kShortestHold.
Duration GangCommits::HoldOf(const GangSettings& settings, const GangUnit& unit) {
  if (!unit.roll.says.hold) return settings.hold;
  return std::clamp(*unit.roll.says.hold, std::min(gangs::kShortestHold, settings.hold),
                    settings.hold);
}

void GangCommits::Fail(const BindsUnderWay::Entry& bind, std::string_view why, Instant now,
                       GangActions& actions) {
  if (!plans_.leads()) {
    actions.answers.emplace_back(bind, tl::unexpected(gangs::Conflict(why)));
    return;
  }
  const MutexLock lock(mutex_);
  failing_.push_back({bind, gangs::Conflict(why), now + gangs::kFailsAfter});
}

void GangCommits::AnswerFailing(Instant now, GangActions& actions) {
  const MutexLock lock(mutex_);
  std::erase_if(failing_, [&](Failing& failing) {
    if (failing.at > now) return false;
    actions.answers.emplace_back(std::move(failing.bind), tl::unexpected(std::move(failing.why)));
    return true;
  });
}

void GangCommits::Keep(const BindsUnderWay::Entry& bind, GangUnit& unit,
                       GangPlanned::Member& member, Instant now) {
  member.bind = bind;
  member.held = now;
  member.until = bind->request.asked.value_or(now) + HoldOf(*rosters_.settings(), unit);
  unit.plan.touched = now;
}

void GangCommits::HoldForPlan(Engine& engine, GangUnit& unit, const BindsUnderWay::Entry& bind,
                              const std::shared_ptr<const PodRequest>& pod, Instant now,
                              GangActions& actions) {
  const std::size_t most_held = rosters_.settings()->most_held;
  if (most_held > 0 && unit.plan.held() >= most_held) {
    return Fail(bind, gangs::kNoPlan, now, actions);  // the gang does not need it
  }
  Keep(bind, unit, unit.plan.members.at(pod->id.uid), now);
  if (!IsReady(unit, now)) return;  // by far the most
  const GangRoster roster = rosters_.Read(unit, pod);
  rosters_.Note(unit, roster, now);
  CommitIfWhole(engine, unit, roster, now, actions);
}

bool GangCommits::Hold(Engine& engine, GangUnit& unit, const BindsUnderWay::Entry& bind,
                       const std::shared_ptr<const PodRequest>& pod, Instant now,
                       GangActions& actions) {
  const std::string& uid = pod->id.uid;
  unit.HasCome(*pod, now);
  unit.wait.asleep.erase(uid);
  plans_.PlanAtLast(engine, unit, pod, now, actions);
  const auto planned = unit.plan.members.find(uid);
  if (planned != unit.plan.members.end()) planned->second.asks = 0;
  // One without GPUs goes where kube-scheduler puts it.
  const bool is_there = planned != unit.plan.members.end() &&
                        (planned->second.node == bind->request.node || !pod->shape.wants_gpu());
  if (is_there && unit.plan.phase == GangPlanned::Phase::kPlanned && !unit.roll.began) {
    HoldForPlan(engine, unit, bind, pod, now, actions);
    return true;
  }
  const bool is_first = unit.plan.is_first(uid);
  if (is_there && unit.roll.began && !is_first) return false;  // thousands are released at a time
  const GangRoster roster = rosters_.Read(unit, pod);
  rosters_.Note(unit, roster, now);
  if (is_first) {
    if (IsStillWhole(unit, roster, actions) && plans_.leads()) return false;
    unit.plan.FirstIsOver();
  }
  if (is_there) {
    if (unit.roll.began) return false;
    Keep(bind, unit, planned->second, now);
    return true;
  }
  if (!unit.plan.members.contains(uid) &&
      (rosters_.MayGo(unit, roster, *pod, now) || unit.roll.alone.contains(uid))) {
    return false;
  }
  Fail(bind, unit.roll.says.minimum ? gangs::kNoPlan : gangs::kNoSize, now, actions);
  return true;
}

void GangCommits::Ended(GangUnit& unit, const PodId& pod, const Status& bound, Instant now,
                        GangActions& actions) {
  unit.roll.alone.erase(pod.uid);
  unit.roll.is_stale = true;  // its state is shown as it is now
  unit.plan.excluded.erase(pod.uid);
  const bool is_first = unit.plan.is_first(pod.uid);
  if (bound) unit.plan.Drop(pod.uid);
  if (!is_first) return;
  if (bound) return Begin(unit, pod, now, actions);
  if (bound.error().code == Errc::kUnavailable) return;  // Look finds out
  unit.plan.Drop(pod.uid);
  unit.plan.FirstIsOver();
  if (bound.error().code == Errc::kNotFound) return;  // the next one is tried, if enough are left
  Abort(unit, gangs::Conflict(gangs::kFirstRefused), "first_refused", now, actions);
}

bool GangCommits::IsReady(const GangUnit& unit, Instant now) {
  GangCount ready{unit.roll.bound, unit.roll.bound_roles};
  bool any_held = false;
  for (const auto& [uid, member] : unit.plan.members) {
    const bool is_held = member.bind != nullptr && member.until - now > gangs::kMargin;
    any_held = any_held || member.bind != nullptr;
    if (is_held || !member.pod->shape.wants_gpu()) ready.Add(unit.roll.says, *member.pod);
  }
  return any_held && unit.roll.Missing(ready) == 0;
}

bool GangCommits::IsStillWhole(GangUnit& unit, const GangRoster& roster, GangActions& actions) {
  DropUnawaited(unit, actions);
  GangCount ready = roster.bound;
  for (const auto& [uid, member] : unit.plan.members) {
    const bool is_first = uid == unit.plan.first;
    const bool is_ready = member.bind != nullptr || !member.pod->shape.wants_gpu();
    if (is_first || (is_ready && roster.uids.contains(uid))) ready.Add(unit.roll.says, *member.pod);
  }
  return unit.roll.Missing(ready) == 0;
}

void GangCommits::DropUnawaited(GangUnit& unit, GangActions& actions) {
  for (auto& [uid, member] : unit.plan.members) {
    if (member.bind == nullptr || !member.bind->waits || member.bind->waits()) continue;
    actions.answers.emplace_back(std::exchange(member.bind, nullptr),
                                 tl::unexpected(gangs::Conflict(gangs::kClientGone)));
  }
}

void GangCommits::CommitIfWhole(Engine& engine, GangUnit& unit, const GangRoster& roster,
                                Instant now, GangActions& actions) {
  if (unit.plan.phase != GangPlanned::Phase::kPlanned || !plans_.leads()) return;
  if (unit.roll.began) return Release(unit, actions);
  if (!IsReady(unit, now)) return;
  DropUnawaited(unit, actions);
  if (!IsReady(unit, now)) return;
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const bool holds = std::ranges::all_of(unit.plan.members, [&snapshot](const auto& member) {
    return PlanHolds(*snapshot, *member.second.pod, member.second.node);
  });
  if (!holds) {
    if (!plans_.Plan(engine, unit, roster, now, actions)) {
      return Abort(unit, gangs::Conflict(gangs::kPlanBroken), "plan_broken", now, actions);
    }
    if (!IsReady(unit, now)) return;  // others may have been planned elsewhere
  }
  SendFirst(unit, actions);
}

// The one whose client gives up first.
void GangCommits::SendFirst(GangUnit& unit, GangActions& actions) {
  const GangPlanned::Member* first = nullptr;
  for (const auto& [uid, member] : unit.plan.members) {
    if (member.bind == nullptr) continue;
    if (first == nullptr || member.until < first->until) first = &member;
  }
  BERTH_CHECK(first != nullptr);
  const std::string uid = first->pod->id.uid;
  actions.binds.push_back(unit.plan.SendFirst(uid));
}

void GangCommits::Begin(GangUnit& unit, const PodId& first, Instant now, GangActions& actions) {
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
       .text = CountText(1 + static_cast<std::int64_t>(unit.plan.held()), "bind") + " released",
       .took = now - held});
  Release(unit, actions);
}

void GangCommits::Release(GangUnit& unit, GangActions& actions) {
  for (auto& [uid, member] : unit.plan.members) {
    if (member.bind != nullptr) {
      actions.binds.push_back(std::exchange(member.bind, nullptr));
    } else if (const auto asleep = unit.wait.asleep.find(uid); asleep != unit.wait.asleep.end()) {
      actions.wakes.push_back(asleep->second);
      unit.wait.asleep.erase(asleep);
    }
  }
}

void GangCommits::DropMember(GangUnit& unit, const std::string& uid, const Error& why,
                             GangActions& actions) {
  BindsUnderWay::Entry bind = unit.plan.Drop(uid);
  if (bind != nullptr) actions.answers.emplace_back(std::move(bind), tl::unexpected(why));
}

void GangCommits::GiveUp(GangUnit& unit, const std::string& uid, const Error& why,
                         GangActions& actions) {
  DropMember(unit, uid, why, actions);
  parts_.state.Unplan(std::span(&uid, 1));
}

void GangCommits::AnswerHeld(GangUnit& unit, const Error& why, GangActions& actions) {
  for (auto& [uid, member] : unit.plan.members) {
    if (member.bind == nullptr) continue;
    actions.answers.emplace_back(std::exchange(member.bind, nullptr), tl::unexpected(why));
  }
}

void GangCommits::DropPlan(GangUnit& unit, const Error& why, GangActions& actions) {
  AnswerHeld(unit, why, actions);
  std::vector<std::string> uids;
  for (const auto& [uid, member] : unit.plan.members) uids.push_back(uid);
  parts_.state.Unplan(uids);
  unit.plan.Clear();
  plans_.DropFollowers(unit);
  plans_.Promise(unit);
  plans_.StopClearing(unit);
}

void GangCommits::Abort(GangUnit& unit, const Error& why, std::string_view label, Instant now,
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
