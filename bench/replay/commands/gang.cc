// SPDX-License-Identifier: Apache-2.0
//
// berth-replay gang: see bench/replay/gang/gang_simulation.h.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/replay/commands/command.h"
#include "bench/replay/commands/experiment.h"
#include "bench/replay/commands/options.h"
#include "bench/replay/gang/gang_simulation.h"
#include "bench/replay/report.h"
#include "bench/replay/time/service_report.h"

namespace berth::replay {
namespace {

using Json = nlohmann::ordered_json;

struct GangFlags {
  std::vector<std::string> workloads;
  std::vector<std::string> rules = {"berth", "greedy", "volcano-like", "kueue-tas-like"};
  int seeds = 3;
  GangOptions options;
  std::string json;
};

struct GangRow : SeededRuns<GangResult> {
  std::string workload, rule;
  GangResult result = {};  // of all seeds
};

double CrossPct(const GangResult& result) {
  if (result.pairs == 0) return 0;
  return 100.0 * static_cast<double>(result.cross_pairs) / static_cast<double>(result.pairs);
}

std::string Text(const std::vector<GangRow>& rows) {
  std::string text;
  char line[200];
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i == 0 || rows[i].workload != rows[i - 1].workload) {
      const std::int64_t arrived = rows[i].result.sizes.back().arrived;
      std::snprintf(line, sizeof line, "%s%s: %lld gangs, %lld jobs of one pod\n",
                    i == 0 ? "" : "\n", rows[i].workload.c_str(), static_cast<long long>(arrived),
                    static_cast<long long>(rows[i].result.sizes.front().arrived));
      text += line;
      std::snprintf(line, sizeof line, "%-16s %7s %10s %8s %9s %9s  p99 by members: %s\n", "rule",
                    "placed", "GPU-h run", "GPU-h held", "cross %", "mean wait",
                    "1, 2-8, 9-32, 33+, all gangs");
      text += line;
    }
    const GangResult& result = rows[i].result;
    std::snprintf(line, sizeof line, "%-16s %7lld %10.0f %10.1f %9.1f %9s  ", rows[i].rule.c_str(),
                  static_cast<long long>(result.sizes.back().placed), result.served_gpu_hours,
                  result.held_gpu_hours, CrossPct(result),
                  ShortDuration(result.sizes.back().wait_mean_s).c_str());
    text += line;
    for (std::size_t s = 0; s < kGangSizes; ++s) {
      if (s > 0) text += ", ";
      text += result.sizes[s].arrived == 0 ? "-" : ShortDuration(result.sizes[s].wait_p99_s);
    }
    text += "\n";
  }
  return text;
}

std::string JsonText(const GangFlags& flags, const MadeWith& made_with,
                     const std::vector<GangRow>& rows) {
  Json results = Json::array();
  for (const GangRow& row : rows) {
    Json sizes = Json::object();
    for (std::size_t s = 0; s < kGangSizes; ++s) {
      const GangSizeResult& size = row.result.sizes[s];
      sizes[std::string(kGangSizeNames[s])] = {{"arrived", size.arrived},
                                               {"placed", size.placed},
                                               {"wait_mean_s", Thousandths(size.wait_mean_s)},
                                               {"wait_p50_s", Thousandths(size.wait_p50_s)},
                                               {"wait_p99_s", Thousandths(size.wait_p99_s)}};
    }
    results.push_back({{"workload", row.workload},
                       {"rule", row.rule},
                       {"served_gpu_hours", Thousandths(row.result.served_gpu_hours)},
                       {"held_gpu_hours", Thousandths(row.result.held_gpu_hours)},
                       {"pairs", row.result.pairs},
                       {"cross_domain_pairs", row.result.cross_pairs},
                       {"sizes", sizes}});
  }
  const Json json = {{"made_with", MadeWithJson(made_with)},
                     {"seed", flags.options.seed},
                     {"seeds", flags.seeds},
                     {"load", flags.options.load},
                     {"hours", flags.options.hours},
                     {"mean_lifetime_s", flags.options.mean_lifetime_s},
                     {"results", results}};
  return json.dump() + "\n";
}

Status Run(const GangFlags& flags, const MadeWith& made_with) {
  std::vector<GangRow> rows;
  for (const std::string& workload : flags.workloads) {
    for (const std::string& rule : flags.rules) rows.push_back({{}, workload, rule});
  }
  const auto simulate = [&flags](const GangRow& row, std::size_t s) -> Result<GangResult> {
    GangOptions options = flags.options;
    options.seed += s;
    BERTH_TRY(const GangWorkload workload, DrawGangWorkload(row.workload, options));
    std::vector<std::shared_ptr<const Node>> nodes;
    for (const NodeSpec& node : workload.nodes) {
      nodes.push_back(std::make_shared<const Node>(std::make_shared<const NodeSpec>(node)));
    }
    BERTH_TRY(const auto rule, MakeGangRule(row.rule, Snapshot(nodes)));
    return SimulateGangs(workload, *rule);
  };
  BERTH_TRY_STATUS(RunSeeds(rows, flags.seeds, simulate));
  for (GangRow& row : rows) {
    for (const GangResult& run : row.runs) Add(run, row.result);
    Summarize(row.result);
  }
  if (flags.json.empty()) return WriteOutput("-", Text(rows));
  return WriteOutput(flags.json, JsonText(flags, made_with, rows));
}

}  // namespace

Command AddGang(CLI::App& app) {
  const auto flags = std::make_shared<GangFlags>();
  for (const std::string_view name : GangWorkloadNames()) flags->workloads.emplace_back(name);
  CLI::App* const gang = app.add_subcommand(
      "gang", "Compare Berth's gang plans with other schedulers' rules on jobs of several pods");
  AddNames(*gang, "--workloads", flags->workloads, "Workloads");
  AddNames(*gang, "--rules", flags->rules, "Rules (also: berth-packing)");
  GangOptions& options = flags->options;
  AddRange(*gang, "--load", options.load, 0.01, 10.0, "Mean GPU demand over GPU capacity");
  AddHours(*gang, options.hours);
  AddRange(*gang, "--mean-lifetime", options.mean_lifetime_s, 1.0, 1e7,
           "Mean duration of a job, in seconds");
  AddSeeds(*gang, "--seed", options.seed, flags->seeds);
  AddJson(*gang, flags->json);
  return [flags](const MadeWith& made_with) { return Run(*flags, made_with); };
}

}  // namespace berth::replay
