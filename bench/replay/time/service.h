// SPDX-License-Identifier: Apache-2.0
//
// Service: what pods got - GPU-hours and waiting times, by size class.
//
// A pod's wait is the time from its arrival to its start. One that never started within the
// horizon has waited at least until then; it counts with that wait, and in `never`. Primed pods
// (stream.h) do not count in the waits, because they all arrive at once; GPU-hours count all pods.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "bench/replay/time/size_class.h"
#include "bench/replay/time/stream.h"

namespace berth::replay {

// A pod that runs shorter counts as one that runs so long, where its wait is held against its run.
constexpr Millis kShortRun = std::chrono::seconds(10);

// For the curves: the share of the pods that waited longer than so many seconds.
constexpr std::array<int, 16> kWaitSeconds = {0,   1,   2,    5,    10,   20,     50,     100,
                                              200, 500, 1000, 2000, 5000, 10'000, 20'000, 50'000};

struct ClassService {
  std::int64_t arrived = 0;
  std::int64_t never = 0;  // of those, not started within the horizon
  double wait_mean_s = 0, wait_p50_s = 0, wait_p99_s = 0, wait_longest_s = 0;
  // Bounded slowdown of the pods, (wait + run) / max(run, kShortRun), at least 1 each: the mean.
  double slowdown_mean = 0;
  // The largest wait / max(run, kShortRun).
  double starvation = 0;
  // A pod that never started is among those that waited at most so long: the quantile would be
  // longer, had the horizon been later.
  bool p50_cut_off = false, p99_cut_off = false;
  std::array<double, kWaitSeconds.size()> longer{};  // parts, 0..1, by kWaitSeconds
  // Within the horizon: what the pods ran, and what they would have run had none waited.
  double served_gpu_hours = 0, demand_gpu_hours = 0;
};

using Service = std::array<ClassService, kSizeClasses>;

// Not thread-safe.
class ServiceMeter {
 public:
  explicit ServiceMeter(const Stream& stream) : stream_(stream) {}

  // The n-th arrival started at that time / is still waiting at the horizon.
  void Started(std::size_t n, const TraceTask& task, Millis at);
  void NeverStarted(std::size_t n, const TraceTask& task);
  // A pod that started does not run from `before` on, but only from `now` on (it began anew);
  // empty: it never runs.
  void Moved(std::size_t n, const TraceTask& task, std::optional<Millis> before,
             std::optional<Millis> now);

  [[nodiscard]] Service Summary() const;

 private:
  struct Sums {
    std::int64_t never = 0;
    std::int64_t served = 0, demand = 0;  // thousandths of a GPU * ms
    std::vector<double> waits_s;
    double slowdowns = 0, starvation = 0;
    double shortest_cut_off_s = std::numeric_limits<double>::infinity();
  };

  void Waited(Sums& sums, std::size_t n, Millis wait) const;
  template <class Change>
  void Count(const TraceTask& task, Change change);
  // Thousandths of a GPU * ms within the horizon, of a pod that runs from then on.
  [[nodiscard]] std::int64_t Served(std::size_t n, const TraceTask& task, Millis from) const;
  [[nodiscard]] std::int64_t Demand(std::size_t n, const TraceTask& task) const;
  [[nodiscard]] bool primed(std::size_t n) const { return n < stream_.primed; }

  const Stream& stream_;
  std::array<Sums, kSizeClasses> sums_;
};

}  // namespace berth::replay
