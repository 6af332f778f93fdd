// SPDX-License-Identifier: Apache-2.0
//
// A stream of jobs under one rule, on a virtual clock.
//
// A job starts when all of its members have a node, and gives everything back when it has run. What
// members hold before that is lost. Of what happens at one moment jobs that end come first, then
// holds that end, then jobs that come, then attempts in the order of arrival. A job for which
// nothing has left the cluster since its last attempt, or since that of a job of its kind, is not
// asked about: it cannot fit.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/replay/gang/gang_rules.h"
#include "bench/replay/gang/gang_workload.h"

namespace berth::replay {

// By members; the last is the sum of those with two or more.
constexpr std::size_t kGangSizes = 5;
constexpr std::array<std::string_view, kGangSizes> kGangSizeNames = {"1", "2-8", "9-32", "33+",
                                                                     "gangs"};

// A job that never started has waited until the horizon.
struct GangSizeResult {
  std::int64_t arrived = 0, placed = 0;
  double wait_mean_s = 0, wait_p50_s = 0, wait_p99_s = 0;
};

struct GangResult {
  std::array<GangSizeResult, kGangSizes> sizes;
  double served_gpu_hours = 0;  // that jobs ran within the horizon
  double held_gpu_hours = 0;    // that members held whose job had not started
  // Pairs of members of one gang, of those placed: all, and those in two racks.
  std::int64_t pairs = 0, cross_pairs = 0;
  std::int64_t attempts = 0;
  std::uint64_t trace = 0;  // EventTrace of one run

  // Of several runs, before Summarize.
  std::array<std::vector<double>, kGangSizes> waits_s;
};

// Error: kInternal, naming the job, when the rule gives what does not fit.
Result<GangResult> SimulateGangs(const GangWorkload& workload, GangRule& rule);

// Adds a run of the same workload with another seed.
void Add(const GangResult& run, GangResult& sum);
// Fills in what follows from waits_s.
void Summarize(GangResult& result);

}  // namespace berth::replay
