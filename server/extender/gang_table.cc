// SPDX-License-Identifier: Apache-2.0
//
// GangTable: the table of gangs, and who comes to it with what.
#include "server/extender/gang_table.h"

#include <algorithm>
#include <utility>

#include "scoring/by_claim.h"
#include "server/extender/gang_limits.h"

namespace berth {

static_assert(GangTable::kMostGangs == 16'384);  // gangs::kTooManyGangs says it

GangTable::GangTable(const Parts& parts)
    : parts_(parts),
      planning_(parts.state, parts.domains, parts.claims),
      settings_(std::make_shared<const Settings>()) {}

void GangTable::Use(Settings settings) {
  auto next = std::make_shared<const Settings>(std::move(settings));
  const MutexLock lock(mutex_);
  settings_ = std::move(next);
}

std::shared_ptr<const GangTable::Settings> GangTable::settings() const {
  const MutexLock lock(mutex_);
  return settings_;
}

bool GangTable::Concerns(const Settings& settings, const PodRequest& pod) {
  if (pod.gang.empty() || !pod.refusal.empty()) return false;
  if (!pod.gang.minimum && pod.gang.object != Gang::Object::kMissing) return false;
  if (pod.gang.minimum && *pod.gang.minimum <= 1 && pod.gang.followers == 0) return false;
  return std::ranges::find(settings.conventions, pod.gang.id.convention) !=
         settings.conventions.end();
}

bool GangTable::Takes(const Settings& settings, const PodRequest& pod) const {
  // There is nothing to plan where only kube-scheduler knows the GPUs.
  return Concerns(settings, pod) && !GetsClaimAnywhere(*parts_.state.Current(), pod);
}

std::shared_ptr<GangUnit> GangTable::UnitOf(const PodRequest& pod, Instant now) {
  const MutexLock lock(mutex_);
  if (const auto known = units_.find(pod.gang.id); known != units_.end()) return known->second;
  if (units_.size() >= kMostGangs) {
    ForgetLocked(now, {});
    if (units_.size() >= kMostGangs) return nullptr;
  }
  auto unit = std::make_shared<Unit>();  // nobody else has it yet
  unit->roll.since = unit->roll.grew = unit->roll.had_members = now;
  unit->roll.says = pod.gang;
  unit->roll.scheduler = pod.scheduler;
  units_.emplace(pod.gang.id, unit);
  return unit;
}

std::shared_ptr<GangUnit> GangTable::Find(const GangId& gang) const {
  const MutexLock lock(mutex_);
  const auto known = units_.find(gang);
  return known == units_.end() ? nullptr : known->second;
}

std::vector<std::shared_ptr<GangUnit>> GangTable::Units() const {
  std::vector<std::shared_ptr<Unit>> units;
  const MutexLock lock(mutex_);
  units.reserve(units_.size());
  for (const auto& [id, unit] : units_) units.push_back(unit);
  return units;
}

void GangTable::Forget(Instant now, Duration since) {
  const MutexLock lock(mutex_);
  ForgetLocked(now, since);
}

// One that somebody else has in hand is left. Its own lock is not taken: the table's comes later.
void GangTable::ForgetLocked(Instant now, Duration since) {
  std::erase_if(units_, [now, since](const auto& entry) {
    const std::int64_t over = entry.second->over_since;
    const bool is_over = over != GangUnit::kNotOver && entry.second.use_count() == 1;
    return is_over && now.time_since_epoch().count() - over >= since.count();
  });
}

void GangTable::Heed(Unit& unit, const PodRequest& pod) {
  unit.roll.says = pod.gang;
  unit.roll.scheduler = pod.scheduler;
}

GangVerdict GangTable::Filter(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
                              const PodRequest& pod, std::span<const NodeIndex> candidates,
                              Instant now, GangActions& actions) {
  const std::shared_ptr<const Settings> settings = this->settings();
  if (!Takes(*settings, pod)) return {};
  const std::shared_ptr<Unit> known = UnitOf(pod, now);
  if (known == nullptr) {
    return {.kind = GangVerdict::Kind::kNotNow,
            .reason = Reason::kPodRefused,
            .text = std::string(gangs::kTooManyGangs),
            .remembered = false};
  }
  Unit& unit = *known;
  const MutexLock lock(unit.mutex);
  HasCome(unit, pod, now);
  if (unit.forgotten) return NotNow(unit, pod, Reason::kGangNoRoom);
  if (const auto other = OtherSize(unit, pod)) {
    return {GangVerdict::Kind::kNotNow, kNoNode, Reason::kPodRefused,
            "the pod's gang " + pod.gang.id.full_name() + ": want one size, got " +
                std::to_string(*pod.gang.minimum) + " here and " + std::to_string(*other) +
                " on other pods"};
  }
  Heed(unit, pod);
  GangVerdict verdict = Judge(engine, unit, {*snapshot, candidates},
                              std::make_shared<const PodRequest>(pod), now, actions);
  if (verdict.reason != Reason::kGangNoRoom || unit.wait.objection.empty()) return verdict;
  verdict.reason = Reason::kPodRefused;
  verdict.text = "the pod's gang " + pod.gang.id.full_name() + ": " + unit.wait.objection;
  return verdict;
}

void GangTable::Notice(Instant now) {
  const std::shared_ptr<const Settings> settings = this->settings();
  const std::uint64_t changes = parts_.waiting.changes();
  if (changes == noticed_ || now < notice_again_) return;
  for (const GangId& gang : parts_.waiting.GangsSince(noticed_)) {
    const std::shared_ptr<const PodRequest> pod = parts_.waiting.AnyMember(gang);
    if (pod == nullptr || !Takes(*settings, *pod)) continue;
    const std::shared_ptr<Unit> known = UnitOf(*pod, now);
    if (known == nullptr) {  // the others wait for room
      notice_again_ = now + gangs::kCountEvery;
      return;
    }
    Unit& unit = *known;
    const MutexLock lock(unit.mutex);
    unit.over_since = GangUnit::kNotOver;
    unit.roll.is_stale = true;
  }
  noticed_ = changes;
}

void GangTable::TakeOver(Engine& engine, Instant now, GangActions& actions) {
  lets_go_ = false;
  const std::shared_ptr<const Settings> settings = this->settings();
  for (const GangId& gang : parts_.waiting.Gangs()) {
    const std::shared_ptr<const PodRequest> pod = parts_.waiting.AnyMember(gang);
    if (pod == nullptr || !Takes(*settings, *pod) || !pod->gang.minimum) continue;
    const std::shared_ptr<Unit> known = UnitOf(*pod, now);
    if (known == nullptr) return;
    Unit& unit = *known;
    const MutexLock lock(unit.mutex);
    Heed(unit, *pod);
    const Roster roster = RosterOf(unit, nullptr);
    Note(unit, roster, now);
    // A former leader may have refused any of them.
    for (const auto& waiting : roster.waiting) {
      unit.wait.asleep.emplace(waiting->id.uid, waiting->id);
    }
    const bool is_whole = unit.roll.Missing(roster.placed) == 0;
    if (!unit.roll.began || is_whole || !unit.plan.members.empty()) continue;
    Plan(engine, unit, roster, now, actions);
  }
}

void GangTable::LetGo(const Error& why, GangActions& actions) {
  lets_go_ = true;
  std::map<GangId, std::shared_ptr<Unit>> units;
  {
    const MutexLock lock(mutex_);
    for (Failing& failing : failing_) {
      actions.answers.emplace_back(std::move(failing.bind), tl::unexpected(std::move(failing.why)));
    }
    failing_.clear();
    units.swap(units_);
  }
  for (const auto& [id, held] : units) {
    Unit& unit = *held;
    const MutexLock lock(unit.mutex);
    unit.forgotten = true;
    DropPlan(unit, why, actions);
  }
}

}  // namespace berth
