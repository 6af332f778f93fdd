// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/time/service.h"

#include <algorithm>
#include <numeric>

#include "bench/replay/latency.h"

namespace berth::replay {
namespace {

constexpr double kMilliMsPerHourOfGpu = 1000.0 * 3'600'000.0;

double Seconds(Millis time) { return static_cast<double>(time.count()) / 1000; }

}  // namespace

template <class Change>
void ServiceMeter::Count(const TraceTask& task, Change change) {
  const auto sums_of = [this](SizeClass size) -> Sums& {
    return sums_[static_cast<std::size_t>(size)];
  };
  change(sums_of(SizeClassOf(task)));
  if (task.gpus > 1) change(sums_of(SizeClass::kMulti));
  change(sums_of(SizeClass::kAll));
}

// What the arrival would have run within the horizon without a wait.
std::int64_t ServiceMeter::Demand(std::size_t n, const TraceTask& task) const {
  const Arrival& arrival = stream_.arrivals[n];
  const Millis end = std::min(arrival.at + arrival.runs, stream_.horizon);
  return GpuDemandMilli(task) * std::max<std::int64_t>(0, (end - arrival.at).count());
}

std::int64_t ServiceMeter::Served(std::size_t n, const TraceTask& task, Millis from) const {
  const Millis end = std::min(from + stream_.arrivals[n].runs, stream_.horizon);
  return GpuDemandMilli(task) * std::max<std::int64_t>(0, (end - from).count());
}

void ServiceMeter::Moved(std::size_t n, const TraceTask& task, std::optional<Millis> before,
                         std::optional<Millis> now) {
  const std::int64_t change =
      (now ? Served(n, task, *now) : 0) - (before ? Served(n, task, *before) : 0);
  Count(task, [change](Sums& sums) { sums.served += change; });
}

void ServiceMeter::Waited(Sums& sums, std::size_t n, Millis wait) const {
  const Millis runs = stream_.arrivals[n].runs;
  const double bounded_s = Seconds(std::max(runs, kShortRun));
  sums.waits_s.push_back(Seconds(wait));
  sums.slowdowns += std::max(1.0, Seconds(wait + runs) / bounded_s);
  sums.starvation = std::max(sums.starvation, Seconds(wait) / bounded_s);
}

void ServiceMeter::Started(std::size_t n, const TraceTask& task, Millis at) {
  const Arrival& arrival = stream_.arrivals[n];
  const std::int64_t served = Served(n, task, at);
  Count(task, [&](Sums& sums) {
    sums.served += served;
    sums.demand += Demand(n, task);
    if (!primed(n)) Waited(sums, n, at - arrival.at);
  });
}

void ServiceMeter::NeverStarted(std::size_t n, const TraceTask& task) {
  Count(task, [&](Sums& sums) {
    sums.demand += Demand(n, task);
    if (primed(n)) return;
    ++sums.never;
    const Millis wait = stream_.horizon - stream_.arrivals[n].at;
    Waited(sums, n, wait);
    sums.shortest_cut_off_s = std::min(sums.shortest_cut_off_s, Seconds(wait));
  });
}

Service ServiceMeter::Summary() const {
  Service service;
  for (std::size_t c = 0; c < kSizeClasses; ++c) {
    ClassService& figures = service[c];
    const Sums& sums = sums_[c];
    figures.arrived = static_cast<std::int64_t>(sums.waits_s.size());
    figures.never = sums.never;
    figures.served_gpu_hours = static_cast<double>(sums.served) / kMilliMsPerHourOfGpu;
    figures.demand_gpu_hours = static_cast<double>(sums.demand) / kMilliMsPerHourOfGpu;
    if (sums.waits_s.empty()) continue;
    const LatencySummary waits = Summarize(sums.waits_s);
    figures.slowdown_mean = sums.slowdowns / static_cast<double>(figures.arrived);
    figures.starvation = sums.starvation;
    figures.wait_mean_s = waits.mean;
    figures.wait_p50_s = waits.p50;
    figures.wait_p99_s = waits.p99;
    figures.wait_longest_s = std::ranges::max(sums.waits_s);
    figures.p50_cut_off = sums.shortest_cut_off_s <= waits.p50;
    figures.p99_cut_off = sums.shortest_cut_off_s <= waits.p99;
    for (std::size_t i = 0; i < kWaitSeconds.size(); ++i) {
      const auto longer = std::ranges::count_if(
          sums.waits_s, [limit = kWaitSeconds[i]](double wait_s) { return wait_s > limit; });
      figures.longer[i] = static_cast<double>(longer) / static_cast<double>(sums.waits_s.size());
    }
  }
  return service;
}

}  // namespace berth::replay
