// SPDX-License-Identifier: Apache-2.0
//
// GangTable: who of a gang is there.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "cluster/values/alike.h"
#include "server/extender/gang_limits.h"
#include "server/extender/gang_table.h"

namespace berth {
namespace {

// In how many ways the pods differ; beyond the bound that and no more.
std::size_t KindsOf(std::span<const std::shared_ptr<const PodRequest>> pods) {
  std::vector<const PodRequest*> kinds;
  for (const auto& pod : pods) {
    const auto is_like = [&pod](const PodRequest* kind) { return SamePodKind(*kind, *pod); };
    if (std::ranges::any_of(kinds, is_like)) continue;
    kinds.push_back(pod.get());
    if (kinds.size() > gangs::kMostKinds) break;
  }
  return kinds.size();
}

// Which pods a gang that gathers lacks, where that can be told: those of a role; the launcher of an
// MPIJob, whose pods say whether they are workers.
std::string WhoLacks(const Gang& gang, const GangCount& there,
                     std::span<const std::shared_ptr<const PodRequest>> waiting) {
  std::string text;
  for (const GangRole& role : MissingRoles(gang, there.roles)) {
    text += (text.empty() ? "; " : ", ") + std::to_string(role.minimum) + " of role " + role.name +
            (role.minimum == 1 ? " is missing" : " are missing");
  }
  const auto is_worker = [](const std::shared_ptr<const PodRequest>& pod) {
    const std::string* const role = pod->labels == nullptr
                                        ? nullptr
                                        : FindLabel(*pod->labels, "training.kubeflow.org/job-role");
    return role != nullptr && *role == "worker";
  };
  const bool all = !waiting.empty() && std::ssize(waiting) == there.pods;
  if (!text.empty() || !all || !std::ranges::all_of(waiting, is_worker)) return text;
  return "; all are workers: the launcher is missing";
}

// The pods themselves say the size, and this one contradicts what the gang is known by.
bool SaysAnotherSize(const Gang& says, const PodRequest& pod) {
  return pod.gang.object == Gang::Object::kNone && pod.gang.minimum && says.minimum &&
         says.minimum != pod.gang.minimum;
}

bool IsRemnant(const GangRoll& roll, Instant now) {
  return roll.ran && roll.gathers && now - roll.grew >= gangs::kRemnantAfter;
}

}  // namespace

GangTable::Roster GangTable::RosterOf(const Unit& unit,
                                      const std::shared_ptr<const PodRequest>& asker) const {
  Roster roster;
  roster.change = parts_.waiting.ChangesOf(unit.roll.says.id);
  std::unordered_set<std::string_view> placed;
  ClusterState::GangContents there = parts_.state.GangPods(unit.roll.says.id);
  roster.snapshot = std::move(there.snapshot);
  const auto note = [&roster](const std::optional<WallTime>& created) {
    if (created) roster.created = std::min(roster.created.value_or(*created), *created);
  };
  for (const auto& record : there.pods) {
    if (record->state == PodState::kPlanned) continue;
    placed.insert(record->pod.id.uid);
    if (record->leaving) continue;
    roster.placed.Add(unit.roll.says, record->pod);
    note(record->life.started);
    if (record->state != PodState::kBound) continue;
    roster.bound.Add(unit.roll.says, record->pod);
    roster.gpus_bound = roster.gpus_bound || WantsDevices(unit, record->pod);
  }
  bool has_asker = asker == nullptr;
  const std::string& scheduler = asker == nullptr ? unit.roll.scheduler : asker->scheduler;
  for (WaitingPod& waiting : parts_.waiting.WaitingMembers(unit.roll.says.id, scheduler)) {
    const std::string& uid = waiting.pod->id.uid;
    if (placed.contains(uid)) continue;
    const bool is_asker = asker != nullptr && uid == asker->id.uid;
    if (!is_asker && SaysAnotherSize(unit.roll.says, *waiting.pod)) {
      roster.contradicts = waiting.pod->id.name + " says that there are " +
                           std::to_string(*waiting.pod->gang.minimum);
      continue;
    }
    has_asker = has_asker || is_asker;
    note(waiting.created);
    const auto planned = unit.plan.members.find(uid);
    const bool is_planned = planned != unit.plan.members.end() && planned->second.needs_bind();
    if (roster.said.empty() && !waiting.scheduler_said.empty() &&
        (is_planned || unit.wait.absent.contains(uid))) {
      roster.said = waiting.pod->id.name + ": " + waiting.scheduler_said;
    }
    if (waiting.unschedulable) roster.unschedulable.push_back(waiting.pod->id);
    roster.waiting.push_back(is_asker ? asker : std::move(waiting.pod));
  }
  if (!has_asker && !placed.contains(asker->id.uid)) roster.waiting.push_back(asker);
  roster.all = roster.placed;
  for (const auto& pod : roster.waiting) {
    roster.uids.insert(pod->id.uid);
    roster.all.Add(unit.roll.says, *pod);
  }
  return roster;
}

std::optional<int> GangTable::OtherSize(const Unit& unit, const PodRequest& pod) const {
  const Gang& says = unit.roll.says;
  if (!SaysAnotherSize(says, pod)) return std::nullopt;
  for (const WaitingPod& other : parts_.waiting.WaitingMembers(pod.gang.id, pod.scheduler)) {
    if (other.pod->id.uid != pod.id.uid && other.pod->gang.minimum == says.minimum) {
      return says.minimum;
    }
  }
  return std::nullopt;
}

void GangTable::Note(Unit& unit, const Roster& roster, Instant now) {
  GangRoll& roll = unit.roll;
  const std::int64_t members = roster.all.pods;
  if (members > 0) roll.had_members = now;
  // Its controller may create all of it anew, under the same name: that is another beginning.
  const bool began = roster.bound.pods > 0 && (roll.began || roster.gpus_bound);
  if (members > roll.members() || (roll.began && !began)) roll.grew = now;
  roll.began = began;
  roll.ran = roll.ran || began;
  if (roster.bound.pods == 0) roll.alone.clear();
  // A broken gang has the age of those that it has lost.
  const bool is_older = roll.created && roster.placed.pods > 0;
  if (!is_older || (roster.created && *roster.created < *roll.created)) {
    roll.created = roster.created;
  }
  roll.placed = roster.placed.pods;
  roll.bound = roster.bound.pods;
  roll.bound_roles = roster.bound.roles;
  roll.waiting = std::ssize(roster.waiting);
  unit.wait.said = roster.said;
  roll.counted = now;
  roll.is_stale = false;
  if (roll.kinds == 0 || roll.changed != roster.change) {
    roll.claims_left = parts_.claims == nullptr || !GangClaims::AreSeparate(roster.waiting);
    roll.kinds = KindsOf(roster.waiting);
    roll.changed = roster.change;
  }
  roll.has_claims =
      std::ranges::any_of(roster.waiting, [&](const auto& pod) BERTH_REQUIRES(unit.mutex) {
        return ClaimsOf(unit, *pod) != ClaimState::kNone;
      });
  // Of those that come later it is not known whether they were made with those that have ended.
  const auto is_new = [&roll](const auto& pod) { return !roll.past_of.contains(pod->id.uid); };
  if (roll.ended > 0 && std::ranges::any_of(roster.waiting, is_new)) {
    roll.ended = 0;
    roll.past_members = -1;
  }
  roll.needs = roll.says.minimum.value_or(0);
  // Minimums of roles that are not known are met for certain where all that there are start.
  if (NeedsAll(roll.says, roster.all.roles)) roll.needs = std::max(roll.needs, members);
  // A controller's object says how many are left.
  if (roll.says.object == Gang::Object::kNone) {
    roll.needs = std::max<std::int64_t>(roll.needs - roll.ended, 1);
  }
  roll.gathers = roll.Missing(roster.all) > 0;
  roll.lacks = roll.gathers ? WhoLacks(roll.says, roster.all, roster.waiting) : "";
  roll.contradicts = roster.contradicts;
  roll.wants_devices = std::ranges::any_of(
      roster.waiting,
      [&](const auto& pod) BERTH_REQUIRES(unit.mutex) { return WantsDevices(unit, *pod); });
  unit.wait.objection = Objection(*settings(), unit);
}

GangTable::Roster GangTable::Count(Unit& unit, Instant now) {
  Roster roster = RosterOf(unit, nullptr);
  Note(unit, roster, now);
  GangWait& wait = unit.wait;
  const auto is_gone = [&roster](const std::string& uid) { return !roster.uids.contains(uid); };
  std::erase_if(unit.roll.alone, is_gone);
  std::erase_if(wait.asked, is_gone);
  std::erase_if(wait.absent, [&](const auto& absent) { return is_gone(absent.first); });
  std::erase_if(wait.asleep, [&](const auto& asleep) {
    // One whose bind is in doubt may wait again soon.
    return is_gone(asleep.first) && !IsBeingBound(asleep.first);
  });
  // Its own filters left no node, so it did not ask, and nobody but us will tell it of a plan.
  for (const PodId& id : roster.unschedulable) {
    if (wait.asked.contains(id.uid) || unit.plan.members.contains(id.uid)) continue;
    wait.asleep.emplace(id.uid, id);
  }
  return roster;
}

bool GangTable::IsBeingBound(std::string_view uid) const {
  const std::optional<PodRecord> held = parts_.state.FindPod(uid);
  return held && held->state == PodState::kReserved;
}

bool GangTable::MayGo(const Unit& unit, const Roster& roster, const PodRequest& pod,
                      Instant now) const {
  const GangRoll& roll = unit.roll;
  if (!roll.says.minimum) return false;  // nobody can say any more how many it needs
  const bool gathers = roll.Missing(roster.all) > 0;
  // Pods without GPUs are held for the sake of others, and controllers may make them first.
  const auto wants = [&](const auto& member)
                         BERTH_REQUIRES(unit.mutex) { return WantsDevices(unit, *member); };
  if (!WantsDevices(unit, pod)) {
    if (roll.began) return true;
    const bool may_gather = gathers && now - roll.grew < gangs::kWaitsForGpuMembers;
    if (!may_gather && std::ranges::none_of(roster.waiting, wants)) return true;
  }
  if (roll.Missing(roll.began ? roster.placed : roster.bound) == 0) return true;
  return IsRemnant(roll, now);
}

std::optional<std::int64_t> GangTable::LeftOf(const GangId& gang, Instant now) const {
  const std::shared_ptr<Unit> unit = Find(gang);
  if (unit == nullptr) return std::nullopt;
  const MutexLock lock(unit->mutex);
  if (!IsRemnant(unit->roll, now)) return std::nullopt;
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
    const Roster roster = RosterOf(unit, nullptr);
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

void GangTable::HasCome(Unit& unit, const PodRequest& pod, Instant now) {
  unit.over_since = GangUnit::kNotOver;
  unit.may_give_way = false;
  GangWait& wait = unit.wait;
  wait.asked.insert(pod.id.uid);
  const bool is_absent = wait.absent.erase(pod.id.uid) > 0;
  if (!is_absent || !wait.absent.empty() || wait.absent_differ) return;
  wait.not_before = std::min(wait.not_before, now);
}

}  // namespace berth
