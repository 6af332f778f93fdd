// SPDX-License-Identifier: Apache-2.0
#include "bench/lab/tune/tuning.h"

#include <cmath>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>

#include "bench/lab/tune/search.h"
#include "bench/replay/engine_session.h"
#include "bench/replay/parallel.h"
#include "bench/replay/time/simulation.h"

namespace berth::replay {
namespace {

using Json = nlohmann::ordered_json;

// One trace with one seed.
struct Case {
  const Workload* workload;
  Arrivals arrivals;
  std::uint64_t seed;
  std::optional<Stream> stream;  // with departures
};

Result<std::vector<Case>> CasesOf(const std::vector<Trace>& traces, const TuningOptions& options,
                                  std::uint64_t first_seed, std::uint64_t seeds) {
  std::vector<Case> cases;
  for (std::uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    for (const Trace& trace : traces) {
      const Workload& workload = trace.workload;
      Case& added = cases.emplace_back(
          Case{&workload,
               DrawArrivals(workload.nodes, workload.tasks, seed, options.inflate),
               seed,
               {}});
      if (options.departures.on) {
        BERTH_TRY(added.stream, options.departures.StreamFor(workload, seed));
      }
    }
  }
  return cases;
}

double ValueOf(const ReplayResult& result) {
  const auto &at_100 = result.allocated_pct[100], &at_130 = result.allocated_pct[kLastPercent];
  if (at_100 && at_130) return (*at_100 + *at_130) / 2;
  const auto capacity = static_cast<double>(result.gpus_total * kMilliPerGpu);
  return 100 * static_cast<double>(result.allocated_milli) / capacity;
}

double ValueOf(const SimulationResult& result) {
  const ClassService& all = result.service[static_cast<std::size_t>(SizeClass::kAll)];
  return 100 * all.served_gpu_hours /
         (result.horizon_hours * static_cast<double>(result.gpus_total));
}

Result<double> Replay(const TunedPolicy& policy, const Case& at) {
  BERTH_TRY(const auto session, EngineSession::Create({"tuned", policy.profile, policy.waste},
                                                      *at.workload, at.arrivals, at.seed));
  if (at.stream) {
    BERTH_TRY(const SimulationResult result,
              Simulate(*at.workload, *at.stream, session->placer(), {}));
    return ValueOf(result);
  }
  BERTH_TRY(const ReplayResult result,
            RunReplay(at.workload->nodes, at.workload->tasks, at.arrivals, session->placer(), {}));
  return ValueOf(result);
}

// Replays in parallel; the first error by number.
template <class PolicyOf, class CaseOf>
Result<std::vector<double>> ReplayAll(std::size_t count, std::size_t threads,
                                      const PolicyOf& policy_of, const CaseOf& case_of,
                                      const std::function<void()>& done) {
  std::vector<Result<double>> results(count);
  std::mutex mutex;
  ForEachInParallel(count, threads, [&](std::size_t i) {
    results[i] = Replay(policy_of(i), case_of(i));
    const std::lock_guard lock(mutex);
    done();
  });
  std::vector<double> values;
  for (Result<double>& result : results) {
    BERTH_TRY(const double value, std::move(result));
    values.push_back(value);
  }
  return values;
}

Result<double> MeanOver(const std::vector<Case>& cases, const TunedPolicy& policy,
                        std::size_t threads) {
  BERTH_TRY(const std::vector<double> values,
            ReplayAll(
                cases.size(), threads, [&](std::size_t) { return policy; },
                [&](std::size_t i) -> const Case& { return cases[i]; }, [] {}));
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Status CheckSeeds(const TuningOptions& options) {
  const bool apart = options.first_seed + options.seeds <= options.first_holdout_seed ||
                     options.first_holdout_seed + options.holdout_seeds <= options.first_seed;
  if (apart) return {};
  return Invalid("first-holdout-seed: want held-out seeds that are not searched on, got " +
                 std::to_string(options.first_holdout_seed));
}

double RoundedValue(double value) { return std::round(value * 1e4) / 1e4; }

}  // namespace

Result<TuningResult> Tune(const TunedPolicy& start, const std::vector<Trace>& traces,
                          const TuningOptions& options, const Progress& progress) {
  BERTH_TRY_STATUS(CheckSeeds(options));
  TuningResult result;
  BERTH_TRY(result.knobs, KnobsOf(start));
  BERTH_TRY(const std::vector<Case> cases,
            CasesOf(traces, options, options.first_seed, options.seeds));
  const auto same = [&](const Point& point) {
    return PointOf(At(start, result.knobs, point), result.knobs);
  };
  std::size_t done = 0;
  const Evaluate evaluate = [&](const Evaluations& wanted) {
    return ReplayAll(
        wanted.size(), options.threads,
        [&](std::size_t i) { return At(start, result.knobs, wanted[i].first); },
        [&](std::size_t i) -> const Case& { return cases[wanted[i].second]; },
        [&] {
          if (progress) progress(++done, options.budget);
        });
  };
  BERTH_TRY(const SearchResult found,
            Search(PointOf(start, result.knobs), {cases.size(), options.budget, options.first_seed},
                   same, evaluate));
  if (progress) progress(options.budget, options.budget);
  result.value = options.departures.on ? "GPU-hours served, %" : "GPUs allocated, %";
  result.best = At(start, result.knobs, found.best);
  result.training = {found.start_value, found.best_value};
  result.evaluations = found.evaluations;

  BERTH_TRY(const std::vector<Case> held_out,
            CasesOf(traces, options, options.first_holdout_seed, options.holdout_seeds));
  BERTH_TRY(result.holdout.start, MeanOver(held_out, start, options.threads));
  BERTH_TRY(result.holdout.best, MeanOver(held_out, result.best, options.threads));
  BERTH_TRY(const ProfileSpec baseline, ProfileNamed("fragmentation-gradient"));
  BERTH_TRY(result.holdout_baseline, MeanOver(held_out, {baseline}, options.threads));
  return result;
}

Json TuningJson(const TuningResult& result, const TunedPolicy& start) {
  Json knobs = Json::array();
  for (const Knob& knob : result.knobs) {
    knobs.push_back({{"name", knob.name},
                     {"low", knob.low},
                     {"high", knob.high},
                     {"scale", knob.scale == Scale::kLog ? "log" : "linear"},
                     {"start", knob.get(start)},
                     {"best", knob.get(result.best)}});
  }
  return {{"profile", start.profile.name},
          {"value", result.value},
          {"evaluations", result.evaluations},
          {"knobs", std::move(knobs)},
          {"training",
           {{"start", RoundedValue(result.training.start)},
            {"best", RoundedValue(result.training.best)}}},
          {"holdout",
           {{"start", RoundedValue(result.holdout.start)},
            {"best", RoundedValue(result.holdout.best)},
            {"fragmentation-gradient", RoundedValue(result.holdout_baseline)}}}};
}

std::string TuningText(const TuningResult& result, const TunedPolicy& start) {
  char line[160];
  std::string text;
  const auto append = [&](const char* format, auto... arguments) {
    std::snprintf(line, sizeof line, format, arguments...);
    text += line;
  };
  append("%-32s %12s %12s\n", "", "start", "best");
  for (const Knob& knob : result.knobs) {
    append("%-32s %12g %12g\n", knob.name.c_str(), knob.get(start), knob.get(result.best));
  }
  append("%-32s %12.3f %12.3f\n", (result.value + ", training seeds").c_str(),
         result.training.start, result.training.best);
  append("%-32s %12.3f %12.3f\n", (result.value + ", held-out seeds").c_str(), result.holdout.start,
         result.holdout.best);
  append("%-32s %25.3f\n", "  fragmentation-gradient there", result.holdout_baseline);
  append("%zu evaluations\n", result.evaluations);
  if (!result.better_held_out()) text += "on held-out seeds the start is as good or better\n";
  return text;
}

}  // namespace berth::replay
