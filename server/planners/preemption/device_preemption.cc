// SPDX-License-Identifier: Apache-2.0
#include "server/planners/preemption/device_preemption.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "base/dns_name.h"
#include "cluster/values/alike.h"
#include "scoring/registry.h"
#include "server/extender/inquiry.h"

namespace berth {
namespace {

constexpr const char* kTooLong =
    "ask for less in its ResourceClaims: to compare them with all nodes takes too long, so Berth "
    "evicts nobody for it";

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
  evicting_ = {};
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
      auto found = Inquiry(parts_.extender, moment).RoomOfClaims(pod);
      if (!found) {
        if (Short* const known = short_.Find(pod.id.uid)) known->since = {};
        continue;
      }
      room = *std::move(found);
    }
    ClaimRoom* const of_claims = room ? &*room : nullptr;
    if (IsShort(moment, pod, of_claims, now)) {
      if (IsOutOfTime()) return;
      MakeRoomFor(moment, pod, of_claims, now);
    }
    Short* const known = short_.Find(pod.id.uid);
    if (of_claims == nullptr || !of_claims->ran_out() || known == nullptr) continue;
    if (!std::exchange(known->told, true)) parts_.sink.Record(PodWaits{pod.id, kTooLong});
    known->next = now + kBlocked;
  }
}

void DevicePreemption::LetGo() {
  const auto rooms = parts_.rooms.Current();
  for (const auto& [node, room] : *rooms) {
    if (!room.moves) Drop(room, parts_.clock.Now(), {});
  }
}

DevicePreemption::Stats DevicePreemption::stats() const {
  const auto rooms = parts_.rooms.Current();
  const auto own = std::ranges::count_if(*rooms, [](const auto& it) { return !it.second.moves; });
  return {evicted_.load(), blocked_.load(), failed_.load(), static_cast<std::size_t>(own)};
}

void DevicePreemption::Tend(Instant now) {
  const auto rooms = parts_.rooms.Current();
  std::vector<DeviceRoom> unfinished;
  for (const auto& [node, room] : *rooms) {
    DeviceRoom next = room;
    if (!room.moves && Tend(next, now)) unfinished.push_back(std::move(next));
  }
  // A room whose evictions take long does not keep the others waiting.
  const auto next = std::ranges::upper_bound(unfinished, evicted_last_, {}, &DeviceRoom::node);
  std::rotate(unfinished.begin(), next, unfinished.end());
  for (DeviceRoom& room : unfinished) {
    if (IsOutOfTime()) return;
    evicted_last_ = room.node;
    (void)Evict(room);
    (void)parts_.rooms.Put(std::move(room));
  }
}

bool DevicePreemption::Tend(DeviceRoom& room, Instant now) {
  const std::optional<WaitingPod> waiting = room.own_claims
                                                ? parts_.waiting.FindClaiming(room.pod.uid)
                                                : parts_.waiting.Find(room.pod.uid);
  const bool is_there = parts_.state.Current()->names().Find(room.node) != kNoNode;
  Duration pause{};
  bool drops = !waiting || waiting->gated() || !is_there || (!room.held && HasPlace(room.pod));
  if (const auto held = parts_.state.FindPod(room.pod.uid)) {
    drops = drops || held->state != PodState::kPlanned;
  }
  const bool is_late = room.held ? now - *room.held >= kComesWithin : now - room.since >= kKeepsFor;
  if (is_late) pause = kBlocked;
  if (drops || is_late) {
    Drop(room, now, pause);
    return false;
  }
  if (room.held || !Hold(room, *waiting->pod)) return !room.held && !room.left.empty();
  room.held = now;
  (void)parts_.waker.Wake(room.pod);  // kube-scheduler may know that the devices are free before
  (void)parts_.rooms.Put(room);
  return false;
}

bool DevicePreemption::HasPlace(const PodId& pod) const {
  return parts_.state.FindPod(pod.uid) ||
         parts_.open.IsMadeFor(FullName(pod.namespace_name, pod.uid));
}

ClaimEnds DevicePreemption::EndingClaims(const Snapshot& snapshot, Instant now) {
  std::set<std::string> used;
  const auto use = [&used](const PodRequest& pod) {
    for (const std::string& claim : pod.claims) {
      used.insert(FullName(pod.id.namespace_name, claim));
    }
  };
  for (const WaitingPod& waiting : parts_.waiting.Claiming()) use(*waiting.pod);
  for (const WaitingPod& waiting : parts_.waiting.Everybody()) use(*waiting.pod);  // gangs
  std::map<std::string, Instant> without_pod;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    if (node.claims() == nullptr) continue;
    for (const auto& held : node.pods()) use(held->pod);
    for (const ClaimedGpu& held : *node.claims()) {
      const bool has_pod = held.pod.empty() ? used.contains(held.claim)
                                            : parts_.state.FindPod(held.pod).has_value() ||
                                                  parts_.waiting.Find(held.pod).has_value();
      if (has_pod || without_pod.size() >= kMostRemembered) continue;
      const auto known = without_pod_.find(held.claim);
      without_pod.emplace(held.claim, known == without_pod_.end() ? now : known->second);
    }
  }
  without_pod_ = std::move(without_pod);
  return [this, now](const ClaimedGpu& held) {
    const auto known = without_pod_.find(held.claim);
    return known != without_pod_.end() && now - known->second < kClaimEnds;
  };
}

bool DevicePreemption::HasRoom(const DeviceRoom& room, const PodRequest& pod) const {
  auto claims = Inquiry(parts_.extender, parts_.extender.Now()).RoomOfClaims(pod);
  if (!claims) return true;  // they have devices by now, or are others' to allocate
  const Extender::Moment now = parts_.extender.Now();
  const Node* const node = now.snapshot->FindNode(room.node);
  return node != nullptr && Fits(*node, claims->shape(claims->InParts(*node))) &&
         claims->Has(*node);
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
  const std::set<std::string> askers = parts_.extender.pending().Schedulers();
  const auto rooms = parts_.rooms.Current();
  std::set<std::string> served;
  for (const auto& [node, room] : *rooms) served.insert(room.pod.uid);
  std::vector<WaitingPod> need;
  if (served.size() >= DeviceRooms::kMost) return need;
  std::vector<WaitingPod> everybody = parts_.waiting.Everybody();
  std::ranges::move(parts_.waiting.Claiming(), std::back_inserter(everybody));
  for (WaitingPod& waiting : everybody) {
    const PodRequest& pod = *waiting.pod;
    if (!waiting.IsInNeed(askers, parts_.clock.Wall(), kPatience)) continue;
    if (!MayGetDevices(pod) || served.contains(pod.id.uid)) continue;
    Short* const known = short_.Find(pod.id.uid);
    if (HasPlace(pod.id)) {
      if (known != nullptr) known->since = {};
      continue;
    }
    if (known == nullptr || now >= known->next) need.push_back(std::move(waiting));
  }
  std::ranges::stable_sort(need, ComesBefore, &WaitingPod::place);
  return need;
}

bool DevicePreemption::IsShort(const Extender::Moment& moment, const PodRequest& pod,
                               ClaimRoom* room, Instant now) {
  Short* known = short_.Touch(pod.id.uid);
  if (known == nullptr) known = &short_.Put(pod.id.uid);
  if (Inquiry(parts_.extender, moment).WouldFit(pod, room)) {
    known->since = {};
    known->next = now + kRetry;
    return false;
  }
  if (!known->since) known->since = now;
  return now - *known->since >= kStaysShort;
}

void DevicePreemption::MakeRoomFor(const Extender::Moment& moment, const PodRequest& pod,
                                   ClaimRoom* claims, Instant now) {
  const auto rooms = parts_.rooms.Current();
  const auto skips = [&rooms](const std::string& node) { return rooms->contains(node); };
  const DeviceVictims found =
      Inquiry(parts_.extender, moment)
          .VictimsForDevices(pod, skips, claims, EndingClaims(*moment.snapshot, now));
  Duration pause = kRetry;
  const bool helps = found.outcome == DeviceVictims::Outcome::kEvict;
  // Since the look began its bind may have come.
  if (helps && MayEvict(found.uids.size()) && !HasPlace(pod.id)) {
    const Node& node = moment.snapshot->node(found.node);
    DeviceRoom room{.pod = pod.id, .priority = pod.priority, .node = node.spec().name};
    room.victims = room.left = IdsOf(node, found.uids);
    room.since = now;
    room.own_claims = claims != nullptr;
    // First, so that nobody comes in between; at most kMost pods get here.
    if (!parts_.rooms.Put(room)) return;
    if (Evict(room)) {
      (void)parts_.rooms.Put(std::move(room));
      return;
    }
    parts_.rooms.Drop(room.node);
    pause = kBlocked;
  }
  Short* const known = short_.Find(pod.id.uid);
  if (known == nullptr) return;
  known->next = now + pause;
  // Who ends may take longer than the two looks: then it has to be short in two looks again.
  if (found.outcome == DeviceVictims::Outcome::kWait) known->since = {};
}

bool DevicePreemption::Evict(DeviceRoom& room) {
  std::vector<PodId> gone, left;
  bool goes_on = true, may_have_gone = false;
  for (const PodId& victim : room.left) {
    const auto held = parts_.state.FindPod(victim.uid);
    if (!held || held->leaving) {  // by itself, or by a try without answer
      may_have_gone = true;
      continue;
    }
    goes_on = goes_on && MayEvict(1) && !IsOutOfTime();
    if (!goes_on) {
      left.push_back(victim);
      continue;
    }
    const Instant asked = parts_.clock.Now();
    const PodEvictor::Outcome outcome = parts_.evictor.Evict(victim);
    const Instant answered = parts_.clock.Now();
    evicting_ += answered - asked;
    using enum PodEvictor::Outcome;
    if (outcome == kEvicted || outcome == kUnknown) evictions_.push_back(answered);
    if (outcome == kEvicted) {
      ++evicted_;
      gone.push_back(victim);
      continue;
    }
    ++(outcome == kBlocked ? blocked_ : failed_);
    may_have_gone = may_have_gone || outcome == kUnknown;
    goes_on = false;  // those behind it would be evicted in vain
    left.push_back(victim);
  }
  room.left = std::move(left);
  if (gone.empty()) return may_have_gone;
  parts_.sink.Record(PodsEvicted{room.pod, room.priority, room.node, std::move(gone)});
  return true;
}

bool DevicePreemption::MayEvict(std::size_t pods) {
  const Instant now = parts_.clock.Now();
  std::erase_if(evictions_, [now](Instant when) { return now - when >= std::chrono::minutes(1); });
  return evictions_.size() + pods <= std::size_t{kMostPerMinute};
}

}  // namespace berth
