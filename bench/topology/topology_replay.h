// SPDX-License-Identifier: Apache-2.0
//
// Jobs arrive at one machine and leave; every policy chooses their GPUs among the free ones.
//
// FIFO with a blocking head: a job waits for as many free GPUs as it asks for, and so do the jobs
// behind it. When a job starts depends on counts alone, so every policy sees the same jobs at the
// same times: the comparison is paired. Arrivals and durations are exponential; `load` is the
// offered share of the machine's GPU time.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bench/rules/choice_policy.h"
#include "topology/links/set_table.h"

namespace berth::replay {

struct TopologyReplayOptions {
  std::vector<std::pair<int, double>> mix;  // size of the jobs, and how often
  std::vector<ChoicePolicy> policies;
  double load = 0.8;
  int jobs = 20'000;  // per seed
  std::uint64_t first_seed = 1;
  int seeds = 3;
};

struct TopologyScore {
  ChoicePolicy policy = ChoicePolicy::kBerth;
  std::int64_t jobs = 0;        // that got at least two GPUs, which are those that are scored
  double mean_ring_ratio = 0;   // ring bandwidth / that of the best set of the size
  double share_below_half = 0;  // jobs whose ratio is below 0.5
  double numa_span_ratio = 0;   // smallest possible NUMA span of the size / the span that it got
  double decision_us = 0;       // mean time of a choice
};

// One score per policy. Error: sizes that the machine does not have, a policy that refuses, more
// than kMaxTableGpus GPUs.
Result<std::vector<TopologyScore>> ReplayTopology(const LinkMatrix& matrix, const Wiring& wiring,
                                                  const TopologyReplayOptions& options);

// "1:40,2:25". Error: kInvalidArgument with the piece.
Result<std::vector<std::pair<int, double>>> ParseSizeMix(std::string_view text);

}  // namespace berth::replay
