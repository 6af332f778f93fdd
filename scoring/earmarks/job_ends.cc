// SPDX-License-Identifier: Apache-2.0
#include "scoring/earmarks/job_ends.h"

#include <algorithm>
#include <string_view>

namespace berth {
namespace {

Digest DigestOf(std::string_view uid) {
  Digester digester;
  digester.Add(uid);
  return digester.digest();
}

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

}  // namespace berth
