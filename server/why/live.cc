// SPDX-License-Identifier: Apache-2.0
#include "server/why/live.h"

#include "scoring/room/room_units.h"
#include "server/extender/inquiry.h"
#include "server/kube/kube_cluster.h"

namespace berth {

void RecentBinds::Record(const Decision& decision) {
  if (decision.verb == Verb::kFilter) {
    const MutexLock lock(mutex_);
    asked_.Put(decision.pod->uid, {decision.candidates, decision.fitting});
    return;
  }
  if (decision.verb != Verb::kBind || decision.placement == nullptr) return;
  const Placement& placement = *decision.placement;
  const auto now = clock_.Wall().time_since_epoch();
  wire::BoundRow row{.pod = decision.pod->full_name(),
                     .node = placement.node,
                     .devices = wire::DevicesText(placement),
                     .at = std::chrono::duration_cast<std::chrono::seconds>(now).count()};
  const MutexLock lock(mutex_);
  if (const Asked* const asked = asked_.Find(decision.pod->uid)) {
    row.candidates = asked->candidates;
    row.fitting = asked->fitting;
    asked_.Erase(decision.pod->uid);
  }
  rows_.push_front(std::move(row));
  if (rows_.size() > kCapacity) rows_.pop_back();
}

std::vector<wire::BoundRow> RecentBinds::All() const {
  const MutexLock lock(mutex_);
  return {rows_.begin(), rows_.end()};
}

bool Readiness::is_standby() const { return reason_.load() == kube::kStandby; }

http::HttpResponse NotReadyAnswer(std::string_view why, const LeaderName& leader) {
  std::string text = "not ready: " + std::string(why);
  if (const std::string name = leader ? leader() : ""; !name.empty()) {
    text += " (leader: " + name + ")";
  }
  return http::ErrorResponse(503, text);
}

std::optional<RoomAdvice> AdviseRoom(const Live& live, const Extender::Moment& now,
                                     const WaitingPod& waiting) {
  if (waiting.gated() || !waiting.pod->refusal.empty() || !waiting.pod->shape.wants_gpu()) {
    return std::nullopt;
  }
  const std::vector<PodRequest> pods =
      RoomUnitOf(live.extender, live.waiting, live.pod_rules.groups(), now, waiting);
  if (pods.empty()) return std::nullopt;
  const RoomUnits units =
      Inquiry(live.extender, now)
          .WouldMakeRoom(pods, {}, {}, {.in_all = kRoomAdviceTime, .for_one = kRoomAdviceTime});
  const RoomUnit* const unit = FindUnit(units, *waiting.pod);
  if (unit == nullptr) return std::nullopt;
  return RoomAdvice{.name = unit->name,
                    .is_gang = unit->is_gang,
                    .moves = std::ssize(unit->plan.moves),
                    .least_moves = unit->plan.least_moves.price};
}

std::string TextOf(const RoomAdvice& advice) {
  return RoomSentence(advice.name, advice.is_gang, advice.moves);
}

std::optional<GangView> FindGang(const Live& live, const Snapshot& snapshot,
                                 std::span<const WaitingPod> listed, std::string_view full) {
  const Instant now = std::chrono::steady_clock::now();
  const auto is_it = [full](const GangId& id) {
    return !id.empty() && (id.full_name() == full || id.text() == full);
  };
  for (GangView& view : live.gangs.Views(now)) {
    if (is_it(view.id)) return std::move(view);
  }
  const auto is_of_it = [is_it](const PodRequest& pod) { return is_it(pod.gang.id); };
  std::shared_ptr<const PodRequest> one;
  for (const WaitingPod& waiting : listed) {
    if (is_of_it(*waiting.pod)) one = waiting.pod;
  }
  snapshot.ForEachPod([&](const auto& held, NodeIndex) {
    if (is_of_it(held->pod)) one = std::make_shared<const PodRequest>(held->pod);
  });
  return one == nullptr ? std::nullopt : live.gangs.ViewOfOthers(*one, now);
}

void AddRollout(const WaitingPod& waiting, const Snapshot& snapshot, GangView& gang) {
  if (gang.missing() <= 0 || gang.placed > 0 || waiting.replica_set.empty()) return;
  const PodLife own{.replica_set = waiting.replica_set};
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    for (const auto& held : snapshot.node(i).pods()) {
      if (!IsOfOtherReplicaSet(*held, waiting.pod->id.namespace_name, own)) continue;
      gang.why += "; set maxSurge of Deployment " + std::string(own.deployment()) +
                  " to 100%: its rolling update waits for these pods";
      return;
    }
  }
}

std::shared_ptr<const PodRecord> FindOnNodes(const Snapshot& snapshot, std::string_view space,
                                             std::string_view name) {
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    for (const auto& pod : snapshot.node(i).pods()) {
      if (pod->pod.id.name == name && pod->pod.id.namespace_name == space) return pod;
    }
  }
  return nullptr;
}

}  // namespace berth
