// SPDX-License-Identifier: Apache-2.0
#include "server/extender/evictions_under_way.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include "server/extender/room_run.h"

namespace berth {

namespace {

bool MayBeOfAPlan(const PodRecord& pod) {
  return pod.leaving && pod.life.evicted && pod.pod.mobility == Mobility::kMoves &&
         !pod.pod.controller.empty() && pod.pod.grace_seconds <= kMostMoveGrace;
}

}  // namespace

void EvictionsUnderWay::Add(const PodRequest& pod, Instant now) {
  if (pods_.size() >= kMost) return;
  const Duration within = RoomRun::kComesWithin + std::chrono::seconds(pod.grace_seconds);
  pods_.try_emplace(pod.id.uid, Evicted{pod.id, pod.controller, now, now + within, now});
}

std::string EvictionsUnderWay::First(std::span<const WaitingPod> waiting, Instant now,
                                     Instant leads_since) {
  std::string first = now - leads_since < kOfBefore ? AddOfBefore(now) : "";
  if (pods_.empty()) return first;
  std::set<std::string> waits;  // controllers
  for (const WaitingPod& pod : waiting) waits.insert(pod.pod->controller);
  for (auto entry = pods_.begin(); entry != pods_.end();) {
    Evicted& one = entry->second;
    const auto held = state_.FindPod(one.pod.uid);
    if (held) one.seen = now;
    const bool goes_on = held ? held->leaving || now - one.added < kAnswer
                              : waits.contains(one.controller) || now - one.seen < kMadeAnew;
    entry = goes_on && now < one.until ? std::next(entry) : pods_.erase(entry);
  }
  return pods_.empty() ? first : pods_.begin()->second.pod.full_name();
}

std::string EvictionsUnderWay::AddOfBefore(Instant now) {
  std::string first;
  const std::shared_ptr<const Snapshot> snapshot = state_.Current();
  for (NodeIndex node = 0; node < snapshot->size(); ++node) {
    for (const auto& pod : snapshot->node(node).pods()) {
      if (!MayBeOfAPlan(*pod)) continue;
      Add(pod->pod, now);
      first = pod->pod.id.full_name();
    }
  }
  return first;
}

bool MoveBudget::Allows(std::span<const Move> moves, const MakeRoomConfig& limits, Instant now) {
  std::erase_if(made_, [now](const Made& one) { return now - one.when >= std::chrono::hours(1); });
  const auto count = [&](std::string Move::*field, const std::string& value) {
    return std::ranges::count_if(moves, [&](const Move& one) { return one.*field == value; }) +
           std::ranges::count_if(made_, [&](const Made& one) { return one.move.*field == value; });
  };
  return std::ssize(made_) + std::ssize(moves) <= limits.moves_per_hour &&
         std::ranges::all_of(moves, [&](const Move& one) {
           return count(&Move::namespace_name, one.namespace_name) <= limits.moves_per_namespace &&
                  count(&Move::node, one.node) <= limits.moves_per_node;
         });
}

void MoveBudget::Count(Move move, Instant now) { made_.push_back({std::move(move), now}); }

}  // namespace berth
