// SPDX-License-Identifier: Apache-2.0
#include "server/why/waiting_news.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "cluster/values/alike.h"
#include "server/why/explain_pages.h"

namespace berth {
namespace {

const std::string kFits = "fits";
const std::string kReserved = "reserved on ";
const std::string kGivenUp = "its reservation is given up";

// Of a pod that is somewhere: empty.
std::string CauseOf(const wire::PodReport& report) {
  const PodExplanation& told = report.told;
  if (told.placed) return "";
  if (report.gang && wire::Waits(*report.gang)) return "group " + std::string(report.gang->state);
  if (told.nodes == 0) return "no nodes";
  if (AwaitsReserved(told)) return kReserved + told.reservation->node;
  if (IsPassedOver(told) && told.by_claim == 0) return "passed over";
  if (told.fitting + told.by_claim > 0) return kFits;
  if (!told.lacking.empty()) return "lacks " + told.lacking.begin()->first;
  const bool kept_away = told.scheduler.any == static_cast<std::int64_t>(told.nodes);
  return (kept_away ? "kept away, " : "") + std::string(TextOf(told.counts.front().reason));
}

// Whether what is said of the one holds for the other.
bool AreAlike(const WaitingPod& a, const WaitingPod& b) {
  return a.scheduler_said.empty() == b.scheduler_said.empty() && a.nominated == b.nominated &&
         a.replica_set == b.replica_set &&
         SameIn<Role::kKind, Role::kTurn, Role::kGroup>(*a.pod, *b.pod);
}

}  // namespace

void WaitingNews::Look() {
  const Instant now = clock_.Now();
  has_explained_ = false;
  if (queue_.empty() && now >= refill_) Refill(now);
  for (int told = 0; told < kPerLook && !queue_.empty();) {
    Alike& next = queue_.front();
    if (next.pods.empty()) {
      queue_.pop_front();
      continue;
    }
    const WaitingPod pod = next.pods.back();
    if (!live_.waiting.Find(pod.pod->id.uid)) {
      next.pods.pop_back();
      continue;
    }
    if (!Explain(next, now)) return;
    next.pods.pop_back();
    Tell(next, pod, now);
    ++told;
  }
}

void WaitingNews::Refill(Instant now) {
  refill_ = now + kRefill;
  const OwnRooms rooms = OwnRoomsIn(live_.extender.Now().reservations.earmarks());
  std::map<std::string, Told> kept;
  std::vector<WaitingPod> due;
  const std::set<std::string> askers = live_.extender.pending().Schedulers();
  for (WaitingPod& pod : live_.waiting.Everybody()) {
    const std::string& uid = pod.pod->id.uid;
    const auto known = told_.find(uid);
    const bool is_due = known == told_.end() || IsDue(known->second, rooms, uid, now);
    if (known != told_.end()) kept.insert(told_.extract(known));
    const bool waits = askers.contains(pod.pod->scheduler) && pod.unschedulable && !pod.gated &&
                       pod.created && clock_.Wall() - *pod.created >= kPatience;
    // Who has room made for it has an Event of that.
    const bool has_room = live_.rooms != nullptr && live_.rooms->Of(uid);
    if (waits && is_due && !has_room) due.push_back(std::move(pod));
  }
  told_ = std::move(kept);
  // Who has not been told anything first, and of these who waits longest.
  std::ranges::stable_sort(due, {}, [this](const WaitingPod& pod) {
    return std::pair(told_.contains(pod.pod->id.uid), *pod.created);
  });
  due.resize(std::min(due.size(), kMostQueued));
  Enqueue(std::move(due), rooms);
}

bool WaitingNews::IsDue(const Told& told, const OwnRooms& rooms, const std::string& uid,
                        Instant now) {
  const auto room = rooms.find(uid);
  const bool is_reserved = room != rooms.end() && room->second.reserved;
  const bool turned = is_reserved != told.last.starts_with(kReserved);
  return now >= told.next - (turned ? kRecheck - kRecheckTurn : Duration(0));
}

void WaitingNews::Enqueue(std::vector<WaitingPod> due, const OwnRooms& rooms) {
  for (WaitingPod& pod : due) {
    const bool has_room = rooms.contains(pod.pod->id.uid);
    const auto alike = std::ranges::find_if(queue_, [&](const Alike& group) {
      return !has_room && !group.has_room && AreAlike(group.pods.front(), pod);
    });
    if (alike == queue_.end()) {
      queue_.push_back({.pods = {std::move(pod)}, .has_room = has_room});
    } else {
      alike->pods.push_back(std::move(pod));
    }
  }
  for (Alike& group : queue_) std::ranges::reverse(group.pods);
}

bool WaitingNews::Explain(Alike& alike, Instant began) {
  if (alike.explained) return true;
  if (has_explained_ && clock_.Now() - began >= kBudget) return false;
  const wire::PodReport report = ReportOn(live_, live_.extender.Now(), alike.pods.back());
  alike.cause = CauseOf(report);
  alike.sentence = report.sentence;
  alike.explained = has_explained_ = true;
  return true;
}

void WaitingNews::Tell(const Alike& alike, const WaitingPod& pod, Instant now) {
  Told& told = told_[pod.pod->id.uid];
  const std::string before = std::exchange(told.last, alike.cause);
  told.next = now + kRecheck;
  std::erase_if(told.causes, [now](const auto& cause) { return now - cause.second >= kAgain; });
  // A pod that fits is about to be placed, unless it still waits at the next look.
  if (alike.cause.empty() || (alike.cause == kFits && before != kFits)) return;
  const bool lost = before.starts_with(kReserved) && !alike.cause.starts_with(kReserved);
  bool is_new = told.causes.emplace(alike.cause, now).second;
  if (lost) is_new = told.causes.emplace(kGivenUp, now).second;
  if (!is_new) return;
  sink_.Record(PodWaits{pod.pod->id, lost ? kGivenUp + "; " + alike.sentence : alike.sentence});
}

}  // namespace berth
