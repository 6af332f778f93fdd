// SPDX-License-Identifier: Apache-2.0
//
// GangTable: who of a gang is there.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "scoring/gangs/gang_class.h"
#include "server/extender/gang_limits.h"
#include "server/extender/gang_table.h"

namespace berth {
namespace {

// In how many ways the pods differ; beyond the bound that and no more.
std::size_t KindsOf(std::span<const std::shared_ptr<const PodRequest>> pods) {
  std::vector<const PodRequest*> kinds;
  for (const auto& pod : pods) {
    const auto is_like = [&pod](const PodRequest* kind) { return AskForTheSame(*kind, *pod); };
    if (std::ranges::any_of(kinds, is_like)) continue;
    kinds.push_back(pod.get());
    if (kinds.size() > gangs::kMostKinds) break;
  }
  return kinds.size();
}

}  // namespace

GangTable::Roster GangTable::RosterOf(const Unit& unit,
                                      const std::shared_ptr<const PodRequest>& asker) const {
  Roster roster;
  roster.change = parts_.waiting.ChangesOf(unit.roll.says.id);
  std::unordered_set<std::string_view> placed;
  ClusterState::GangContents there = parts_.state.GangPods(unit.roll.says.id);
  roster.snapshot = std::move(there.snapshot);
  for (const auto& record : there.pods) {
    if (record->state == PodState::kPlanned) continue;
    placed.insert(record->pod.id.uid);
    if (record->leaving) continue;
    ++roster.placed;
    if (record->state != PodState::kBound) continue;
    ++roster.bound;
    roster.gpus_bound = roster.gpus_bound || record->pod.shape.wants_gpu();
  }
  bool has_asker = asker == nullptr;
  const std::string& scheduler = asker == nullptr ? unit.roll.scheduler : asker->scheduler;
  for (WaitingPod& waiting : parts_.waiting.WaitingMembers(unit.roll.says.id, scheduler)) {
    const std::string& uid = waiting.pod->id.uid;
    if (placed.contains(uid)) continue;
    const bool is_asker = asker != nullptr && uid == asker->id.uid;
    has_asker = has_asker || is_asker;
    if (waiting.unschedulable) roster.unschedulable.push_back(waiting.pod->id);
    roster.waiting.push_back(is_asker ? asker : std::move(waiting.pod));
  }
  if (!has_asker && !placed.contains(asker->id.uid)) roster.waiting.push_back(asker);
  for (const auto& pod : roster.waiting) roster.uids.insert(pod->id.uid);
  return roster;
}

std::optional<int> GangTable::OtherSize(const Unit& unit, const PodRequest& pod) const {
  const Gang& says = unit.roll.says;
  if (pod.gang.object != Gang::Object::kNone || !pod.gang.minimum || !says.minimum ||
      says.minimum == pod.gang.minimum) {
    return std::nullopt;
  }
  for (const WaitingPod& other : parts_.waiting.WaitingMembers(pod.gang.id, pod.scheduler)) {
    if (other.pod->id.uid != pod.id.uid && other.pod->gang.minimum == says.minimum) {
      return says.minimum;
    }
  }
  return std::nullopt;
}

void GangTable::Note(Unit& unit, const Roster& roster, Instant now) {
  GangRoll& roll = unit.roll;
  const std::int64_t members = roster.members();
  if (members > 0) roll.had_members = now;
  // Its controller may create all of it anew, under the same name: that is another beginning.
  const bool began = roster.bound > 0 && (roll.began || roster.gpus_bound);
  if (members > roll.members() || (roll.began && !began)) roll.grew = now;
  roll.began = began;
  roll.ran = roll.ran || began;
  if (roster.bound == 0) roll.alone.clear();
  roll.placed = roster.placed;
  roll.bound = roster.bound;
  roll.waiting = std::ssize(roster.waiting);
  roll.counted = now;
  roll.is_stale = false;
  if (roll.kinds == 0 || roll.changed != roster.change) {
    roll.kinds = KindsOf(roster.waiting);
    roll.changed = roster.change;
  }
  // Minimums of kinds of pods are met for certain where all that there are start.
  if (roll.says.has_roles && roll.says.minimum) {
    roll.says.minimum = std::max(*roll.says.minimum, static_cast<int>(members));
  }
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

bool GangTable::MayGo(const Unit& unit, const Roster& roster, const PodRequest& pod, Instant now) {
  const GangRoll& roll = unit.roll;
  const std::int64_t minimum = *roll.says.minimum;
  // Pods without GPUs are held for the sake of others, and controllers may make them first.
  const auto wants = [](const auto& member) { return member->shape.wants_gpu(); };
  if (!pod.shape.wants_gpu()) {
    if (roll.began) return true;
    const bool may_gather =
        roster.members() < minimum && now - roll.grew < gangs::kWaitsForGpuMembers;
    if (!may_gather && std::ranges::none_of(roster.waiting, wants)) return true;
  }
  if ((roll.began ? roster.placed : roster.bound) >= minimum) return true;
  return roll.ran && roster.members() < minimum && now - roll.grew >= gangs::kRemnantAfter;
}

void GangTable::HasCome(Unit& unit, const PodRequest& pod, Instant now) {
  GangWait& wait = unit.wait;
  wait.asked.insert(pod.id.uid);
  if (wait.absent.erase(pod.id.uid) == 0 || !wait.absent.empty()) return;
  wait.not_before = std::min(wait.not_before, now);
}

}  // namespace berth
