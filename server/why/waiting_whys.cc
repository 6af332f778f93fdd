// SPDX-License-Identifier: Apache-2.0
#include "server/why/waiting_whys.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "cluster/values/alike.h"
#include "cluster/values/pod_request.h"
#include "server/why/explain_pages.h"

namespace berth {
namespace {

// Whether what is said of the one holds for the other.
bool AreAlike(const WaitingPod& a, const WaitingPod& b) {
  const auto words = [](std::string said) {  // its numbers change with every attempt
    std::erase_if(said, [](char c) { return c >= '0' && c <= '9'; });
    return said;
  };
  return a.held_back == b.held_back && a.nominated == b.nominated &&
         a.replica_set == b.replica_set &&
         SameIn<Role::kKind, Role::kTurn, Role::kGroup>(*a.pod, *b.pod) &&
         words(a.scheduler_said) == words(b.scheduler_said);
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

// What a pod asks for, so that the classes come in the order of WaitingClasses.
using Key = std::pair<int, std::string>;

constexpr int kShare = 100, kMig = 101, kRefused = 102;  // more than a node has GPUs

Key KeyOf(const PodRequest& pod) {
  if (!pod.refusal.empty()) return {kRefused, "must be changed"};
  const RequestShape& shape = pod.shape;
  if (shape.is_share()) return {kShare, "share"};
  if (shape.mig() != nullptr) return {kMig, "MIG"};
  return {shape.gpu_count(), AskText(shape)};
}

constexpr std::array<std::pair<std::string_view, Duration>, 3> kAges = {
    {{"under 1m", std::chrono::minutes(1)},
     {"under 10m", std::chrono::minutes(10)},
     {"under 1h", std::chrono::hours(1)}}};
constexpr std::string_view kOlder = "1h or more";

struct Waiting {
  std::array<std::int64_t, kAges.size() + 1> by_age{};
  std::optional<Duration> oldest;  // of the pods of known age

  void Add(std::optional<Duration> age) {
    std::size_t bucket = 0;
    while (age && bucket < kAges.size() && *age >= kAges[bucket].second) ++bucket;
    ++by_age[bucket];
    if (age && (!oldest || *age > *oldest)) oldest = age;
  }
};

std::map<Key, Waiting> Classify(std::span<const WaitingPod> pods, WallTime now) {
  std::map<Key, Waiting> classes;
  for (const WaitingPod& pod : pods) {
    const bool concerns_us = pod.pod->shape.wants_gpu() || !pod.pod->refusal.empty();
    if (pod.gated() || !concerns_us) continue;
    std::optional<Duration> age;
    if (pod.created) age = AgeAt(now, *pod.created);
    classes[KeyOf(*pod.pod)].Add(age);
  }
  return classes;
}

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

}  // namespace

void WaitingWhys::Forget(std::span<const WaitingPod> pods) {
  std::erase_if(kinds_, [pods](const Kind& kind) {
    return std::ranges::none_of(
        pods, [&kind](const WaitingPod& pod) { return AreAlike(kind.like, pod); });
  });
}

std::size_t WaitingWhys::KindOf(const WaitingPod& pod) {
  const auto found =
      std::ranges::find_if(kinds_, [&pod](const Kind& kind) { return AreAlike(kind.like, pod); });
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

wire::WaitingWhy WhyWaiting(const Live& live, const Extender::Moment& now,
                            const WaitingPod& waiting) {
  const PodRequest& pod = *waiting.pod;
  if (!pod.refusal.empty()) return {pod.refusal, {}};
  if (waiting.gated()) return {waiting.held_back, {}};
  if (const auto gang = live.gangs.View(pod.gang.id, std::chrono::steady_clock::now());
      gang && !gang->why.empty()) {
    return {"its gang is " + std::string(gang->state) + ": " + gang->why, {}};
  }
  const wire::PodReport report = ReportOn(live, now, waiting);
  const PodExplanation& told = report.told;
  const bool is_clear = AwaitsReserved(told) || IsPassedOver(told) || !told.lacking.empty();
  if (is_clear || told.fitting + told.by_claim > 0) return {report.sentence, {}};
  const std::string nodes = CountText(static_cast<std::int64_t>(told.nodes), "node");
  constexpr std::size_t kTold = 2;
  wire::WaitingWhy why{"fits none of " + nodes, {}};
  std::vector<std::string> counts = CountTexts(told);
  if (!told.never.empty()) counts = {told.never};
  if (counts.size() > kTold) counts.resize(kTold);
  if (!counts.empty()) why.text += ": " + Join(counts, ", ");
  if (told.nearest.empty() || told.nearest[0].near.ways.empty()) return why;
  const NearNodeFacts& nearest = told.nearest[0];
  why.fits = "on " + nearest.facts.name;
  for (std::size_t i = 0; i < std::min(kTold, nearest.near.ways.size()); ++i) {
    why.fits += (i == 0 ? " " : ", or ") + nearest.near.ways[i].text;
  }
  return why;
}

std::vector<wire::WaitingClass> WaitingClasses(std::span<const WaitingPod> pods, WallTime now) {
  std::vector<wire::WaitingClass> told;
  for (const auto& [key, waiting] : Classify(pods, now)) {
    wire::WaitingClass& kind = told.emplace_back();
    kind.asks = key.second;
    for (const std::int64_t count : waiting.by_age) kind.pods += count;
    kind.oldest = waiting.oldest;
  }
  return told;
}

void AddWaitingMetrics(std::span<const WaitingPod> pods, WallTime now, MetricsText& text) {
  std::map<Key, Waiting> classes = Classify(pods, now);
  for (const int gpus : {1, 2, 4, 8}) classes[{gpus, AskText(WholeGpus{gpus})}];
  classes[{kShare, "share"}];
  text.Gauge("berth_waiting_gpu_pods", "Waiting GPU pods by request and age, without gated ones");
  for (const auto& [key, waiting] : classes) {
    for (std::size_t i = 0; i <= kAges.size(); ++i) {
      const std::string_view age = i < kAges.size() ? kAges[i].first : kOlder;
      text.Sample(waiting.by_age[i], {{"asks", key.second}, {"age", age}});
    }
  }
  text.Gauge("berth_waiting_gpu_pod_oldest_seconds",
             "Age of the oldest waiting GPU pod, by request; 0 if none waits");
  for (const auto& [key, waiting] : classes) {
    const Duration oldest = waiting.oldest.value_or(Duration::zero());
    text.Sample(std::chrono::duration<double>(oldest).count(), {{"asks", key.second}});
  }
}

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
    const bool waits = askers.contains(pod.pod->scheduler) && pod.unschedulable && !pod.gated() &&
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
