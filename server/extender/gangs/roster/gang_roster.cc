// SPDX-License-Identifier: Apache-2.0
#include "server/extender/gangs/roster/gang_roster.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/text.h"
#include "cluster/values/alike.h"
#include "scoring/gangs/gang_plan.h"
#include "server/extender/gangs/roster/gang_limits.h"
#include "server/extender/gangs/roster/gang_unit.h"

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

// Which pods a gang that gathers lacks, where that can be told: those of a role; those that are
// there and gated; the launcher of an MPIJob, whose pods say whether they are workers.
std::string WhoLacks(const Gang& gang, const GangCount& there,
                     std::span<const std::shared_ptr<const PodRequest>> waiting,
                     std::span<const std::shared_ptr<const PodRequest>> gated) {
  std::string text;
  for (const GangRole& role : MissingRoles(gang, there.roles)) {
    text += (text.empty() ? "; " : ", ") + std::to_string(role.minimum) + " of role " + role.name +
            (role.minimum == 1 ? " is missing" : " are missing");
  }
  std::vector<std::string> held;
  for (const auto& pod : gated) held.push_back(pod->id.name);
  if (!held.empty()) text += "; scheduling gates hold back " + Listed(held);
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

// Why no plan is made for such a gang, whatever room there is; "" = one is.
std::string Objection(const GangSettings& settings, const GangUnit& unit) {
  const GangRoll& roll = unit.roll;
  if (roll.kinds > gangs::kMostKinds) {
    return "want at most " + std::to_string(gangs::kMostKinds) +
           " different kinds of pods, got more";
  }
  if (settings.most_held == 0 || roll.began || !roll.says.minimum) return "";
  const std::int64_t needed = roll.needs - roll.bound;
  if (std::cmp_less_equal(needed, settings.most_held)) return "";
  return "want at most " + std::to_string(settings.most_held) + " pods that start together, got " +
         std::to_string(needed) +
         "; each one holds a connection of kube-scheduler until all have come";
}

}  // namespace

GangRosters::GangRosters(const GangParts& parts)
    : parts_(parts), settings_(std::make_shared<const GangSettings>()) {}

void GangRosters::Use(GangSettings settings) {
  auto next = std::make_shared<const GangSettings>(std::move(settings));
  const MutexLock lock(mutex_);
  settings_ = std::move(next);
}

std::shared_ptr<const GangSettings> GangRosters::settings() const {
  const MutexLock lock(mutex_);
  return settings_;
}

GangRoster GangRosters::Read(const GangUnit& unit,
                             const std::shared_ptr<const PodRequest>& asker) const {
  GangRoster roster;
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
  for (WaitingPod& waiting : parts_.waiting.WaitingMembers(unit.roll.says.id)) {
    const std::string& uid = waiting.pod->id.uid;
    if (placed.contains(uid)) continue;
    const bool is_asker = asker != nullptr && uid == asker->id.uid;
    std::string apart = is_asker ? "" : WhyApart(*waiting.pod, unit.roll.says, scheduler);
    if (!apart.empty()) {
      roster.contradicts = std::move(apart);
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

std::string GangRosters::Apart(const GangUnit& unit, const PodRequest& pod,
                               const std::string& scheduler) const {
  const Gang& says = unit.roll.says;
  std::string apart = WhyApart(pod, says, scheduler);
  if (apart.empty() || pod.scheduler != scheduler) return apart;
  const auto others = parts_.waiting.WaitingMembers(pod.gang.id);
  const bool say_so = std::ranges::any_of(others, [&](const WaitingPod& other) {
    return other.pod->id.uid != pod.id.uid && other.pod->gang.minimum == says.minimum;
  });
  return say_so ? apart : "";
}

void GangRosters::Note(GangUnit& unit, const GangRoster& roster, Instant now) const {
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
  roll.lacks = roll.gathers ? WhoLacks(roll.says, roster.all, roster.waiting,
                                       parts_.waiting.GatedMembers(roll.says.id))
                            : "";
  roll.contradicts = roster.contradicts;
  roll.wants_devices = std::ranges::any_of(
      roster.waiting,
      [&](const auto& pod) BERTH_REQUIRES(unit.mutex) { return WantsDevices(unit, *pod); });
  unit.wait.objection = Objection(*settings(), unit);
}

GangRoster GangRosters::Count(GangUnit& unit, Instant now) const {
  GangRoster roster = Read(unit, nullptr);
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
  // What a gang that has begun lacks is planned for as soon as it is there.
  for (const auto& pod : roster.waiting) {
    const std::string& uid = pod->id.uid;
    if (!unit.roll.began || wait.asked.contains(uid) || unit.plan.members.contains(uid)) continue;
    wait.asleep.emplace(uid, pod->id);
  }
  return roster;
}

bool GangRosters::IsBeingBound(std::string_view uid) const {
  const std::optional<PodRecord> held = parts_.state.FindPod(uid);
  return held && held->state == PodState::kReserved;
}

bool GangRosters::MayGo(const GangUnit& unit, const GangRoster& roster, const PodRequest& pod,
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
  return roll.is_remnant(now);
}

ClaimState GangRosters::ClaimsOf(const GangUnit& unit, const PodRequest& pod) const {
  if (parts_.claims == nullptr || unit.roll.claims_left) return ClaimState::kNone;
  return parts_.claims->StateOf(pod);
}

bool GangRosters::WantsDevices(const GangUnit& unit, const PodRequest& pod) const {
  return pod.shape.wants_gpu() || ClaimsOf(unit, pod) != ClaimState::kNone;
}

bool GangRosters::IsAllocated(const GangUnit& unit, const GangRoster& roster) const {
  if (unit.roll.began) return true;
  GangCount there = roster.bound;
  for (const auto& pod : roster.waiting) {
    const bool is_allocated = ClaimsOf(unit, *pod) == ClaimState::kAllocated;
    if (is_allocated || !WantsDevices(unit, *pod)) there.Add(unit.roll.says, *pod);
  }
  return unit.roll.Missing(there) == 0;
}

bool GangWait::IsOut(const std::string& uid, const std::string& node, Instant now) const {
  return std::ranges::any_of(out, [&](const Out& known) {
    return known.node == node && now < known.until && known.uids.contains(uid);
  });
}

std::vector<GangWait::Out>::iterator GangWait::FindOut(const GangPlanned::Member& member) {
  return std::ranges::find_if(out, [&member](const Out& known) {
    return known.node == member.node && SamePodKind(*known.pod, *member.pod);
  });
}

void GangWait::TakeOut(const GangPlanned::Member& member, int asks, Instant now) {
  auto known = FindOut(member);
  if (known == out.end()) {
    if (out.size() >= gangs::kMostOut) out.erase(out.begin());
    known = out.insert(out.end(), Out{{.node = member.node}, member.pod});
  }
  known->pod = member.pod;
  known->uids.insert(member.pod->id.uid);
  known->Take(asks, now);
}

void GangUnit::HasCome(const PodRequest& pod, Instant now) {
  over_since = kNotOver;
  may_give_way = false;
  wait.asked.insert(pod.id.uid);
  const bool is_absent = wait.absent.erase(pod.id.uid) > 0;
  if (!is_absent || !wait.absent.empty() || wait.absent_differ) return;
  wait.not_before = std::min(wait.not_before, now);
}

void GangUnit::Heed(const PodRequest& pod) {
  roll.says = pod.gang;
  roll.scheduler = pod.scheduler;
}

void GangUnit::ComesBack(const PodRequest& pod, Instant now) {
  const auto planned = plan.members.find(pod.id.uid);
  if (planned == plan.members.end()) return;
  const GangPlanned::Member& member = planned->second;
  if (member.asks == 0 || now - member.answered < gangs::kComesBackAfter) return;
  // kube-scheduler binds none of its own gangs' pods while it finds no node for another of them.
  if (pod.gang.comes_at_once() && plan.held() == 0 && !roll.began) return;
  const bool is_known = wait.FindOut(member) != wait.out.end();
  const int asks = member.asks + 1;
  if (asks >= (is_known ? 2 : gangs::kAsksWithoutBind)) wait.TakeOut(member, asks, now);
}

namespace {

std::string NameOf(const PodRequest& pod, const std::string& claim) {
  return FullName(pod.id.namespace_name, claim);
}

}  // namespace

ClaimState GangClaims::StateOf(const PodRequest& pod) const {
  // A pod that has GPUs of a device plugin too is bound by Berth, and its claims come before that.
  if (pod.claims.empty() || pod.claims.size() > kMostPodClaims || pod.shape.wants_gpu()) {
    return ClaimState::kNone;
  }
  ClaimState state = ClaimState::kAllocated;
  for (const std::string& claim : pod.claims) {
    const std::optional<KnownClaim> known = open_.Find(NameOf(pod, claim));
    if (known && known->allocated) continue;
    if (known && known->asks == nullptr) return ClaimState::kNone;
    if (!known) {
      state = ClaimState::kUnseen;
    } else if (state == ClaimState::kAllocated) {
      state = ClaimState::kOpen;
    }
  }
  return state;
}

std::string GangClaims::NodeOf(const PodRequest& pod) const {
  for (const std::string& claim : pod.claims) {
    const std::optional<KnownClaim> known = open_.Find(NameOf(pod, claim));
    if (known && known->allocated && !known->node.empty()) return known->node;
  }
  return "";
}

GangDevices::Claims GangClaims::OpenOf(const PodRequest& pod) const {
  GangDevices::Claims claims;
  for (const std::string& name : pod.claims) {
    const std::optional<KnownClaim> known = open_.Find(NameOf(pod, name));
    if (known && known->asks != nullptr) claims.push_back(known->asks);
  }
  return claims;
}

Result<ClaimRoom> GangClaims::RoomOf(const PodRequest& pod) const {
  const ClaimState state = StateOf(pod);
  if (state == ClaimState::kUnseen) return Invalid("one of its ResourceClaims was not found");
  if (state == ClaimState::kAllocated) return Invalid("its claims have devices");
  if (state == ClaimState::kNone) return Invalid("Berth cannot read what its claims ask for");
  // The others have devices of one node: room anywhere else is none.
  if (!NodeOf(pod).empty()) return Invalid("some of its claims have devices");
  std::vector<DeviceClaim> claims;
  for (const auto& asks : OpenOf(pod)) claims.push_back(*asks);
  return RoomFor(pod, std::move(claims));
}

Result<ClaimRoom> GangClaims::RoomFor(const PodRequest& pod,
                                      std::vector<DeviceClaim> claims) const {
  if (devices_.in_part()) return Invalid("not all devices of the cluster are kept");
  const auto find_class = [this](std::string_view name) { return classes_.Named(name); };
  return ClaimRoom::Make(std::move(claims), find_class, devices_.Current(), pod.shape);
}

bool GangClaims::AreSeparate(std::span<const std::shared_ptr<const PodRequest>> members) {
  std::unordered_set<std::string_view> names;
  for (const auto& pod : members) {
    for (const std::string& claim : pod->claims) {
      if (!claim.empty() && !names.insert(claim).second) return false;
    }
  }
  return names.size() <= kMostTogether;
}

Result<GangClaims::Needs> GangClaims::NeedsOf(
    std::span<const std::shared_ptr<const PodRequest>> members, const Snapshot& snapshot) const {
  Needs needs;
  std::vector<GangDevices::Claims> kinds;
  for (const auto& pod : members) {
    needs.kinds.push_back(kNoClaims);
    if (StateOf(*pod) != ClaimState::kOpen) continue;
    GangDevices::Claims claims = OpenOf(*pod);
    const auto same = std::ranges::find_if(kinds, [&claims](const GangDevices::Claims& kind) {
      return std::ranges::equal(kind, claims,
                                [](const auto& a, const auto& b) { return a == b || *a == *b; });
    });
    needs.kinds.back() = static_cast<int>(same - kinds.begin());
    if (same == kinds.end()) kinds.push_back(std::move(claims));
  }
  if (kinds.empty()) return needs;
  if (devices_.in_part()) return Invalid("not all devices of the cluster are kept");
  const auto find_class = [this](std::string_view name) { return classes_.Named(name); };
  BERTH_TRY(GangDevices devices,
            GangDevices::Make(kinds, find_class, *devices_.Current(), snapshot));
  needs.devices = std::make_unique<GangDevices>(std::move(devices));
  return needs;
}

}  // namespace berth
