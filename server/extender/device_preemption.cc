// SPDX-License-Identifier: Apache-2.0
#include "server/extender/device_preemption.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "cluster/values/alike.h"
#include "scoring/registry.h"

namespace berth {
namespace {

std::vector<PodId> IdsOf(const Node& node, std::span<const std::string> uids) {
  std::vector<PodId> ids;
  for (const std::string& uid : uids) {
    if (const PodRecord* const held = node.FindPod(uid)) ids.push_back(held->pod.id);
  }
  return ids;
}

bool HasOwnClaims(const PodRequest& pod) { return !pod.claims.empty() && !pod.shape.wants_gpu(); }

// Whether the pod would get its GPUs by a claim, if there were a node for it.
bool MayGetDevices(const PodRequest& pod) {
  const bool by_name = !pod.device_class.empty() && pod.shape.wants_gpu();
  return (by_name || HasOwnClaims(pod)) && pod.may_preempt && pod.refusal.empty() &&
         pod.gang.empty();
}

}  // namespace

void DevicePreemption::Look() {
  const Instant now = parts_.clock.Now();
  Tend(now);
  const Extender::Moment moment = parts_.extender.Now();
  std::vector<std::shared_ptr<const PodRequest>> tried;  // of this look, without success
  for (const WaitingPod& waiting : InNeed(now)) {
    const PodRequest& pod = *waiting.pod;
    const bool is_tried = std::ranges::any_of(tried, [&pod](const auto& other) {
      return other->priority >= pod.priority && !HasOwnClaims(pod) && SamePodKind(*other, pod);
    });
    if (is_tried) continue;
    if (!tried.empty() && parts_.clock.Now() - now >= kBudget) return;
    tried.push_back(waiting.pod);
    std::optional<ClaimRoom> room;
    if (HasOwnClaims(pod)) {
      auto found = parts_.extender.RoomOfClaims(pod);
      if (!found) continue;
      room = *std::move(found);
    }
    ClaimRoom* const of_claims = room ? &*room : nullptr;
    if (IsShort(moment, pod, of_claims, now)) MakeRoomFor(moment, pod, of_claims, now);
  }
}

void DevicePreemption::LetGo() {
  const auto rooms = parts_.rooms.Current();
  if (rooms == nullptr) return;
  for (const auto& [node, room] : *rooms) {
    if (!room.moves) Drop(room, parts_.clock.Now(), {});
  }
}

DevicePreemption::Stats DevicePreemption::stats() const {
  const auto rooms = parts_.rooms.Current();
  std::size_t own = 0;
  if (rooms != nullptr) {
    own = static_cast<std::size_t>(
        std::ranges::count_if(*rooms, [](const auto& room) { return !room.second.moves; }));
  }
  return {evicted_.load(), blocked_.load(), failed_.load(), own};
}

void DevicePreemption::Tend(Instant now) {
  const auto rooms = parts_.rooms.Current();
  if (rooms == nullptr) return;
  for (const auto& [node, room] : *rooms) {
    if (!room.moves) Tend(room, now);
  }
}

void DevicePreemption::Tend(DeviceRoom room, Instant now) {
  const std::optional<WaitingPod> waiting = room.own_claims
                                                ? parts_.waiting.FindClaiming(room.pod.uid)
                                                : parts_.waiting.Find(room.pod.uid);
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const bool is_there = snapshot->names().Find(room.node) != kNoNode;
  if (!waiting || waiting->gated || !is_there) return Drop(room, now, {});
  if (room.held) {
    if (now - *room.held >= kComesWithin) Drop(room, now, kBlocked);
    return;
  }
  if (now - room.since >= kKeepsFor) return Drop(room, now, kBlocked);
  (void)Evict(room, now);
  if (Hold(room, *waiting->pod)) {
    room.held = now;
    (void)parts_.waker.Wake(room.pod);  // kube-scheduler may know that the devices are free before
  }
  (void)parts_.rooms.Put(std::move(room));
}

bool DevicePreemption::HasRoom(const DeviceRoom& room, const PodRequest& pod) const {
  auto claims = parts_.extender.RoomOfClaims(pod);
  if (!claims) return true;  // they have devices by now, or are others' to allocate
  const Extender::Moment now = parts_.extender.Now();
  const NodeIndex index = now.snapshot->names().Find(room.node);
  if (index == kNoNode) return false;
  const Node& node = now.snapshot->node(index);
  return Fits(node, claims->shape()) && claims->Has(node);
}

bool DevicePreemption::Hold(const DeviceRoom& room, const PodRequest& pod) const {
  if (room.own_claims) return HasRoom(room, pod);
  const Extender::Moment now = parts_.extender.Now();
  const NodeIndex index = now.snapshot->names().Find(room.node);
  if (index == kNoNode) return false;
  auto placement = now.policy->engine->PlaceOn(now.snapshot, pod.shape, index);
  if (!placement) return false;
  const PodPlacement planned{pod, *std::move(placement)};
  return parts_.state.Plan(std::span(&planned, 1)).has_value();
}

void DevicePreemption::Drop(const DeviceRoom& room, Instant now, Duration pause) {
  parts_.rooms.Drop(room.node);
  (void)parts_.state.Unplan(std::span(&room.pod.uid, 1));
  short_.Put(room.pod.uid, {.since = {}, .next = now + pause});
}

std::vector<WaitingPod> DevicePreemption::InNeed(Instant now) {
  const std::set<std::string> askers = parts_.extender.Askers();
  const auto rooms = parts_.rooms.Current();
  std::set<std::string> served;
  if (rooms != nullptr) {
    for (const auto& [node, room] : *rooms) served.insert(room.pod.uid);
  }
  std::vector<WaitingPod> need;
  if (served.size() >= DeviceRooms::kMost) return need;
  std::vector<WaitingPod> everybody = parts_.waiting.Everybody();
  std::ranges::move(parts_.waiting.Claiming(), std::back_inserter(everybody));
  for (WaitingPod& waiting : everybody) {
    const PodRequest& pod = *waiting.pod;
    // A node for which kube-scheduler has nominated it is one where it makes room itself.
    const bool waits = waiting.unschedulable && !waiting.gated && waiting.nominated.empty() &&
                       askers.contains(pod.scheduler) && waiting.created &&
                       parts_.clock.Wall() - *waiting.created >= kPatience;
    if (!waits || !MayGetDevices(pod) || served.contains(pod.id.uid)) continue;
    const Short* const known = short_.Find(pod.id.uid);
    if (known == nullptr || now >= known->next) need.push_back(std::move(waiting));
  }
  std::ranges::stable_sort(need, [](const WaitingPod& a, const WaitingPod& b) {
    return a.pod->priority != b.pod->priority ? a.pod->priority > b.pod->priority
                                              : *a.created < *b.created;
  });
  return need;
}

bool DevicePreemption::IsShort(const Extender::Moment& moment, const PodRequest& pod,
                               ClaimRoom* room, Instant now) {
  Short* known = short_.Touch(pod.id.uid);
  if (known == nullptr) known = &short_.Put(pod.id.uid);
  if (parts_.extender.WouldFit(moment, pod, room)) {
    *known = {.since = {}, .next = now + kRetry};
    return false;
  }
  if (!known->since) known->since = now;
  return now - *known->since >= kStaysShort;
}

void DevicePreemption::MakeRoomFor(const Extender::Moment& moment, const PodRequest& pod,
                                   ClaimRoom* claims, Instant now) {
  const auto rooms = parts_.rooms.Current();
  const auto skips = [&rooms](const std::string& node) {
    return rooms != nullptr && rooms->contains(node);
  };
  const DeviceVictims found = parts_.extender.VictimsForDevices(moment, pod, skips, claims);
  Duration pause = kRetry;
  if (found.outcome == DeviceVictims::Outcome::kEvict && MayEvict(found.uids.size(), now)) {
    const Node& node = moment.snapshot->node(found.node);
    DeviceRoom room{.pod = pod.id, .priority = pod.priority, .node = node.spec().name};
    room.victims = room.left = IdsOf(node, found.uids);
    room.since = now;
    room.own_claims = claims != nullptr;
    // First, so that nobody comes in between; at most kMost pods get here.
    if (!parts_.rooms.Put(room)) return;
    if (Evict(room, now) > 0) {
      (void)parts_.rooms.Put(std::move(room));
      return;
    }
    parts_.rooms.Drop(room.node);
    pause = kBlocked;
  }
  if (Short* const known = short_.Find(pod.id.uid)) known->next = now + pause;
}

std::size_t DevicePreemption::Evict(DeviceRoom& room, Instant now) {
  std::vector<PodId> gone, left;
  bool goes_on = true;
  for (const PodId& victim : room.left) {
    const auto outcome = goes_on ? parts_.evictor.Evict(victim) : PodEvictor::Outcome::kFailed;
    if (outcome == PodEvictor::Outcome::kEvicted) {
      ++evicted_;
      evictions_.push_back(now);
      gone.push_back(victim);
      continue;
    }
    if (goes_on) ++(outcome == PodEvictor::Outcome::kBlocked ? blocked_ : failed_);
    goes_on = false;  // those behind it would be evicted in vain
    left.push_back(victim);
  }
  room.left = std::move(left);
  const std::size_t count = gone.size();
  if (count > 0)
    parts_.sink.Record(PodsEvicted{room.pod, room.priority, room.node, std::move(gone)});
  return count;
}

bool DevicePreemption::MayEvict(std::size_t pods, Instant now) {
  std::erase_if(evictions_, [now](Instant when) { return now - when >= std::chrono::minutes(1); });
  return evictions_.size() + pods <= std::size_t{kMostPerMinute};
}

}  // namespace berth
