// SPDX-License-Identifier: Apache-2.0
#include "scoring/earmarks/run_times.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <utility>

#include "base/random.h"

namespace berth {
namespace {

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

}  // namespace

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

}  // namespace berth
