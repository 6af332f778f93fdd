// SPDX-License-Identifier: Apache-2.0
#include "scoring/earmarks/pod_ends.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

#include "base/random.h"

namespace berth {
namespace {

Digest DigestOf(std::string_view uid) {
  Digester digester;
  digester.Add(uid);
  return digester.digest();
}

int WholeGpusOf(const RequestShape& shape) {
  const auto* const whole = std::get_if<WholeGpus>(&shape.gpus);
  return whole == nullptr ? 0 : whole->count;
}

// Requires: sorted, not empty.
Duration Quantile(std::span<const Duration> sorted, double part) {
  const auto place = std::ceil(part * static_cast<double>(sorted.size())) - 1;
  return sorted[static_cast<std::size_t>(std::max(place, 0.0))];
}

std::span<const Duration> LongerThan(std::span<const Duration> sorted, Duration age) {
  const auto first = std::ranges::upper_bound(sorted, age) - sorted.begin();
  return sorted.subspan(static_cast<std::size_t>(first));
}

std::optional<Duration> Predict(std::span<const Duration> sorted, Duration age) {
  const std::span<const Duration> longer = LongerThan(sorted, age);
  if (longer.size() < RunTimes::kEnoughLonger) return std::nullopt;
  const std::span<const Duration> half = sorted.last(sorted.size() - sorted.size() / 2);
  const auto shortest = std::chrono::duration<double>(Quantile(half, 1 - RunTimes::kQuantile));
  const auto longest = std::chrono::duration<double>(Quantile(half, RunTimes::kQuantile));
  if (longest > shortest * RunTimes::kMostRatio) return std::nullopt;
  return Quantile(longer, RunTimes::kQuantile);
}

using std::chrono::seconds;

// The pods that run and have given their word, by namespace, and how many are past it.
struct Words {
  std::size_t running = 0, overdue = 0;
};

}  // namespace

std::optional<WallTime> JobEnds::Of(const PodRequest& pod, WallTime started) const {
  if (pod.controller.empty()) return std::nullopt;
  const auto runs = of_namespace_.find(pod.id.namespace_name);
  if (runs == of_namespace_.end()) return std::nullopt;
  const auto run = runs->second.find(DigestOf(pod.controller));
  if (run == runs->second.end()) return std::nullopt;
  const auto& [uid, job] = *run;
  return job.started.value_or(started) + std::chrono::seconds(job.seconds + pod.grace_seconds);
}

void JobEndTable::Put(const JobDeadline& job) {
  const Digest uid = DigestOf(job.uid);
  const WriteLock lock(mutex_);
  JobEnds::Run* run = Find(job.namespace_name, uid);
  const bool is_anew = run != nullptr && run->started && run->started != job.started;
  if (run != nullptr && (job.over || is_anew)) {
    Erase(job.namespace_name, uid);
    run = nullptr;
  }
  if (job.over) return;
  if (run == nullptr) {
    if (job.seconds == 0 || !MakePlaceIn(job.namespace_name)) return;
    run = &now_.of_namespace_[job.namespace_name][uid];
    run->seconds = job.seconds;
    ++jobs_;
    ++changes_;
  }
  run->list = list_;
  const std::int64_t seconds =
      job.seconds == 0 ? run->seconds : std::min(run->seconds, job.seconds);
  if (run->started == job.started && run->seconds == seconds) return;
  run->started = job.started;
  run->seconds = seconds;
  ++changes_;
}

JobEnds::Run* JobEndTable::Find(const std::string& namespace_name, const Digest& uid) {
  const auto runs = now_.of_namespace_.find(namespace_name);
  if (runs == now_.of_namespace_.end()) return nullptr;
  const auto run = runs->second.find(uid);
  return run == runs->second.end() ? nullptr : &run->second;
}

void JobEndTable::Remove(const JobDeadline& job) {
  const WriteLock lock(mutex_);
  Erase(job.namespace_name, DigestOf(job.uid));
}

void JobEndTable::Erase(const std::string& namespace_name, const Digest& uid) {
  const auto runs = now_.of_namespace_.find(namespace_name);
  if (runs == now_.of_namespace_.end() || runs->second.erase(uid) == 0) return;
  if (runs->second.empty()) now_.of_namespace_.erase(runs);
  --jobs_;
  ++changes_;
}

bool JobEndTable::MakePlaceIn(const std::string& namespace_name) {
  const auto own = now_.of_namespace_.find(namespace_name);
  const std::size_t its = own == now_.of_namespace_.end() ? 0 : own->second.size();
  if (its >= kMostOfNamespace) return false;
  if (jobs_ < kMost) return true;
  const auto most = std::ranges::max_element(now_.of_namespace_, {},
                                             [](const auto& of) { return of.second.size(); });
  if (most->second.size() <= its) return false;
  Erase(std::string(most->first), Digest(most->second.begin()->first));
  return true;
}

void JobEndTable::ListBegins() {
  const WriteLock lock(mutex_);
  ++list_;
}

void JobEndTable::ListEnds() {
  const WriteLock lock(mutex_);
  const std::uint64_t list = list_;
  for (auto of = now_.of_namespace_.begin(); of != now_.of_namespace_.end();) {
    jobs_ -= std::erase_if(of->second, [list](const auto& run) { return run.second.list != list; });
    of = of->second.empty() ? now_.of_namespace_.erase(of) : std::next(of);
  }
  ++changes_;
}

std::optional<WallTime> JobEndTable::Of(const PodRequest& pod, WallTime started) const {
  const ReadLock lock(mutex_);
  return now_.Of(pod, started);
}

std::shared_ptr<const JobEnds> JobEndTable::Newest() const {
  const MutexLock publishing(newest_mutex_);
  const ReadLock lock(mutex_);
  if (newest_of_ != changes_) newest_ = std::make_shared<const JobEnds>(now_);
  newest_of_ = changes_;
  return newest_;
}

std::size_t JobEndTable::jobs() const {
  const ReadLock lock(mutex_);
  return jobs_;
}

std::size_t RunTimes::Hash::operator()(const KindView& kind) const noexcept {
  const std::uint64_t name = std::hash<std::string_view>()(kind.namespace_name);
  return Mix64(name ^ Mix64(kind.series + static_cast<std::uint64_t>(kind.gpus)));
}

std::optional<Duration> RunTimes::Of(const PodRequest& pod, Duration age) const {
  if (pod.series == 0 || kinds_.empty()) return std::nullopt;
  const int gpus = WholeGpusOf(pod.shape);
  for (const std::uint64_t series : {pod.series, std::uint64_t{0}}) {
    const auto known = kinds_.find(KindView{pod.id.namespace_name, series, gpus});
    if (known == kinds_.end() || known->second->size() < kEnough) continue;
    return Predict(*known->second, age);
  }
  return std::nullopt;
}

void RunTimeTable::Add(const PodRequest& pod, Duration ran, WallTime ended) {
  if (pod.series == 0 || ran <= Duration::zero()) return;
  Digester uid;
  uid.Add(pod.id.uid);
  const Run run{ended, uid.digest().high, ran};
  const int gpus = WholeGpusOf(pod.shape);
  const MutexLock lock(mutex_);
  AddTo({pod.id.namespace_name, pod.series, gpus}, run);
  AddTo({pod.id.namespace_name, 0, gpus}, run);
}

void RunTimeTable::AddTo(RunTimes::Kind kind, const Run& run) {
  auto found = kinds_.find(kind);
  if (found == kinds_.end()) {
    MakePlaceIn(kind.namespace_name);
    ++of_namespace_[kind.namespace_name];
    found = kinds_.try_emplace(std::move(kind)).first;
  }
  std::vector<Run>& runs = found->second.runs;
  if (std::ranges::find(runs, run.pod, &Run::pod) != runs.end()) return;
  runs.insert(std::ranges::upper_bound(runs, run), run);
  if (runs.size() > RunTimes::kPerKind) runs.erase(runs.begin());
  auto sorted = std::make_shared<RunTimes::Sorted>();
  for (const Run& one : runs) sorted->push_back(one.ran);
  std::ranges::sort(*sorted);
  found->second.sorted = std::move(sorted);
  found->second.changed = ++changes_;
}

// Of a namespace that has its part, what it has not used for longest; else of the one with most.
void RunTimeTable::MakePlaceIn(const std::string& namespace_name) {
  const auto own = of_namespace_.find(namespace_name);
  if (own != of_namespace_.end() && own->second >= kMostOfNamespace) {
    return DropOldestOf(std::string(namespace_name));
  }
  if (kinds_.size() < kMostKinds) return;
  const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
  DropOldestOf(std::string(std::ranges::max_element(of_namespace_, by_count)->first));
}

void RunTimeTable::DropOldestOf(const std::string& namespace_name) {
  const auto first = kinds_.lower_bound(RunTimes::Kind{namespace_name, 0, 0});
  auto oldest = first;
  for (auto i = first; i != kinds_.end() && i->first.namespace_name == namespace_name; ++i) {
    if (i->second.changed < oldest->second.changed) oldest = i;
  }
  kinds_.erase(oldest);
  ++changes_;
  const auto count = of_namespace_.find(namespace_name);
  if (--count->second == 0) of_namespace_.erase(count);
}

std::shared_ptr<const RunTimes> RunTimeTable::Newest() const {
  const MutexLock lock(mutex_);
  if (newest_of_ == changes_) return newest_;
  auto newest = std::make_shared<RunTimes>();
  newest->kinds_.reserve(kinds_.size());
  for (const auto& [kind, learned] : kinds_) newest->kinds_.emplace(kind, learned.sorted);
  newest_ = std::move(newest);
  newest_of_ = changes_;
  return newest_;
}

std::size_t RunTimeTable::kinds() const {
  const MutexLock lock(mutex_);
  return kinds_.size();
}

PodEnds::PodEnds(const Snapshot& snapshot, WallTime now, std::shared_ptr<const RunTimes> learned,
                 const JobEndTable* jobs)
    : now_(now),
      learned_(std::move(learned)),
      jobs_(jobs == nullptr ? nullptr : jobs->Newest()),
      jobs_now_(jobs) {
  const bool learns = learned_ != nullptr && !learned_->empty();
  std::map<std::string, Words, std::less<>> words;
  snapshot.ForEachPod([&](const auto& held, NodeIndex) {
    const std::optional<WallTime> word = WordOf(*held);
    knows_ = knows_ || word || held->pod.deadline_seconds > 0 || (learns && held->pod.series != 0);
    if (!word || !held->life.started) return;
    Words& of = words[held->pod.id.namespace_name];
    ++of.running;
    if (IsPast(*word, *held->life.started)) ++of.overdue;
  });
  std::set<std::string, std::less<>> unbelieved;
  for (const auto& [name, of] : words) {
    if (of.overdue * kOverdueOf > of.running) unbelieved.insert(name);
  }
  if (unbelieved.empty()) return;
  unbelieved_ = std::make_shared<const std::set<std::string, std::less<>>>(std::move(unbelieved));
}

std::optional<WallTime> PodEnds::WordOf(const PodRequest& pod, WallTime started,
                                        std::optional<WallTime> of_job) {
  if (pod.expected_seconds == 0) return of_job;
  const WallTime own = started + seconds(pod.expected_seconds);
  return std::min(own, of_job.value_or(own));
}

std::optional<WallTime> PodEnds::WordOf(const PodRecord& held) const {
  const WallTime started = held.life.started.value_or(now_);
  std::optional<WallTime> of_job;
  if (jobs_ != nullptr) of_job = jobs_->Of(held.pod, started);
  // It may have been placed since, and so may its Job have come: starts are written in whole
  // seconds, by the clock of the node.
  if (!of_job && jobs_now_ != nullptr && started + kStart >= now_) {
    of_job = jobs_now_->Of(held.pod, started);
  }
  return WordOf(held.pod, started, of_job);
}

bool PodEnds::IsPast(WallTime word, WallTime started) const {
  const auto tolerated = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(word - started) * kTolerance);
  return word + std::max(tolerated, kStart) < now_;
}

bool PodEnds::Believes(const PodRequest& pod) const {
  return unbelieved_ == nullptr || !unbelieved_->contains(pod.id.namespace_name);
}

std::optional<WallTime> PodEnds::Said(const PodRecord& held) const {
  std::optional<WallTime> end;
  const auto or_at = [&](WallTime at) { end = std::min(end.value_or(at), at); };
  const WallTime started = held.life.started.value_or(now_);
  if (held.leaving) or_at(held.life.ends.value_or(now_ + seconds(held.pod.grace_seconds)));
  if (held.pod.deadline_seconds > 0) {
    or_at(started + seconds(held.pod.deadline_seconds + held.pod.grace_seconds));
  }
  const std::optional<WallTime> word = WordOf(held);
  if (word && Believes(held.pod) && !IsPast(*word, started)) or_at(*word);
  return end;
}

std::optional<WallTime> PodEnds::Learned(const PodRequest& pod, WallTime started) const {
  if (learned_ == nullptr) return std::nullopt;
  const auto runs = learned_->Of(pod, std::max<Duration>(now_ - started, Duration::zero()));
  if (!runs) return std::nullopt;
  return started + *runs;
}

std::optional<WallTime> PodEnds::Of(const PodRecord& held) const {
  if (const auto said = Said(held)) return std::max(*said, now_);
  return Learned(held.pod, held.life.started.value_or(now_));
}

std::optional<PodEnds::Overrun> PodEnds::OverrunOf(const PodRecord& held) const {
  const auto said = Said(held);
  if (!said || *said >= now_) return std::nullopt;
  const WallTime started = held.life.started.value_or(now_);
  return Overrun{now_ - *said, said == WordOf(held) ? *said - started : Duration::zero()};
}

bool PodEnds::IsLearned(const PodRecord& held) const { return !Said(held) && Of(held); }

std::optional<WallTime> PodEnds::OfNew(const PodRequest& pod) const {
  const WallTime start = now_ + kStart;
  std::optional<WallTime> end;
  if (pod.deadline_seconds > 0) end = start + seconds(pod.deadline_seconds + pod.grace_seconds);
  const std::optional<WallTime> word =
      WordOf(pod, start, jobs_now_ == nullptr ? std::nullopt : jobs_now_->Of(pod, start));
  if (word && *word > now_ && Believes(pod)) end = std::min(*word, end.value_or(*word));
  return end ? end : Learned(pod, start);
}

std::optional<LaterRoom> RoomAt(const Node& node, const RequestShape& shape, const PodEnds& ends) {
  struct Ending {
    WallTime at;
    const PodRecord* pod;
  };
  std::vector<Ending> endings;
  endings.reserve(node.pods().size());
  std::array<WallTime, kMaxGpusPerNode> free_at;  // of GPUs that are not idle
  free_at.fill(WallTime::min());
  GpuMask known = 0, unknown = node.claimed() | node.closed();
  for (const auto& held : node.pods()) {
    const auto end = ends.Of(*held);
    if (end) endings.push_back({*end, held.get()});
    for (const DeviceGrant& grant : held->placement.grants) {
      const GpuSpec* const gpu = node.spec().FindGpu(grant.gpu);
      if (gpu == nullptr) continue;
      const auto place = static_cast<std::size_t>(gpu - node.spec().gpus.data());
      if (end) free_at[place] = std::max(free_at[place], *end);
      (end ? known : unknown) |= GpuBit(static_cast<int>(place));
    }
  }
  std::vector<WallTime> gpus;
  for (std::size_t i = 0; i < node.gpus().size(); ++i) {
    const GpuMask bit = GpuBit(static_cast<int>(i));
    if ((unknown & bit) != 0) continue;
    if (node.gpus()[i].idle()) gpus.push_back(ends.now());
    if (!node.gpus()[i].idle() && (known & bit) != 0) gpus.push_back(free_at[i]);
  }
  const auto wanted = static_cast<std::size_t>(shape.gpu_count());
  if (gpus.size() < wanted) return std::nullopt;
  std::ranges::sort(gpus);
  WallTime at = wanted == 0 ? ends.now() : gpus[wanted - 1];
  std::ranges::sort(endings, {}, &Ending::at);
  std::int64_t cpu = node.free_cpu_milli(), memory = node.free_memory_bytes();
  auto next = endings.begin();
  for (; next != endings.end(); ++next) {
    const bool has_amounts = cpu >= shape.cpu_milli && memory >= shape.memory_bytes;
    if (next->at > at && has_amounts) break;
    at = std::max(at, next->at);
    cpu += next->pod->placement.cpu_milli;
    memory += next->pod->placement.memory_bytes;
  }
  if (cpu < shape.cpu_milli || memory < shape.memory_bytes) return std::nullopt;
  LaterRoom room{at};
  for (std::size_t i = 0; i < wanted; ++i) room.idle += at - gpus[i];
  return room;
}

}  // namespace berth
