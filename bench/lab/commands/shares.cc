// SPDX-License-Identifier: Apache-2.0
//
// berth-lab shares: see bench/lab/shares/share_simulation.h.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/lab/commands/lab_commands.h"
#include "bench/lab/shares/share_simulation.h"
#include "bench/replay/commands/experiment.h"
#include "bench/replay/commands/options.h"
#include "bench/replay/report.h"
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

// One mix under one policy.
struct ShareRow : SeededRuns<ShareResult> {
  std::string mix, policy;
  [[nodiscard]] double ServedPct() const { return Mean(&ShareResult::served_pct); }
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
                  100 * row.Mean(&ShareResult::used_compute),
                  100 * row.Mean(&ShareResult::used_memory),
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

ShareJson JsonOf(const ShareResult& run, std::uint64_t seed) {
  ShareJson waits = ShareJson::object();
  for (std::size_t c = 0; c < kShareClasses; ++c) {
    const ShareWaits& of = run.waits[c];
    waits[std::string(kShareClassNames[c])] = {{"arrived", of.arrived},
                                               {"never", of.never},
                                               {"mean_s", Thousandths(of.mean_s)},
                                               {"p50_s", Thousandths(of.p50_s)},
                                               {"p99_s", Thousandths(of.p99_s)}};
  }
  return {{"seed", seed},
          {"served_gpu_hours", Thousandths(run.served_gpu_hours)},
          {"demand_gpu_hours", Thousandths(run.demand_gpu_hours)},
          {"served_pct", Thousandths(run.served_pct())},
          {"used_compute_pct", Thousandths(100 * run.used_compute)},
          {"used_memory_pct", Thousandths(100 * run.used_memory)},
          {"waiting_hours", Thousandths(run.waiting_hours)},
          {"idle_compute_waiting_pct", Thousandths(100 * run.idle_compute_waiting)},
          {"idle_memory_waiting_pct", Thousandths(100 * run.idle_memory_waiting)},
          {"waits", waits}};
}

ShareJson JsonOf(const ShareFlags& flags, const MadeWith& made_with,
                 const std::vector<ShareRow>& rows) {
  ShareJson results = ShareJson::array();
  for (const ShareRow& row : rows) {
    ShareJson runs = ShareJson::array();
    for (std::size_t s = 0; s < row.runs.size(); ++s) {
      runs.push_back(JsonOf(row.runs[s], flags.options.seed + s));
    }
    results.push_back({{"mix", row.mix},
                       {"policy", row.policy},
                       {"served_pct", Thousandths(row.ServedPct())},
                       {"runs", runs}});
  }
  return {{"made_with", MadeWithJson(made_with)},
          {"seed", flags.options.seed},
          {"seeds", flags.seeds},
          {"load", flags.options.load},
          {"hours", flags.options.hours},
          {"mean_lifetime_s", flags.options.mean_lifetime_s},
          {"fleet", flags.fleet},
          {"results", results}};
}

// Every mix under every policy on the same streams, on all cores.
Status RunShares(ShareFlags flags, const MadeWith& made_with) {
  BERTH_TRY(flags.options.fleet, ParseShareFleet(flags.fleet));
  std::vector<ShareRow> rows;
  for (const std::string& mix : flags.mixes) {
    for (const std::string& policy : flags.policies) {
      rows.push_back({{}, mix, policy});
    }
  }
  const auto simulate = [&flags](const ShareRow& row, std::size_t s) -> Result<ShareResult> {
    ShareOptions options = flags.options;
    options.seed += s;
    BERTH_TRY(const ShareWorkload workload, DrawShareWorkload(row.mix, options));
    return SimulateShares(workload, row.policy, options.seed);
  };
  BERTH_TRY_STATUS(RunSeeds(rows, flags.seeds, simulate));
  return WriteTableAndJson(ShareText(rows), flags.json, JsonOf(flags, made_with, rows));
}

}  // namespace

Command AddShares(CLI::App& app) {
  const auto flags = std::make_shared<ShareFlags>();
  for (const std::string_view name : ShareMixNames()) flags->mixes.emplace_back(name);
  for (const std::string_view name : SharePolicyNames()) flags->policies.emplace_back(name);
  CLI::App* const shares = app.add_subcommand(
      "shares", "Compare Berth with other schedulers' rules on GPU shares in compute and memory");
  AddNames(*shares, "--mixes", flags->mixes, "Mixes of pods");
  AddNames(*shares, "--policies,--policy", flags->policies, "Policies");
  shares
      ->add_option("--fleet", flags->fleet,
                   "Fleets as NODES x GPUS x MIB of a GPU, separated by commas")
      ->type_name("NxCxM,...")
      ->capture_default_str();
  ShareOptions& options = flags->options;
  AddRange(*shares, "--load", options.load, 0.01, 10.0,
           "Mean demand over capacity, in the scarcer of compute and memory");
  AddHours(*shares, options.hours);
  AddRange(*shares, "--mean-lifetime", options.mean_lifetime_s, 1.0, 1e7,
           "Mean duration of a pod, in seconds");
  AddSeeds(*shares, "--seed", options.seed, flags->seeds);
  AddJson(*shares, flags->json);
  return [flags](const MadeWith& made_with) { return RunShares(*flags, made_with); };
}

}  // namespace berth::replay
