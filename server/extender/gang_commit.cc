// SPDX-License-Identifier: Apache-2.0
//
// GangTable: from the first bind that is held to the last that is released.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "server/extender/gang_limits.h"
#include "server/extender/gang_table.h"

namespace berth {

bool GangTable::Hold(Engine& engine, const BindsUnderWay::Entry& bind,
                     const std::shared_ptr<const PodRequest>& pod, Instant now,
                     GangActions& actions) {
  const MutexLock lock(mutex_);
  if (!Takes(*pod) || !pod->gang.minimum) return false;
  Unit* const known = UnitOf(*pod, now);
  if (known == nullptr) {
    failing_.push_back({bind, gangs::Conflict(gangs::kTooManyGangs), now + gangs::kFailsAfter});
    return true;
  }
  Unit& unit = *known;
  const std::string& uid = pod->id.uid;
  const Instant asked = bind->request.asked.value_or(now);
  unit.asleep.erase(uid);
  PlanAtLast(engine, unit, pod, now, actions);
  const auto planned = unit.plan.find(uid);
  const bool is_there = planned != unit.plan.end() && planned->second.node == bind->request.node;
  if (is_there && unit.phase == Unit::Phase::kPlanned && !unit.began) {
    planned->second.bind = bind;
    planned->second.held = now;
    planned->second.until = asked + HoldOf(unit);
    unit.touched = now;
    if (!IsReady(unit, now)) return true;  // by far the most
    const Roster roster = RosterOf(unit, pod);
    Note(unit, roster, now);
    CommitIfWhole(engine, unit, roster, now, actions);
    return true;
  }
  const Roster roster = RosterOf(unit, pod);
  Note(unit, roster, now);
  if (unit.phase == Unit::Phase::kCommitting && unit.first == uid) {
    if (IsStillWhole(unit, roster, actions) && !lets_go_) return false;
    unit.phase = Unit::Phase::kPlanned;
  }
  if (is_there && unit.began) return false;
  if (is_there) {
    planned->second.bind = bind;
    planned->second.held = now;
    planned->second.until = asked + HoldOf(unit);
    return true;
  }
  if (!unit.plan.contains(uid) && (MayGo(unit, roster, *pod, now) || unit.alone.contains(uid))) {
    return false;
  }
  if (lets_go_) {
    actions.answers.emplace_back(bind, tl::unexpected(gangs::Conflict(gangs::kNoPlan)));
  } else {
    failing_.push_back({bind, gangs::Conflict(gangs::kNoPlan), now + gangs::kFailsAfter});
  }
  return true;
}

// kube-scheduler may hear before us that those have ended that were evicted, and takes what filter
// said of the cluster without them for what it says now.
void GangTable::PlanAtLast(Engine& engine, Unit& unit, const std::shared_ptr<const PodRequest>& pod,
                           Instant now, GangActions& actions) {
  if (unit.phase != Unit::Phase::kWaiting || lets_go_) return;
  if (!unit.nominated.contains(pod->id.uid)) return;
  if (unit.refused_on == parts_.state.Current()) return;
  Plan(engine, unit, RosterOf(unit, pod), now, actions);
}

void GangTable::Ended(const PodRequest& pod, const Status& bound, Instant now,
                      GangActions& actions) {
  const MutexLock lock(mutex_);
  const auto entry = units_.find(pod.gang.id);
  if (entry == units_.end()) return;
  Unit& unit = entry->second;
  const std::string& uid = pod.id.uid;
  unit.alone.erase(uid);
  unit.excluded.erase(uid);
  if (unit.phase != Unit::Phase::kCommitting || unit.first != uid) {
    if (bound) unit.plan.erase(uid);
    return;
  }
  if (bound) {
    unit.plan.erase(uid);
    return Begin(unit, pod.id, now, actions);
  }
  if (bound.error().code == Errc::kUnavailable) return;  // Look finds out
  unit.plan.erase(uid);
  unit.phase = Unit::Phase::kPlanned;
  if (bound.error().code == Errc::kNotFound) return;  // the next one is tried, if enough are left
  Abort(unit, gangs::Conflict(gangs::kFirstRefused), "first_refused", now, actions);
}

bool GangTable::IsReady(const Unit& unit, Instant now) const {
  const auto ready = std::ranges::count_if(unit.plan, [now](const auto& entry) {
    const Unit::Member& member = entry.second;
    const bool is_held = member.bind != nullptr && member.until - now > gangs::kMargin;
    return is_held || !member.pod->shape.wants_gpu();
  });
  return unit.held() > 0 && unit.bound + ready >= *unit.says.minimum;
}

bool GangTable::IsStillWhole(Unit& unit, const Roster& roster, GangActions& actions) {
  DropUnawaited(unit, actions);
  std::int64_t ready = roster.bound + 1;
  for (const auto& [uid, member] : unit.plan) {
    const bool is_ready = member.bind != nullptr || !member.pod->shape.wants_gpu();
    if (uid != unit.first && is_ready && roster.uids.contains(uid)) ++ready;
  }
  return ready >= *unit.says.minimum;
}

void GangTable::DropUnawaited(Unit& unit, GangActions& actions) {
  for (auto& [uid, member] : unit.plan) {
    if (member.bind == nullptr || !member.bind->waits || member.bind->waits()) continue;
    actions.answers.emplace_back(std::exchange(member.bind, nullptr),
                                 tl::unexpected(gangs::Conflict(gangs::kClientGone)));
  }
}

void GangTable::CommitIfWhole(Engine& engine, Unit& unit, const Roster& roster, Instant now,
                              GangActions& actions) {
  if (unit.phase != Unit::Phase::kPlanned || lets_go_) return;
  if (unit.began) return Release(unit, actions);
  if (!IsReady(unit, now)) return;
  DropUnawaited(unit, actions);
  if (!IsReady(unit, now)) return;
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const bool holds = std::ranges::all_of(unit.plan, [&snapshot](const auto& member) {
    return PlanHolds(*snapshot, *member.second.pod, member.second.node);
  });
  if (!holds) {
    if (!Plan(engine, unit, roster, now, actions)) {
      Abort(unit, gangs::Conflict(gangs::kPlanBroken), "plan_broken", now, actions);
    }
    return;  // the next look commits it: others may have been planned elsewhere
  }
  SendFirst(unit, actions);
}

// The one whose client gives up first.
void GangTable::SendFirst(Unit& unit, GangActions& actions) {
  Unit::Member* first = nullptr;
  for (auto& [uid, member] : unit.plan) {
    if (member.bind == nullptr) continue;
    if (first == nullptr || member.until < first->until) first = &member;
  }
  BERTH_CHECK(first != nullptr);
  unit.phase = Unit::Phase::kCommitting;
  unit.first = first->pod->id.uid;
  actions.binds.push_back(std::exchange(first->bind, nullptr));
}

void GangTable::Begin(Unit& unit, const PodId& first, Instant now, GangActions& actions) {
  unit.phase = Unit::Phase::kPlanned;
  unit.began = unit.ran = true;
  unit.pause = {};
  unit.touched = now;
  Instant held = now;
  for (const auto& [uid, member] : unit.plan) {
    if (member.bind != nullptr) held = std::min(held, member.held);
  }
  actions.news.push_back(
      {.what = GangNews::What::kBegun,
       .gang = unit.says.id,
       .pod = first,
       .text = gangs::Count(1 + static_cast<std::int64_t>(unit.held()), "bind") + " released",
       .took = now - held});
  Release(unit, actions);
}

void GangTable::Release(Unit& unit, GangActions& actions) {
  for (auto& [uid, member] : unit.plan) {
    if (member.bind != nullptr) {
      actions.binds.push_back(std::exchange(member.bind, nullptr));
    } else if (const auto asleep = unit.asleep.find(uid); asleep != unit.asleep.end()) {
      actions.wakes.push_back(asleep->second);
      unit.asleep.erase(asleep);
    }
  }
}

void GangTable::DropMember(Unit& unit, const std::string& uid, const Error& why,
                           GangActions& actions) {
  const auto member = unit.plan.find(uid);
  if (member == unit.plan.end()) return;
  if (member->second.bind != nullptr) {
    actions.answers.emplace_back(member->second.bind, tl::unexpected(why));
  }
  unit.plan.erase(member);
}

void GangTable::GiveUp(Unit& unit, const std::string& uid, const Error& why, GangActions& actions) {
  DropMember(unit, uid, why, actions);
  parts_.state.Unplan(std::span(&uid, 1));
  if (unit.plan.empty()) unit.phase = Unit::Phase::kWaiting;
}

void GangTable::AnswerHeld(Unit& unit, const Error& why, GangActions& actions) {
  for (auto& [uid, member] : unit.plan) {
    if (member.bind == nullptr) continue;
    actions.answers.emplace_back(std::exchange(member.bind, nullptr), tl::unexpected(why));
  }
}

void GangTable::DropPlan(Unit& unit, const Error& why, GangActions& actions) {
  AnswerHeld(unit, why, actions);
  std::vector<std::string> uids;
  for (const auto& [uid, member] : unit.plan) uids.push_back(uid);
  parts_.state.Unplan(uids);
  unit.plan.clear();
  unit.phase = Unit::Phase::kWaiting;
  StopClearing(unit);
}

void GangTable::Abort(Unit& unit, const Error& why, std::string_view label, Instant now,
                      GangActions& actions) {
  const PodId one = unit.plan.empty() ? PodId() : unit.plan.begin()->second.pod->id;
  DropPlan(unit, why, actions);
  unit.excluded.clear();  // what kept a pod from a node may be over by the next plan
  unit.pause = std::clamp(unit.pause * 2, gangs::kFirstAbortPause, gangs::kLongestAbortPause);
  unit.not_before = now + unit.pause;
  unit.refused_on = nullptr;
  actions.news.push_back({.what = GangNews::What::kAborted,
                          .gang = unit.says.id,
                          .pod = one,
                          .text = why.message,
                          .why = label});
}

}  // namespace berth
