// SPDX-License-Identifier: Apache-2.0
//
// GangTable: the table of gangs, and who comes to it with what.
#include "server/extender/gangs/table/gang_table.h"

#include <algorithm>
#include <utility>

#include "scoring/admission.h"
#include "server/extender/gangs/roster/gang_limits.h"

namespace berth {

static_assert(GangTable::kMostGangs == 16'384);  // gangs::kTooManyGangs says it

GangTable::GangTable(const Parts& parts)
    : parts_(parts), rosters_(parts), plans_(parts, rosters_), commits_(parts, rosters_, plans_) {}

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
  std::size_t own = 0;
  if (const auto units = units_.find(pod.gang.id.namespace_name); units != units_.end()) {
    own = units->second.size();
    const auto known = units->second.find(pod.gang.id);
    if (known != units->second.end()) return known->second;
  }
  if (size_ >= kMostGangs) {
    ForgetLocked(now, {});
    if (size_ >= kMostGangs && !MakePlaceLocked(own)) return nullptr;
  }
  auto unit = std::make_shared<Unit>();  // nobody else has it yet
  unit->roll.since = unit->roll.grew = unit->roll.had_members = now;
  unit->roll.says = pod.gang;
  unit->roll.scheduler = pod.scheduler;
  unit->number = ++heard_of_;
  units_[pod.gang.id.namespace_name].emplace(pod.gang.id, unit);
  ++size_;
  return unit;
}

std::shared_ptr<GangUnit> GangTable::Find(const GangId& gang) const {
  const MutexLock lock(mutex_);
  const auto units = units_.find(gang.namespace_name);
  if (units == units_.end()) return nullptr;
  const auto known = units->second.find(gang);
  return known == units->second.end() ? nullptr : known->second;
}

std::vector<std::shared_ptr<GangUnit>> GangTable::Units() const {
  std::vector<std::shared_ptr<Unit>> units;
  const MutexLock lock(mutex_);
  units.reserve(size_);
  for (const auto& [name, of_namespace] : units_) {
    for (const auto& [id, unit] : of_namespace) units.push_back(unit);
  }
  return units;
}

void GangTable::Forget(Instant now, Duration since) {
  const MutexLock lock(mutex_);
  ForgetLocked(now, since);
}

// One that somebody else has in hand is left. Its own lock is not taken: the table's comes later.
void GangTable::ForgetLocked(Instant now, Duration since) {
  for (auto& [name, units] : units_) {
    size_ -= std::erase_if(units, [now, since](const auto& entry) {
      const std::int64_t over = entry.second->over_since;
      const bool is_over = over != GangUnit::kNotOver && entry.second.use_count() == 1;
      return is_over && now.time_since_epoch().count() - over >= since.count();
    });
  }
  std::erase_if(units_, [](const auto& units) { return units.second.empty(); });
}

bool GangTable::MakePlaceLocked(std::size_t own) {
  const auto most =
      std::ranges::max_element(units_, {}, [](const auto& units) { return units.second.size(); });
  UnitsById& units = most->second;
  if (units.size() <= own + 1) return false;
  const auto gives_way = std::ranges::find_if(units, [](const auto& entry) {
    return entry.second->may_give_way && entry.second.use_count() == 1;
  });
  if (gives_way == units.end()) return false;
  units.erase(gives_way);
  --size_;
  gave_way_ = true;
  return true;
}

GangVerdict GangTable::Filter(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
                              const PodRequest& pod, std::span<const NodeIndex> candidates,
                              Instant now, GangActions& actions) {
  const std::shared_ptr<const Settings> settings = rosters_.settings();
  if (!Takes(*settings, pod)) return {};
  const std::shared_ptr<Unit> known = UnitOf(pod, now);
  if (known == nullptr) {
    return {.kind = GangVerdict::Kind::kNotNow,
            .reason = Reason::kPodRefused,
            .text = std::string(gangs::kTooManyGangs),
            .remembered = false};
  }
  std::shared_ptr<Unit> rival;
  GangVerdict verdict =
      FilterMember(engine, *known, {*snapshot, candidates}, pod, now, actions, rival);
  if (rival != nullptr) GiveWay(*rival, now, actions);
  return verdict;
}

GangVerdict GangTable::FilterMember(Engine& engine, Unit& unit, const Offered& offered,
                                    const PodRequest& pod, Instant now, GangActions& actions,
                                    std::shared_ptr<Unit>& rival) {
  const MutexLock lock(unit.mutex);
  unit.HasCome(pod, now);
  if (unit.forgotten) return NotNow(unit, pod, Reason::kGangNoRoom);
  if (std::string why = rosters_.Apart(unit, pod, pod.scheduler); !why.empty()) {
    return {GangVerdict::Kind::kNotNow, kNoNode, Reason::kPodRefused, std::move(why)};
  }
  unit.Heed(pod);
  GangVerdict verdict =
      Judge(engine, unit, offered, std::make_shared<const PodRequest>(pod), now, actions, rival);
  if (verdict.reason != Reason::kGangNoRoom || unit.wait.objection.empty()) return verdict;
  verdict.reason = Reason::kPodRefused;
  verdict.text = "the pod's gang " + pod.gang.id.full_name() + ": " + unit.wait.objection;
  return verdict;
}

void GangTable::Notice(Instant now) {
  const std::shared_ptr<const Settings> settings = rosters_.settings();
  if (gave_way_.exchange(false)) noticed_ = 0;
  const std::uint64_t changes = parts_.waiting.changes();
  if (changes == noticed_ || now < notice_again_) return;
  std::set<std::string> left_out;  // namespaces of gangs for which there is no room
  for (const GangId& gang : parts_.waiting.GangsSince(noticed_)) {
    if (left_out.contains(gang.namespace_name)) continue;
    const std::shared_ptr<const PodRequest> pod = parts_.waiting.AnyMember(gang);
    if (pod == nullptr || !Takes(*settings, *pod)) continue;
    const std::shared_ptr<Unit> known = UnitOf(*pod, now);
    if (known == nullptr) {
      left_out.insert(gang.namespace_name);
      continue;
    }
    Unit& unit = *known;
    const MutexLock lock(unit.mutex);
    unit.over_since = GangUnit::kNotOver;
    unit.roll.is_stale = true;
  }
  if (left_out.empty()) {
    noticed_ = changes;
  } else {
    notice_again_ = now + gangs::kCountEvery;
  }
}

void GangTable::TakeOver(Engine& engine, Instant now, Duration patience, GangActions& actions) {
  plans_.Lead(true);
  const std::shared_ptr<const Settings> settings = rosters_.settings();
  for (const GangId& gang : parts_.waiting.Gangs()) {
    const std::shared_ptr<const PodRequest> pod = parts_.waiting.AnyMember(gang);
    if (pod == nullptr || !Takes(*settings, *pod) || !pod->gang.minimum) continue;
    const std::shared_ptr<Unit> known = UnitOf(*pod, now);
    if (known == nullptr) continue;
    Unit& unit = *known;
    const MutexLock lock(unit.mutex);
    unit.Heed(*pod);
    const Roster roster = rosters_.Read(unit, nullptr);
    rosters_.Note(unit, roster, now);
    // A former leader may have refused any of them.
    for (const auto& waiting : roster.waiting) {
      unit.wait.asleep.emplace(waiting->id.uid, waiting->id);
    }
    if (!unit.roll.began) unit.wait.unasked_until = now + patience;
    const bool is_whole = unit.roll.Missing(roster.placed) == 0;
    if (!unit.roll.began || is_whole || !unit.plan.members.empty()) continue;
    plans_.Plan(engine, unit, roster, now, actions);
  }
}

void GangTable::LetGo(const Error& why, GangActions& actions) {
  plans_.Lead(false);
  const std::vector<std::shared_ptr<Unit>> units = Units();
  commits_.AnswerFailing(Instant::max(), actions);
  {
    const MutexLock lock(mutex_);
    units_.clear();
    size_ = 0;
  }
  for (const auto& held : units) {
    Unit& unit = *held;
    const MutexLock lock(unit.mutex);
    unit.forgotten = true;
    commits_.DropPlan(unit, why, actions);
  }
}

bool GangTable::Hold(Engine& engine, const BindsUnderWay::Entry& bind,
                     const std::shared_ptr<const PodRequest>& pod, Instant now,
                     GangActions& actions) {
  if (!Takes(*rosters_.settings(), *pod) || !pod->gang.minimum) return false;
  const std::shared_ptr<Unit> unit = UnitOf(*pod, now);
  if (unit == nullptr) {
    commits_.Fail(bind, gangs::kTooManyGangs, now, actions);
    return true;
  }
  const MutexLock lock(unit->mutex);
  return commits_.Hold(engine, *unit, bind, pod, now, actions);
}

void GangTable::Ended(const PodRequest& pod, const Status& bound, Instant now,
                      GangActions& actions) {
  const std::shared_ptr<Unit> unit = Find(pod.gang.id);
  if (unit == nullptr) return;
  const MutexLock lock(unit->mutex);
  commits_.Ended(*unit, pod.id, bound, now, actions);
}

std::optional<std::int64_t> GangTable::LeftOf(const GangId& gang, Instant now) const {
  const std::shared_ptr<Unit> unit = Find(gang);
  if (unit == nullptr) return std::nullopt;
  const MutexLock lock(unit->mutex);
  if (!unit->roll.is_remnant(now)) return std::nullopt;
  return unit->roll.waiting;
}

std::optional<std::string> GangTable::Unsure(Instant now) const {
  std::optional<std::string> longest;
  Instant asked = now;
  for (const std::shared_ptr<Unit>& known : Units()) {
    const Unit& unit = *known;
    const MutexLock lock(unit.mutex);
    const GangRoll& roll = unit.roll;
    if (!roll.gathers || roll.waiting == 0 || now - roll.grew < gangs::kGathersWithin) continue;
    const bool is_same = roll.past_members == roll.members() && roll.past_changed == roll.changed;
    const bool is_asked = roll.past_asked != Instant();
    if (is_same || (is_asked && now - roll.past_asked < gangs::kBetweenQuestions)) continue;
    if (roll.past_asked >= asked) continue;
    asked = roll.past_asked;
    longest = roll.says.id.namespace_name;
  }
  return longest;
}

void GangTable::Learn(const std::string& namespace_name, std::span<const GangPast> pasts,
                      Instant now) {
  std::map<GangId, const GangPast*> by_gang;
  for (const GangPast& past : pasts) by_gang.emplace(past.gang, &past);
  for (const std::shared_ptr<Unit>& known : Units()) {
    Unit& unit = *known;
    const MutexLock lock(unit.mutex);
    GangRoll& roll = unit.roll;
    if (roll.says.id.namespace_name != namespace_name) continue;
    roll.past_asked = now;
    const Roster roster = rosters_.Read(unit, nullptr);
    roll.past_of.clear();
    for (const auto& pod : roster.waiting) roll.past_of.insert(pod->id.uid);
    roll.past_members = roll.members();
    roll.past_changed = roll.changed;
    const auto past = by_gang.find(roll.says.id);
    roll.ended = past == by_gang.end() ? 0 : past->second->succeeded;
    roll.ran = roll.ran || (past != by_gang.end() && past->second->ran);
    roll.is_stale = true;
  }
}

std::vector<GangView> GangTable::Views(Instant now) const {
  std::vector<GangView> views;
  for (const std::shared_ptr<Unit>& unit : Units()) {
    if (auto view = Shown(*unit, now)) views.push_back(*std::move(view));
  }
  return views;
}

std::optional<GangView> GangTable::ViewOfOthers(const PodRequest& member, Instant now) const {
  if (!Takes(*rosters_.settings(), member)) return std::nullopt;
  Unit unit;
  const MutexLock lock(unit.mutex);
  unit.Heed(member);
  unit.roll.since = now;
  if (parts_.groups != nullptr) parts_.groups->Update(unit.roll.says);
  (void)rosters_.Count(unit, now);
  return berth::ViewOf(unit, now);
}

std::string GangTable::Apart(const PodRequest& pod) const {
  const std::shared_ptr<Unit> unit = Find(pod.gang.id);
  if (unit == nullptr) return "";
  const MutexLock lock(unit->mutex);
  return rosters_.Apart(*unit, pod, unit->roll.scheduler);
}

std::optional<GangView> GangTable::View(const GangId& gang, Instant now) const {
  const std::shared_ptr<Unit> unit = Find(gang);
  return unit == nullptr ? std::nullopt : Shown(*unit, now);
}

}  // namespace berth
