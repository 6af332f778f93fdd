// SPDX-License-Identifier: Apache-2.0
//
// Tuning: the search for the setting of a policy, on the real engine.
//
// One evaluation is one replay of one trace with one seed. Its value without departures is the
// allocated GPU in %, mean of the readings at 100 and at 130 % arrived (the last reading, where the
// replay ends before); with departures the GPU-hours served in % of those asked for. The setting
// found on the training seeds is then replayed on held-out seeds, beside the start and
// fragmentation-gradient: only these figures say what it is worth.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/lab/tune/knobs.h"
#include "bench/replay/compare/trace_set.h"
#include "bench/replay/replay.h"
#include "bench/replay/time/departures.h"

namespace berth::replay {

struct TuningOptions {
  std::uint64_t first_seed = 1000, seeds = 2;  // to search on
  std::uint64_t first_holdout_seed = 2000, holdout_seeds = 2;
  std::size_t budget = 100;  // evaluations, without those on held-out seeds
  double inflate = 1.3;      // without departures
  DepartureOptions departures;
  std::size_t threads = 1;
};

// Means over traces and seeds, %.
struct TunedValue {
  double start = 0;
  double best = 0;
};

struct TuningResult {
  std::string value;  // name of the maximised figure
  TunedPolicy best;
  std::vector<Knob> knobs;
  TunedValue training, holdout;
  double holdout_baseline = 0;  // fragmentation-gradient with its oracle
  std::size_t evaluations = 0;
  bool better_held_out() const { return holdout.best > holdout.start; }
};

// `progress` counts evaluations. Error: seeds that overlap, too small a budget, a policy
// without knobs, traces without the times that departures need.
Result<TuningResult> Tune(const TunedPolicy& start, const std::vector<Trace>& traces,
                          const TuningOptions& options, const Progress& progress);

nlohmann::ordered_json TuningJson(const TuningResult& result, const TunedPolicy& start);
std::string TuningText(const TuningResult& result, const TunedPolicy& start);

}  // namespace berth::replay
