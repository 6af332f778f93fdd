// SPDX-License-Identifier: Apache-2.0
#include "server/why/waiting_news.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "server/why/explain_pages.h"

namespace berth {
namespace {

const std::string kFits = "fits";

// Of a pod that is somewhere: empty.
std::string CauseOf(const wire::PodReport& report) {
  const PodExplanation& told = report.told;
  if (told.placed) return "";
  if (report.gang && wire::Waits(*report.gang)) return "group " + std::string(report.gang->state);
  if (told.nodes == 0) return "no nodes";
  if (told.fitting + told.by_claim > 0) return kFits;
  const bool kept_away = told.scheduler.any == static_cast<std::int64_t>(told.nodes);
  return (kept_away ? "kept away, " : "") + std::string(TextOf(told.counts.front().reason));
}

}  // namespace

void WaitingNews::Look() {
  const Instant now = clock_.Now();
  if (queue_.empty() && now >= refill_) Refill(now);
  for (int i = 0; i < kPerLook && !queue_.empty(); ++i) {
    const WaitingPod pod = std::move(queue_.front());
    queue_.pop_front();
    LookAt(pod, now);
  }
}

void WaitingNews::Refill(Instant now) {
  refill_ = now + kRefill;
  std::map<std::string, Told> kept;
  std::vector<WaitingPod> due;
  const std::set<std::string> askers = live_.extender.Askers();
  for (WaitingPod& pod : live_.waiting.Everybody()) {
    const std::string& uid = pod.pod->id.uid;
    const auto known = told_.find(uid);
    const bool is_due = known == told_.end() || now >= known->second.next;
    if (known != told_.end()) kept.insert(told_.extract(known));
    const bool waits = askers.contains(pod.pod->scheduler) && pod.unschedulable && !pod.gated &&
                       pod.created && clock_.Wall() - *pod.created >= kPatience;
    if (waits && is_due) due.push_back(std::move(pod));
  }
  told_ = std::move(kept);
  // Who has not been told anything first, and of these who waits longest.
  std::ranges::stable_sort(due, {}, [this](const WaitingPod& pod) {
    return std::pair(told_.contains(pod.pod->id.uid), *pod.created);
  });
  due.resize(std::min(due.size(), kMostQueued));
  queue_.assign(std::make_move_iterator(due.begin()), std::make_move_iterator(due.end()));
}

void WaitingNews::LookAt(const WaitingPod& pod, Instant now) {
  if (!live_.waiting.Find(pod.pod->id.uid)) return;
  const wire::PodReport report = ReportOn(live_, pod);
  const std::string cause = CauseOf(report);
  Told& told = told_[pod.pod->id.uid];
  const std::string before = std::exchange(told.last, cause);
  told.next = now + kRecheck;
  // A pod that fits is about to be placed, unless it still waits at the next look.
  if (cause.empty() || (cause == kFits && before != cause)) return;
  const auto [said, is_new] = told.causes.emplace(cause, now);
  if (!is_new && now - said->second < kAgain) return;
  said->second = now;
  sink_.Record(PodWaits{pod.pod->id, report.sentence});
}

}  // namespace berth
