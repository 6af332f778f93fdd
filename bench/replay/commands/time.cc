// SPDX-License-Identifier: Apache-2.0
//
// berth-replay time: how long pods wait under one policy, with and without room that is kept for
// them, by what is known of their run times.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/replay/commands/command.h"
#include "bench/replay/commands/experiment.h"
#include "bench/replay/commands/options.h"
#include "bench/replay/missing_models.h"
#include "bench/replay/progress.h"
#include "bench/replay/report.h"
#include "bench/replay/session.h"
#include "bench/replay/time/departures.h"
#include "bench/replay/time/seed_means.h"
#include "bench/replay/time/service_report.h"

namespace berth::replay {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kNone = "none";

struct TimeFlags {
  std::string nodes, tasks, policy = "expected-waste";
  // What stands behind the policy's name (policy.h); kNone: nothing.
  std::vector<std::string> rules = {kNone,
                                    "in-turn",
                                    "earmarks",
                                    "earmarks+words",
                                    "earmarks+words/10",
                                    "earmarks+words*10",
                                    "earmarks+learned"};
  std::vector<double> loads;  // empty: the trace's own times
  DepartureOptions departures;
  std::uint64_t seed = 42;
  int seeds = 1;
  std::string json;
};

// A policy at one load.
struct TimeRow : SeededRuns<SimulationResult> {
  ReplayPolicy policy;
  std::optional<double> load;
};

// By load.
Result<std::vector<TimeRow>> RowsOf(const TimeFlags& flags) {
  std::vector<std::string> names;
  for (const std::string& rule : flags.rules) {
    names.push_back(rule == kNone ? flags.policy : flags.policy + "+" + rule);
  }
  BERTH_TRY(const std::vector<ReplayPolicy> policies, Policies(names, {}));
  std::vector<std::optional<double>> loads(flags.loads.begin(), flags.loads.end());
  if (loads.empty()) loads.emplace_back();
  std::vector<TimeRow> rows;
  for (const auto& load : loads) {
    for (const ReplayPolicy& policy : policies) rows.push_back({{}, policy, load});
  }
  return rows;
}

std::string TitleOf(const TimeFlags& flags, const Workload& workload, const TimeRow& row) {
  std::string title = workload.name;
  if (row.load) title += ", load " + Json(*row.load).dump();
  title += ", seed " + std::to_string(flags.seed);
  if (flags.seeds == 1) return title;
  const std::uint64_t last = flags.seed + static_cast<std::uint64_t>(flags.seeds) - 1;
  return title + " to " + std::to_string(last) + ", means of the seeds";
}

// A report for each load.
std::string Text(const TimeFlags& flags, const Workload& workload,
                 const std::vector<TimeRow>& rows) {
  std::string text;
  for (std::size_t first = 0; first < rows.size(); first += flags.rules.size()) {
    std::vector<PolicyResult> results;
    for (std::size_t i = first; i < first + flags.rules.size(); ++i) {
      results.push_back({rows[i].policy.name, MeanOf(rows[i].runs)});
    }
    if (first > 0) text += '\n';
    text += SideBySide(TitleOf(flags, workload, rows[first]), results);
    const auto none = std::ranges::find(results, flags.policy, &PolicyResult::policy);
    if (none != results.end() && results.size() > 1) text += Against(*none, results);
  }
  return text;
}

Json JsonOf(const TimeFlags& flags, const MadeWith& made_with, const Workload& workload,
            const std::vector<TimeRow>& rows) {
  Json results = Json::array();
  for (const TimeRow& row : rows) {
    for (std::size_t s = 0; s < row.runs.size(); ++s) {
      Json entry = {{"load", row.load ? Json(*row.load) : Json(nullptr)},
                    {"policy", row.policy.name},
                    {"seed", flags.seed + s}};
      entry.update(SimulationJson(row.runs[s]));
      results.push_back(std::move(entry));
    }
  }
  return {{"made_with", MadeWithJson(made_with)},
          {"pods_at_start", workload.start == nullptr ? 0 : workload.start->pods()},
          {"missing_models", MissingModelsJson(workload)},
          {"trace", workload.name},
          {"nodes", workload.nodes.size()},
          {"results", std::move(results)}};
}

Status Run(const TimeFlags& flags, const MadeWith& made_with) {
  BERTH_TRY(std::vector<TimeRow> rows, RowsOf(flags));
  const TaskTimes times = flags.loads.empty() ? TaskTimes::kRequired : TaskTimes::kIgnored;
  BERTH_TRY(const Workload workload, ReadWorkload(flags.nodes, flags.tasks, times));
  WarnOfMissingModels(workload);
  SharedProgress progress(TerminalProgress("time"),
                          rows.size() * static_cast<std::size_t>(flags.seeds));
  const auto simulate = [&](const TimeRow& row, std::size_t s) -> Result<SimulationResult> {
    const std::uint64_t seed = flags.seed + s;
    DepartureOptions departures = flags.departures;
    departures.on = true;
    departures.load = row.load;
    BERTH_TRY(const Stream stream, departures.StreamFor(workload, seed));
    const Arrivals order = DrawArrivals(workload.nodes, workload.tasks, seed, 1.3);
    return RunTimedSession(workload, order, stream, row.policy, seed, progress.Part());
  };
  BERTH_TRY_STATUS(RunSeeds(rows, flags.seeds, simulate));
  const std::string text = Text(flags, workload, rows);
  if (flags.json.empty()) return WriteOutput("-", text);
  return WriteTableAndJson(text, flags.json, JsonOf(flags, made_with, workload, rows));
}

}  // namespace

Command AddTime(CLI::App& app) {
  const auto flags = std::make_shared<TimeFlags>();
  CLI::App* const time = app.add_subcommand(
      "time", "Compare waits under one policy, with and without room kept for pods that wait");
  time->add_option("--nodes", flags->nodes, "Nodes, as for run")->required()->type_name("CSV|JSON");
  time->add_option("--tasks", flags->tasks, "Tasks, as for run")->required()->type_name("CSV");
  time->add_option("--policy", flags->policy, "Built-in profile that places pods, in every row")
      ->capture_default_str();
  AddNames(*time, "--rules", flags->rules,
           "Rows: none, or what stands behind the policy's name in run");
  CLI::Option* const loads =
      time->add_option("--loads", flags->loads,
                       "Draw Poisson arrivals and lifetimes; mean GPU demand over capacity, by "
                       "commas. Default: the trace's times")
          ->delimiter(',')
          ->check(Between(0.01, 10.0));
  AddStreamOptions(*time, flags->departures, loads);
  AddSeeds(*time, "--seed", flags->seed, flags->seeds);
  AddJson(*time, flags->json);
  return [flags](const MadeWith& made_with) { return Run(*flags, made_with); };
}

}  // namespace berth::replay
