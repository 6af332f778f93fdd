// SPDX-License-Identifier: Apache-2.0
//
// berth-replay shares: see bench/replay/shares/share_simulation.h.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/replay/commands/command.h"
#include "bench/replay/parallel.h"
#include "bench/replay/report.h"
#include "bench/replay/shares/share_simulation.h"
#include "bench/replay/time/service_report.h"

namespace berth::replay {
namespace {

struct ShareFlags {
  std::vector<std::string> mixes, policies;
  int seeds = 3;
  std::string fleet = "16x8x81920";
  ShareOptions options;
  std::string json;
};

// One mix under one policy, by seed.
struct ShareRow {
  std::string mix, policy;
  std::vector<ShareResult> runs;

  template <class Value>
  [[nodiscard]] double Mean(Value value) const {
    double sum = 0;
    for (const ShareResult& run : runs) sum += value(run);
    return sum / static_cast<double>(runs.size());
  }
  [[nodiscard]] double ServedPct() const {
    return Mean([](const ShareResult& run) { return run.served_pct(); });
  }
};

std::string ShareText(const std::vector<ShareRow>& rows) {
  std::string text;
  char line[200];
  const ShareRow* first = nullptr;
  for (const ShareRow& row : rows) {
    if (first == nullptr || row.mix != first->mix) {
      std::snprintf(line, sizeof line, "%s%s\n%-17s %9s %8s %9s %9s %10s %10s  %s\n",
                    first == nullptr ? "" : "\n", row.mix.c_str(), "policy", "served %", "- first",
                    "compute %", "memory %", "mean wait", "p99", "p99 of whole GPUs");
      text += line;
      first = &row;
    }
    const auto wait = [&row](auto value) { return ShortDuration(row.Mean(value)); };
    std::snprintf(line, sizeof line, "%-17s %9.2f %+8.2f %9.2f %9.2f %10s %10s  %s\n",
                  row.policy.c_str(), row.ServedPct(), row.ServedPct() - first->ServedPct(),
                  100 * row.Mean([](const ShareResult& run) { return run.used_compute; }),
                  100 * row.Mean([](const ShareResult& run) { return run.used_memory; }),
                  wait([](const ShareResult& run) { return run.waits.back().mean_s; }).c_str(),
                  wait([](const ShareResult& run) { return run.waits.back().p99_s; }).c_str(),
                  row.runs.front().waits[1].arrived == 0 ? "-" : wait([](const ShareResult& run) {
                                                                   return run.waits[1].p99_s;
                                                                 }).c_str());
    text += line;
  }
  return text;
}

using ShareJson = nlohmann::ordered_json;

double ToThousandths(double value) { return std::round(value * 1000) / 1000; }

ShareJson JsonOf(const ShareResult& run, std::uint64_t seed) {
  ShareJson waits = ShareJson::object();
  for (std::size_t c = 0; c < kShareClasses; ++c) {
    const ShareWaits& of = run.waits[c];
    waits[std::string(kShareClassNames[c])] = {{"arrived", of.arrived},
                                               {"never", of.never},
                                               {"mean_s", ToThousandths(of.mean_s)},
                                               {"p50_s", ToThousandths(of.p50_s)},
                                               {"p99_s", ToThousandths(of.p99_s)}};
  }
  return {{"seed", seed},
          {"served_gpu_hours", ToThousandths(run.served_gpu_hours)},
          {"demand_gpu_hours", ToThousandths(run.demand_gpu_hours)},
          {"served_pct", ToThousandths(run.served_pct())},
          {"used_compute_pct", ToThousandths(100 * run.used_compute)},
          {"used_memory_pct", ToThousandths(100 * run.used_memory)},
          {"waiting_hours", ToThousandths(run.waiting_hours)},
          {"idle_compute_waiting_pct", ToThousandths(100 * run.idle_compute_waiting)},
          {"idle_memory_waiting_pct", ToThousandths(100 * run.idle_memory_waiting)},
          {"waits", waits}};
}

std::string ShareJsonText(const ShareFlags& flags, const MadeWith& made_with,
                          const std::vector<ShareRow>& rows) {
  ShareJson results = ShareJson::array();
  for (const ShareRow& row : rows) {
    ShareJson runs = ShareJson::array();
    for (std::size_t s = 0; s < row.runs.size(); ++s) {
      runs.push_back(JsonOf(row.runs[s], flags.options.seed + s));
    }
    results.push_back({{"mix", row.mix},
                       {"policy", row.policy},
                       {"served_pct", ToThousandths(row.ServedPct())},
                       {"runs", runs}});
  }
  const ShareJson json = {{"made_with", MadeWithJson(made_with)},
                          {"seed", flags.options.seed},
                          {"seeds", flags.seeds},
                          {"load", flags.options.load},
                          {"hours", flags.options.hours},
                          {"mean_lifetime_s", flags.options.mean_lifetime_s},
                          {"fleet", flags.fleet},
                          {"results", results}};
  return json.dump() + "\n";
}

// Every mix under every policy on the same streams, on all cores.
Status RunShares(ShareFlags flags, const MadeWith& made_with) {
  BERTH_TRY(flags.options.fleet, ParseShareFleet(flags.fleet));
  const auto seeds = static_cast<std::size_t>(flags.seeds);
  std::vector<ShareRow> rows;
  for (const std::string& mix : flags.mixes) {
    for (const std::string& policy : flags.policies) {
      rows.push_back({mix, policy, std::vector<ShareResult>(seeds)});
    }
  }
  std::vector<Status> status(rows.size() * seeds);
  const auto run = [&](std::size_t row, std::size_t s) -> Status {
    ShareOptions options = flags.options;
    options.seed += s;
    BERTH_TRY(const ShareWorkload workload, DrawShareWorkload(rows[row].mix, options));
    BERTH_TRY(rows[row].runs[s], SimulateShares(workload, rows[row].policy, options.seed));
    return {};
  };
  ForEachInParallel(status.size(), AllCores(),
                    [&](std::size_t i) { status[i] = run(i / seeds, i % seeds); });
  for (const Status& one : status) {
    if (!one) return one;
  }
  if (flags.json != "-") BERTH_TRY_STATUS(WriteOutput("-", ShareText(rows)));
  return flags.json.empty() ? Status()
                            : WriteOutput(flags.json, ShareJsonText(flags, made_with, rows));
}

}  // namespace

Command AddShares(CLI::App& app) {
  const auto flags = std::make_shared<ShareFlags>();
  for (const std::string_view name : ShareMixNames()) flags->mixes.emplace_back(name);
  for (const std::string_view name : SharePolicyNames()) flags->policies.emplace_back(name);
  CLI::App* const shares = app.add_subcommand(
      "shares", "Compare Berth with other schedulers' rules on GPU shares in compute and memory");
  shares->add_option("--mixes", flags->mixes, "Mixes of pods, separated by commas")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->capture_default_str();
  shares->add_option("--policies,--policy", flags->policies, "Policies, separated by commas")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->capture_default_str();
  shares
      ->add_option("--fleet", flags->fleet,
                   "Fleets as NODES x GPUS x MIB of a GPU, separated by commas")
      ->type_name("NxCxM,...")
      ->capture_default_str();
  shares
      ->add_option("--load", flags->options.load,
                   "Mean demand over capacity, in the scarcer of compute and memory")
      ->check(CLI::Range(0.01, 10.0))
      ->capture_default_str();
  shares->add_option("--hours", flags->options.hours, "Length of the simulation, in virtual time")
      ->check(CLI::Range(0.01, 10'000.0))
      ->capture_default_str();
  shares
      ->add_option("--mean-lifetime", flags->options.mean_lifetime_s,
                   "Mean duration of a pod, in seconds")
      ->check(CLI::Range(1.0, 1e7))
      ->capture_default_str();
  shares->add_option("--seed", flags->options.seed, "The first seed")->capture_default_str();
  shares->add_option("--seeds", flags->seeds, "Number of seeds")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  shares->add_option("--json", flags->json, "Write every run as JSON; - is stdout")
      ->type_name("FILE|-");
  return [flags](const MadeWith& made_with) { return RunShares(*flags, made_with); };
}

}  // namespace berth::replay
