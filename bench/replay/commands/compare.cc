// SPDX-License-Identifier: Apache-2.0
//
// berth-replay compare: policies side by side on traces and seeds; merge: the parts of one.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/replay/commands/command.h"
#include "bench/replay/commands/options.h"
#include "bench/replay/compare/part.h"
#include "bench/replay/compare/plan.h"
#include "bench/replay/compare/report_folder.h"
#include "bench/replay/compare/runs.h"
#include "bench/replay/missing_models.h"
#include "bench/replay/parallel.h"
#include "bench/replay/progress.h"

namespace berth::replay {
namespace {

struct CompareFlags {
  Plan plan;
  PolicyFlags policies;
  TraceSource source;
  std::string report, json, shard;
  std::size_t threads = AllCores();
};

Status Compare(CompareFlags& flags, const MadeWith& made_with) {
  Plan& plan = flags.plan;
  BERTH_TRY(plan.policies, flags.policies.Read());
  Shard shard;
  if (!flags.shard.empty()) {
    BERTH_TRY(shard, ParseShard(flags.shard));
  }
  flags.source.times = plan.departures.times();
  BERTH_TRY(plan.traces, ReadTraces(flags.source));
  for (const Trace& trace : plan.traces) WarnOfMissingModels(trace.workload);
  BERTH_TRY(std::vector<nlohmann::ordered_json> records,
            RunPlan(plan, shard, flags.threads, TerminalProgress("compare")));
  const Runs runs{PlanJson(plan), std::move(records), made_with};
  if (!flags.shard.empty()) {
    return WriteInto(flags.report, PartFileName(shard), PartText(runs, shard));
  }
  return WriteReport(runs, flags.report, flags.json);
}

std::string ShardProblem(const std::string& text) {
  const auto shard = ParseShard(text);
  return shard ? "" : shard.error().message;
}

}  // namespace

Command AddCompare(CLI::App& app) {
  const auto flags = std::make_shared<CompareFlags>();
  CLI::App* const compare = app.add_subcommand(
      "compare", "Compare policies on traces and seeds: tables, and a page with curves");
  AddPolicyOptions(*compare, "--policies", flags->policies);
  AddTraceOptions(*compare, flags->source, flags->plan.first_seed, flags->plan.seeds);
  compare
      ->add_option("--orders", flags->plan.orders_folder,
                   "Folder with an arrival order per trace (NAME.txt.gz); default: drawn by seed")
      ->type_name("DIR");
  compare
      ->add_option("--inflate", flags->plan.inflate,
                   "GPU demand to reach, as a multiple of the capacity")
      ->check(Between(0.01, 100.0))
      ->capture_default_str();
  AddDepartureOptions(*compare, flags->plan.departures);
  compare->add_option("--report", flags->report, "Folder for report.{txt,csv,json,html}")
      ->required()
      ->type_name("DIR");
  compare->add_option("--json", flags->json, "Write the JSON to this file too; - is stdout")
      ->type_name("FILE|-");
  compare
      ->add_option("--shard", flags->shard,
                   "Run only part I of N and write a part file for `merge`")
      ->check(CLI::Validator(ShardProblem, "I/N"))
      ->type_name("");
  compare->add_option("--threads", flags->threads, "Number of parallel runs; default: one per core")
      ->check(Between(1, 1024));
  return [flags](const MadeWith& made_with) { return Compare(*flags, made_with); };
}

Command AddMerge(CLI::App& app) {
  struct Flags {
    std::vector<std::string> parts;
    std::string report, json;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App* const merge =
      app.add_subcommand("merge", "Merge the part files of one compare into its report");
  merge->add_option("parts", flags->parts, "All part files of the compare, in any order")
      ->required()
      ->type_name("PART...");
  merge->add_option("--report", flags->report, "Folder for report.{txt,csv,json,html}")
      ->required()
      ->type_name("DIR");
  merge->add_option("--json", flags->json, "Write the JSON to this file too; - is stdout")
      ->type_name("FILE|-");
  return [flags](const MadeWith&) -> Status {
    BERTH_TRY(const Runs runs, JoinParts(flags->parts));
    return WriteReport(runs, flags->report, flags->json);
  };
}

}  // namespace berth::replay
