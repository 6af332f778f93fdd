// SPDX-License-Identifier: Apache-2.0
#include "server/extender/gang_table.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/check.h"

namespace berth {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A gang may want a shorter hold, not one that ends before kube-scheduler has come with a member
// that it refused before: it waits for up to 10 s.
constexpr Duration kShortestHold = seconds(12);
// A hold that counts for a commit lasts for so long at least: its client has to hear the answer.
constexpr Duration kMargin = seconds(2);
// kube-scheduler tries again at once what failed at once.
constexpr Duration kFailsAfter = seconds(1);
constexpr Duration kFirstAbortPause = seconds(1);  // after an abort, doubled each time
constexpr Duration kLongestAbortPause = seconds(60);
// A plan that was not found is tried again so often, if the cluster has changed.
constexpr Duration kBetweenPlans = milliseconds(200);
// What is left of a gang that was whole is placed pod by pod when nobody has joined for so long.
constexpr Duration kRemnantAfter = seconds(60);
// Members that were woken and do not come sleep beside a kube-scheduler that does not hear of their
// condition: it hears of a bind that fails.
constexpr Duration kNudgeAfter = seconds(2);
constexpr Duration kBetweenNudges = seconds(5);
// Gangs for which nothing can be done are counted anew so often.
constexpr Duration kCountEvery = seconds(5);
// Plans of one Look: the lock is held meanwhile.
constexpr int kPlansOfALook = 4;
constexpr int kExclusionsOfAFilter = 8;

// Constants: kube-scheduler retries at once what fails with another text each time.
constexpr std::string_view kNoPlan = "the pod's group has no plan at present";
constexpr std::string_view kMemberGone = "the pod has left its group";
constexpr std::string_view kClientGone = "whoever asked for this bind has gone";
constexpr std::string_view kHoldOver = "the pod's group did not come together in time";
constexpr std::string_view kPlanBroken = "the pod's group lost its place and there is no other";
constexpr std::string_view kFirstRefused = "the first bind of the pod's group was refused";
constexpr std::string_view kNoSize = "nothing says any more how large the pod's group is";
constexpr std::string_view kWaking = "the others of the pod's group are being woken";

Error Conflict(std::string_view text) { return {Errc::kConflict, std::string(text)}; }

std::string Count(std::int64_t number, std::string_view one) {
  return std::to_string(number) + " " + std::string(one) + (number == 1 ? "" : "s");
}

}  // namespace

void GangTable::Use(Settings settings) {
  const MutexLock lock(mutex_);
  settings_ = std::move(settings);
}

bool GangTable::Concerns(const PodRequest& pod) const {
  const MutexLock lock(mutex_);
  return ConcernsLocked(pod);
}

bool GangTable::ConcernsLocked(const PodRequest& pod) const {
  if (pod.gang.empty() || !pod.refusal.empty()) return false;
  if (!pod.gang.minimum && pod.gang.object != Gang::Object::kMissing) return false;
  if (pod.gang.minimum && *pod.gang.minimum <= 1) return false;
  return std::ranges::find(settings_.conventions, pod.gang.id.convention) !=
         settings_.conventions.end();
}

// --- who is there --------------------------------------------------------------------------------

GangUnit& GangTable::UnitOf(const PodRequest& pod, Instant now) {
  const auto [entry, is_new] = units_.try_emplace(pod.gang.id);
  Unit& unit = entry->second;
  if (is_new) unit.since = unit.grew = now;
  if (is_new) unit.says = pod.gang;
  if (units_.size() <= kMostGangs) return unit;
  // Those that hold nothing and heard nothing for longest.
  auto oldest = units_.end();
  for (auto other = units_.begin(); other != units_.end(); ++other) {
    if (&other->second == &unit || other->second.phase != Unit::Phase::kWaiting) continue;
    if (oldest == units_.end() || other->second.grew < oldest->second.grew) oldest = other;
  }
  if (oldest != units_.end()) units_.erase(oldest);
  return unit;
}

GangTable::Roster GangTable::RosterOf(const Unit& unit,
                                      const std::shared_ptr<const PodRequest>& asker) const {
  Roster roster;
  std::unordered_set<std::string_view> placed;
  const PodRecords pods = parts_.state.GangPods(unit.says.id);
  for (const auto& record : pods) {
    if (record->state == PodState::kPlanned) continue;
    placed.insert(record->pod.id.uid);
    if (record->leaving) continue;
    ++roster.placed;
    roster.gpus_bound =
        roster.gpus_bound || (record->state == PodState::kBound && record->pod.shape.wants_gpu());
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
  unit.placed = roster.placed;
  unit.waiting = std::ssize(roster.waiting);
  unit.counted = now;
  const auto members = static_cast<std::size_t>(roster.placed) + roster.waiting.size();
  if (members > unit.most) {
    unit.most = members;
    unit.grew = now;
  }
  if (members == 0) unit.most = 0;  // they come anew
  unit.began = unit.began || roster.gpus_bound;
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
  if (!ConcernsLocked(pod)) return {};
  Unit& unit = UnitOf(pod, now);
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
  if (const auto held = parts_.state.FindPod(uid); held && held->state == PodState::kReserved) {
    // A bind of it is in doubt, and another one to that node finds out.
    const NodeIndex node = snapshot->names().Find(held->placement.node);
    if (node == kNoNode || std::ranges::find(candidates, node) == candidates.end()) {
      return NotNow(unit, *pod, Reason::kGangNoRoom);
    }
    return {GangVerdict::Kind::kThere, node, Reason::kFits};
  }
  for (int tries = 0; tries <= kExclusionsOfAFilter; ++tries) {
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
    if (!Plan(engine, unit, RosterOf(unit, pod), now, actions)) {
      Abort(unit, Conflict(kPlanBroken), "no_room", now, actions);
      break;
    }
  }
  return NotNow(unit, *pod, Reason::kGangNoRoom);
}

// kube-scheduler may need some seconds to come with all of them: no less than kShortestHold.
Duration GangTable::HoldOf(const Unit& unit) const {
  if (!unit.says.hold) return settings_.hold;
  return std::clamp(*unit.says.hold, std::min(kShortestHold, settings_.hold), settings_.hold);
}

bool GangTable::MayGo(const Unit& unit, const Roster& roster, const PodRequest& pod,
                      Instant now) const {
  // Pods without GPUs are held only for the sake of others.
  const auto wants = [](const auto& member) { return member->shape.wants_gpu(); };
  if (!pod.shape.wants_gpu() && (unit.began || std::ranges::none_of(roster.waiting, wants))) {
    return true;
  }
  if (roster.placed >= *unit.says.minimum) return true;
  const std::int64_t members = roster.placed + static_cast<std::int64_t>(roster.waiting.size());
  return unit.began && members < *unit.says.minimum && now - unit.grew >= kRemnantAfter;
}

bool GangTable::IsWorthATry(const Unit& unit, const Roster& roster, Instant now) const {
  if (unit.refused_on == nullptr || unit.refused_members != roster.waiting.size()) return true;
  return now - unit.refused_at >= kBetweenPlans && unit.refused_on != parts_.state.Current();
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
    unit.plan.emplace(pod->id.uid, Unit::Member{.pod = pod, .node = nodes->begin()->second});
    return true;
  }
  unit.refused_on = nodes.error().snapshot;
  unit.refused_members = roster.waiting.size();
  unit.refused_at = now;
  return false;
}

bool GangTable::Plan(Engine& engine, Unit& unit, const Roster& roster, Instant now,
                     GangActions& actions) {
  GangToPlan ask{.members = roster.waiting,
                 .minimum = std::max<std::int64_t>(*unit.says.minimum - roster.placed, 1),
                 .excluded = unit.excluded};
  if (ask.members.empty() || static_cast<std::int64_t>(ask.members.size()) < ask.minimum)
    return false;
  for (const auto& [uid, member] : unit.plan) {
    if (member.bind != nullptr) ask.fixed.emplace(uid, member.node);
  }
  const auto nodes = planning_.Plan(engine, ask);
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
      member = before->second;
      member.node = node->second;
    }
    plan.emplace(uid, std::move(member));
    const bool may_come = pod->shape.wants_gpu() || unit.began;
    if (const auto asleep = unit.asleep.find(uid); may_come && asleep != unit.asleep.end()) {
      actions.wakes.push_back(asleep->second);
    }
  }
  const bool is_new = unit.phase == Unit::Phase::kWaiting;
  unit.plan = std::move(plan);
  unit.phase = Unit::Phase::kPlanned;
  unit.touched = now;
  unit.refused_on = nullptr;
  unit.shortage.reset();
  unit.told = false;
  if (is_new) {
    actions.news.push_back({.what = GangNews::What::kPlanned,
                            .gang = unit.says.id,
                            .pod = ask.members.front()->id,
                            .text = Count(std::ssize(unit.plan), "member") + " planned"});
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

// --- bind ----------------------------------------------------------------------------------------

bool GangTable::Hold(Engine& engine, const BindsUnderWay::Entry& bind,
                     const std::shared_ptr<const PodRequest>& pod, Instant now,
                     GangActions& actions) {
  const MutexLock lock(mutex_);
  if (!ConcernsLocked(*pod) || !pod->gang.minimum) return false;
  Unit& unit = UnitOf(*pod, now);
  const std::string& uid = pod->id.uid;
  const Instant asked = bind->request.asked.value_or(now);
  unit.asleep.erase(uid);
  const auto planned = unit.plan.find(uid);
  const bool is_there = planned != unit.plan.end() && planned->second.node == bind->request.node;
  if (is_there && unit.phase == Unit::Phase::kPlanned && !unit.began) {
    planned->second.bind = bind;
    planned->second.held = now;
    planned->second.until = asked + HoldOf(unit);
    unit.touched = now;
    if (ReadyMembers(unit, now) < *unit.says.minimum) return true;  // by far the most
    const Roster roster = RosterOf(unit, pod);
    Note(unit, roster, now);
    CommitIfWhole(engine, unit, roster, now, actions);
    return true;
  }
  const Roster roster = RosterOf(unit, pod);
  Note(unit, roster, now);
  if (unit.phase == Unit::Phase::kCommitting && unit.first == uid) {
    // Others may have gone since its turn came.
    std::int64_t members = roster.placed;
    for (const auto& [other, member] : unit.plan) members += roster.uids.contains(other) ? 1 : 0;
    if (members >= *unit.says.minimum && !lets_go_) return false;
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
    actions.answers.emplace_back(bind, tl::unexpected(Conflict(kNoPlan)));
  } else {
    failing_.push_back({bind, Conflict(kNoPlan), now + kFailsAfter});
  }
  return true;
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
  Abort(unit, Conflict(kFirstRefused), "first_refused", now, actions);
}

std::int64_t GangTable::ReadyMembers(const Unit& unit, Instant now) const {
  return unit.placed + std::ranges::count_if(unit.plan, [now](const auto& entry) {
           const Unit::Member& member = entry.second;
           const bool is_held = member.bind != nullptr && member.until - now > kMargin;
           return is_held || !member.pod->shape.wants_gpu();
         });
}

void GangTable::CommitIfWhole(Engine& engine, Unit& unit, const Roster& roster, Instant now,
                              GangActions& actions) {
  if (unit.phase != Unit::Phase::kPlanned || lets_go_) return;
  if (unit.began) return Release(unit, actions);
  if (unit.held() == 0 || ReadyMembers(unit, now) < *unit.says.minimum) return;
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const bool holds = std::ranges::all_of(unit.plan, [&snapshot](const auto& member) {
    return PlanHolds(*snapshot, *member.second.pod, member.second.node);
  });
  if (!holds) {
    if (!Plan(engine, unit, roster, now, actions)) {
      Abort(unit, Conflict(kPlanBroken), "plan_broken", now, actions);
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
  unit.began = true;
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
       .text = Count(1 + static_cast<std::int64_t>(unit.held()), "bind") + " released",
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

void GangTable::Abort(Unit& unit, const Error& why, std::string_view label, Instant now,
                      GangActions& actions) {
  PodId one;
  std::vector<std::string> uids;
  for (auto& [uid, member] : unit.plan) {
    uids.push_back(uid);
    one = member.pod->id;
    if (member.bind != nullptr) actions.answers.emplace_back(member.bind, tl::unexpected(why));
  }
  unit.plan.clear();
  unit.phase = Unit::Phase::kWaiting;
  parts_.state.Unplan(uids);
  unit.pause = std::clamp(unit.pause * 2, kFirstAbortPause, kLongestAbortPause);
  unit.not_before = now + unit.pause;
  unit.refused_on = nullptr;
  actions.news.push_back({.what = GangNews::What::kAborted,
                          .gang = unit.says.id,
                          .pod = one,
                          .text = why.message,
                          .why = label});
}

// --- what time and the cluster bring -------------------------------------------------------------

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
                                   tl::unexpected(Conflict(kPlanBroken)));
      continue;
    }
    is_over = is_over || member.until <= now + kMargin / 2;
    if (member.bind->waits && !member.bind->waits()) {
      actions.answers.emplace_back(std::exchange(member.bind, nullptr),
                                   tl::unexpected(Conflict(kClientGone)));
    }
  }
  if (!is_broken) {
    unit.checked_on = snapshot;
    unit.checked_members = parts_.waiting.ChangesOf(unit.says.id);
  }
  for (const std::string& uid : gone) DropMember(unit, uid, Conflict(kMemberGone), actions);
  parts_.state.Unplan(gone);
  if (is_over) {
    Abort(unit, Conflict(kHoldOver), "timeout", now, actions);
  } else if (roster.placed + std::ssize(unit.plan) < *unit.says.minimum || is_broken) {
    const bool enough = roster.placed + std::ssize(roster.waiting) >= *unit.says.minimum;
    if (!enough || !Plan(engine, unit, roster, now, actions)) {
      Abort(unit, Conflict(is_broken ? kPlanBroken : kMemberGone),
            is_broken ? "plan_broken" : "member_gone", now, actions);
    }
  } else if (now - unit.touched > HoldOf(unit)) {  // nobody comes for it
    if (unit.began && roster.placed >= *unit.says.minimum) {
      std::vector<std::string> extras;
      for (const auto& [uid, member] : unit.plan) extras.push_back(uid);
      parts_.state.Unplan(extras);
      unit.plan.clear();
      unit.phase = Unit::Phase::kWaiting;
      return false;
    }
    Abort(unit, Conflict(kHoldOver), "timeout", now, actions);
  }
  return !unit.plan.empty();
}

// A refused bind makes kube-scheduler look again at every pod that it has put aside.
void GangTable::Nudge(Unit& unit, const Roster& roster, Instant now, GangActions& actions) {
  if (unit.began || unit.phase != Unit::Phase::kPlanned) return;
  if (now - unit.touched < kNudgeAfter || now < unit.next_nudge) return;
  std::int64_t missing = *unit.says.minimum - roster.placed;
  for (const auto& [uid, member] : unit.plan) {
    if (member.bind != nullptr || !member.pod->shape.wants_gpu()) --missing;
  }
  if (missing <= 0 || unit.asleep.empty()) return;
  for (auto& [uid, member] : unit.plan) {
    if (member.bind == nullptr) continue;
    actions.answers.emplace_back(std::exchange(member.bind, nullptr),
                                 tl::unexpected(Conflict(kWaking)));
    unit.next_nudge = now + kBetweenNudges;
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
    return member.second.bind != nullptr && member.second.until <= now + kMargin / 2;
  });
  if (!is_over) return;
  // Those that are held come again, and find the gang begun, or not.
  for (auto& [uid, member] : unit.plan) {
    if (member.bind == nullptr) continue;
    actions.answers.emplace_back(std::exchange(member.bind, nullptr),
                                 tl::unexpected(Conflict(kHoldOver)));
  }
}

void GangTable::LookAt(Engine& engine, Unit& unit, Instant now, int& plans, GangActions& actions) {
  const std::optional<int> minimum = unit.says.minimum;
  if (parts_.groups != nullptr) parts_.groups->Update(unit.says);
  if (minimum != unit.says.minimum) unit.nothing_to_do = false;
  if (!unit.says.minimum) {  // its object has gone
    if (unit.phase == Unit::Phase::kPlanned && !unit.began) {
      Abort(unit, Conflict(kNoSize), "no_size", now, actions);
    }
    return;
  }
  if (unit.phase == Unit::Phase::kCommitting) return LookAtFirst(unit, now, actions);
  const bool is_quiet =
      unit.is_idle() || (unit.plan.empty() && unit.nothing_to_do && IsChecked(unit));
  if (is_quiet && now - unit.counted < kCountEvery) return;
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
  int plans = kPlansOfALook;
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
    if (pod == nullptr || !ConcernsLocked(*pod) || !pod->gang.minimum) continue;
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
  for (auto& [id, unit] : units_) {
    std::vector<std::string> uids;
    for (auto& [uid, member] : unit.plan) {
      uids.push_back(uid);
      if (member.bind != nullptr) actions.answers.emplace_back(member.bind, tl::unexpected(why));
    }
    parts_.state.Unplan(uids);
  }
  units_.clear();
}

// --- what is there -------------------------------------------------------------------------------

GangView GangTable::ViewOf(const Unit& unit, Instant now) const {
  GangView view{.id = unit.says.id,
                .state = "gathering",
                .minimum = unit.says.minimum.value_or(0),
                .total = unit.says.total,
                .placed = unit.placed,
                .waiting = unit.waiting,
                .planned = std::ssize(unit.plan),
                .held = static_cast<std::int64_t>(unit.held()),
                .age = now - unit.since,
                .why = {}};
  const std::int64_t members = view.placed + view.waiting;
  if (!unit.says.minimum) {
    view.why = "no object says how many pods it needs";
  } else if (view.placed >= view.minimum || (view.placed > 0 && view.waiting == 0)) {
    view.state = "whole";  // or what is left of it: its pods end one by one
  } else if (unit.phase == Unit::Phase::kCommitting) {
    view.state = "committing";
  } else if (unit.began && view.placed > 0) {
    view.state = "begun";
  } else if (!unit.plan.empty()) {
    view.state = "planned";
  } else if (members >= view.minimum) {
    view.state = "waiting";
  }
  if (!view.why.empty() || view.state == "whole") return view;
  if (members < view.minimum) {
    view.why = Count(members, "pod") + " of " + std::to_string(view.minimum) + " are there";
  } else if (unit.shortage) {
    view.why = std::to_string(view.placed + unit.shortage->fits) + " of " +
               Count(view.minimum, "member") + " fit" +
               (unit.shortage_domain.empty() ? "" : " in " + unit.shortage_domain) +
               (unit.shortage->searched ? "" : " (not all ways were tried)");
  } else if (now < unit.not_before) {
    view.why = "it is tried again soon";
  }
  return view;
}

std::vector<GangView> GangTable::Views(Instant now) const {
  const MutexLock lock(mutex_);
  std::vector<GangView> views;
  views.reserve(units_.size());
  for (const auto& [id, unit] : units_) {
    if (unit.placed + unit.waiting > 0 || !unit.is_idle()) views.push_back(ViewOf(unit, now));
  }
  return views;
}

}  // namespace berth
