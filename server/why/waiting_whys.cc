// SPDX-License-Identifier: Apache-2.0
#include "server/why/waiting_whys.h"

#include <algorithm>
#include <utility>

#include "cluster/values/alike.h"
#include "scoring/explain/kept_room.h"

namespace berth {
namespace {

// Whether what is said of the one holds for the other.
bool Alike(const WaitingPod& a, const WaitingPod& b) {
  return a.gated == b.gated && SameIn<Role::kKind, Role::kTurn, Role::kGroup>(*a.pod, *b.pod);
}

bool SameMoment(const Extender::Moment& a, const Extender::Moment& b) {
  return a.policy == b.policy && a.reservations.IsSame(b.reservations) &&
         a.snapshot->IsSame(*b.snapshot);
}

// Of one for which room is kept.
std::string TextOf(const OwnRoom& room, const Earmarks& earmarks, const PodRequest& pod) {
  const auto reservation = room.reserved ? ReservationOf(earmarks, pod) : std::nullopt;
  if (!reservation) return "the room on " + room.node + " is kept for it";
  const std::string proviso = ProvisoOf(*reservation), cost = CostOf(*reservation);
  return berth::TextOf(*reservation) + (proviso.empty() ? "" : ", " + proviso) +
         (cost.empty() ? "" : "; " + cost);
}

constexpr std::size_t kNoKind = WaitingWhys::kMostKinds;

}  // namespace

void WaitingWhys::Forget(std::span<const WaitingPod> pods) {
  std::erase_if(kinds_, [pods](const Kind& kind) {
    return std::ranges::none_of(pods,
                                [&kind](const WaitingPod& pod) { return Alike(kind.like, pod); });
  });
}

std::size_t WaitingWhys::KindOf(const WaitingPod& pod) {
  const auto found =
      std::ranges::find_if(kinds_, [&pod](const Kind& kind) { return Alike(kind.like, pod); });
  if (found != kinds_.end()) {
    found->like = pod;
    return static_cast<std::size_t>(found - kinds_.begin());
  }
  if (kinds_.size() >= kMostKinds) return kNoKind;
  kinds_.push_back({.like = pod});
  return kinds_.size() - 1;
}

bool WaitingWhys::Work(const Extender::Moment& now) {
  const Instant began = now_();
  const auto is_due = [&](const Kind& kind, bool unexplained) {
    if (kind.moment.snapshot == nullptr) return unexplained;
    return !unexplained && !SameMoment(kind.moment, now) && began - kind.found >= kFresh;
  };
  bool has_worked = false;
  for (const bool unexplained : {true, false}) {
    for (Kind& kind : kinds_) {
      if (!is_due(kind, unexplained)) continue;
      if (has_worked && now_() - began >= kBudget) return true;
      kind.why = explain_(now, kind.like);
      kind.moment = now;
      kind.found = now_();
      has_worked = true;
    }
  }
  return false;
}

WaitingWhys::Told WaitingWhys::Of(std::span<const WaitingPod> pods, const Extender::Moment& now) {
  const Earmarks& earmarks = now.reservations.earmarks();
  const OwnRooms rooms = OwnRoomsIn(earmarks);
  const MutexLock lock(mutex_);
  Forget(pods);
  Told told;
  std::vector<std::size_t> kinds;
  for (const WaitingPod& pod : pods) {
    const auto room = rooms.find(pod.pod->id.uid);
    kinds.push_back(room == rooms.end() ? KindOf(pod) : kNoKind);
    told.whys.emplace_back();
    if (room != rooms.end()) told.whys.back().text = TextOf(room->second, earmarks, *pod.pod);
  }
  told.more = Work(now);
  for (std::size_t i = 0; i < pods.size(); ++i) {
    if (kinds[i] != kNoKind) told.whys[i] = kinds_[kinds[i]].why;
  }
  return told;
}

}  // namespace berth
