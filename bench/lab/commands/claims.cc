// SPDX-License-Identifier: Apache-2.0
//
// berth-lab claims: see bench/lab/claims/claim_placer.h.
#include "bench/lab/claims/claim_placer.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/lab/commands/lab_commands.h"
#include "bench/replay/arrivals.h"
#include "bench/replay/commands/experiment.h"
#include "bench/replay/commands/options.h"
#include "bench/replay/report.h"

namespace berth::replay {
namespace {

struct ClaimsFlags {
  std::string nodes, tasks, policy = "expected-waste";
  std::uint64_t seed = 42;
  int seeds = 3;
  double inflate = 1.3;
};

struct ClaimsRun {
  double placed = 0, refused = 0, at_full = 0, stranded = 0;
};

struct ClaimsRow : SeededRuns<ClaimsRun> {
  const char* name = "";
  ClaimWay way = ClaimWay::kDevices;
  bool one_numa = false;
};

std::vector<ClaimsRow> Rows() {
  std::vector<ClaimsRow> rows;
  for (const bool one_numa : {false, true}) {
    rows.push_back({{}, "first-fit", ClaimWay::kFirstFit, one_numa});
    rows.push_back({{}, "nodes", ClaimWay::kNodes, one_numa});
    rows.push_back({{}, "devices", ClaimWay::kDevices, one_numa});
  }
  return rows;
}

Status Run(const ClaimsFlags& flags) {
  BERTH_TRY(const ReplayPolicy policy, PolicyNamed(flags.policy));
  BERTH_TRY(const std::vector<TraceNode> nodes, ReadNodes(flags.nodes));
  BERTH_TRY(std::vector<TraceTask> tasks, ReadTasks(flags.tasks));
  std::erase_if(tasks, [](const TraceTask& task) {
    return task.gpus == 0 || task.gpu_milli != kMilliPerGpu;
  });
  if (tasks.empty()) return Invalid(flags.tasks + ": want tasks with whole GPUs, got none");
  std::vector<ClaimsRow> rows = Rows();
  BERTH_TRY_STATUS(
      RunSeeds(rows, flags.seeds, [&](const ClaimsRow& row, std::size_t s) -> Result<ClaimsRun> {
        const std::uint64_t seed = flags.seed + s;
        const Arrivals arrivals = DrawArrivals(nodes, tasks, seed, flags.inflate);
        BERTH_TRY(const auto placer, ClaimPlacer::Create(policy, OrderedNodes(nodes, arrivals),
                                                         {row.way, row.one_numa, seed}));
        BERTH_TRY(const ReplayResult replay,
                  RunReplay(nodes, tasks, arrivals, *placer, [](std::size_t, std::size_t) {}));
        const auto gpus = static_cast<double>(replay.gpus_total);
        return ClaimsRun{static_cast<double>(replay.placed), static_cast<double>(replay.refused),
                         replay.allocated_pct[100].value_or(0),
                         gpus - static_cast<double>(replay.allocated_milli) / kMilliPerGpu};
      }));
  char line[160];
  std::snprintf(line, sizeof line, "%-10s %-9s %9s %9s %18s %18s\n", "way", "one NUMA", "placed",
                "refused", "% at 100 arrived", "GPUs idle at end");
  std::string text = line;
  for (const ClaimsRow& row : rows) {
    std::snprintf(line, sizeof line, "%-10s %-9s %9.1f %9.1f %18.2f %18.1f\n", row.name,
                  row.one_numa ? "2 to 4" : "-", row.Mean(&ClaimsRun::placed),
                  row.Mean(&ClaimsRun::refused), row.Mean(&ClaimsRun::at_full),
                  row.Mean(&ClaimsRun::stranded));
    text += line;
  }
  return WriteOutput("-", text);
}

}  // namespace

Command AddClaims(CLI::App& app) {
  const auto flags = std::make_shared<ClaimsFlags>();
  CLI::App* const claims = app.add_subcommand(
      "claims",
      "Compare who chooses node and devices of claims (DRA), on the whole GPUs of a trace");
  claims->add_option("--nodes", flags->nodes, "CSV of nodes")->required();
  claims->add_option("--tasks", flags->tasks, "CSV of tasks")->required();
  claims->add_option("--policy", flags->policy, "Built-in profile");
  AddSeeds(*claims, "--seed", flags->seed, flags->seeds);
  AddRange(*claims, "--inflate", flags->inflate, 0.1, 10.0, "Arrived GPUs over those there are");
  return [flags](const MadeWith&) { return Run(*flags); };
}

}  // namespace berth::replay
