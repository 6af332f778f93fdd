// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/time/seed_means.h"

#include <algorithm>
#include <cmath>

namespace berth::replay {
namespace {

// of(run) -> a number.
template <class Of>
double Mean(const std::vector<SimulationResult>& runs, const Of& of) {
  double sum = 0;
  for (const SimulationResult& run : runs) sum += static_cast<double>(of(run));
  return sum / static_cast<double>(runs.size());
}

ClassService MeanOfClass(const std::vector<SimulationResult>& runs, std::size_t size) {
  ClassService mean;
  for (std::int64_t ClassService::*count : {&ClassService::arrived, &ClassService::never}) {
    mean.*count =
        std::llround(Mean(runs, [=](const auto& run) { return run.service[size].*count; }));
  }
  for (double ClassService::*figure :
       {&ClassService::wait_mean_s, &ClassService::wait_p50_s, &ClassService::wait_p99_s,
        &ClassService::wait_longest_s, &ClassService::slowdown_mean, &ClassService::starvation,
        &ClassService::served_gpu_hours, &ClassService::demand_gpu_hours}) {
    mean.*figure = Mean(runs, [=](const auto& run) { return run.service[size].*figure; });
  }
  for (bool ClassService::*is : {&ClassService::p50_cut_off, &ClassService::p99_cut_off}) {
    mean.*is = std::ranges::any_of(runs, [=](const auto& run) { return run.service[size].*is; });
  }
  for (std::size_t i = 0; i < kWaitSeconds.size(); ++i) {
    mean.longer[i] = Mean(runs, [=](const auto& run) { return run.service[size].longer[i]; });
  }
  return mean;
}

}  // namespace

SimulationResult MeanOf(const std::vector<SimulationResult>& runs) {
  SimulationResult mean;
  mean.horizon_hours = runs.front().horizon_hours;
  mean.gpus_total = runs.front().gpus_total;
  mean.gpus_without_watts = runs.front().gpus_without_watts;
  for (std::int64_t SimulationResult::*count :
       {&SimulationResult::arrivals, &SimulationResult::attempts}) {
    mean.*count = std::llround(Mean(runs, [=](const auto& run) { return run.*count; }));
  }
  for (double SimulationResult::*figure :
       {&SimulationResult::waiting_hours, &SimulationResult::idle_gpu_hours_waiting,
        &SimulationResult::kwh}) {
    mean.*figure = Mean(runs, [=](const auto& run) { return run.*figure; });
  }
  for (std::size_t size = 0; size < kSizeClasses; ++size) {
    mean.service[size] = MeanOfClass(runs, size);
  }
  return mean;
}

}  // namespace berth::replay
