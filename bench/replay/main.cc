// SPDX-License-Identifier: Apache-2.0
//
// The command line of berth-replay: exit 0 success, 1 failure, 2 usage.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

#include "bench/replay/demo.h"
#include "bench/replay/progress.h"
#include "bench/replay/report.h"
#include "bench/replay/server_process.h"
#include "bench/replay/session.h"

namespace berth::replay {
namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;

int Report(const Error& error) {
  std::fprintf(stderr, "berth-replay: %s\n", error.message.c_str());
  return kFailure;
}

struct RunFlags {
  std::string nodes, tasks, order, json;
  double inflate = 1.3;
  SessionOptions session;
};

void AddRun(CLI::App& app, RunFlags& flags) {
  CLI::App* const run = app.add_subcommand("run", "Offer the tasks of a trace to one policy");
  run->add_option("--nodes", flags.nodes, "Nodes: sn,cpu_milli,memory_mib,gpu,model")
      ->required()
      ->type_name("CSV");
  run->add_option(
         "--tasks", flags.tasks,
         "Tasks: name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec...]; may be gzipped")
      ->required()
      ->type_name("CSV");
  run->add_option("--policy", flags.session.policy, "A built-in profile, such as best-fit")
      ->required()
      ->type_name("NAME");
  run->add_option("--order", flags.order,
                  "Arrival orders by seed, instead of drawing one here; may be gzipped")
      ->type_name("FILE");
  run->add_option("--seed", flags.session.seed, "Seed of the order and of random draws")
      ->capture_default_str();
  run->add_option("--inflate", flags.inflate, "GPU demand to reach, as a multiple of the capacity")
      ->check(CLI::Range(0.01, 100.0))
      ->capture_default_str();
  const std::map<std::string, Through> kThrough = {{"engine", Through::kEngine},
                                                   {"http", Through::kHttp}};
  run->add_option("--through", flags.session.through,
                  "Decide with the engine in this process, or ask a `berth serve` over HTTP")
      ->transform(CLI::CheckedTransformer(kThrough))
      ->type_name("engine|http");
  run->add_option("--json", flags.json, "Write the result as JSON; - is stdout")
      ->type_name("FILE|-");
}

Status Run(const RunFlags& flags) {
  Workload workload;
  BERTH_TRY(workload.nodes, ReadNodes(flags.nodes));
  BERTH_TRY(workload.tasks, ReadTasks(flags.tasks));
  if (workload.tasks.empty()) return Invalid(flags.tasks + ": want at least one task, got none");
  std::filesystem::path stem = std::filesystem::path(flags.tasks).filename();
  while (stem.has_extension()) stem = stem.stem();
  workload.name = stem.string();
  Arrivals arrivals;
  if (flags.order.empty()) {
    arrivals = DrawArrivals(workload.nodes, workload.tasks, flags.session.seed, flags.inflate);
  } else {
    BERTH_TRY(arrivals, ReadArrivals(flags.order, flags.session.seed, workload.nodes.size(),
                                     workload.tasks.size()));
  }
  BERTH_TRY(const SessionResult session,
            RunSession(workload, arrivals, flags.session, TerminalProgress(flags.session.policy)));
  const RunLabels labels{workload.name, flags.session.policy, flags.session.seed,
                         workload.nodes.size()};
  if (flags.json.empty()) return WriteOutput("-", ResultText(labels, session.replay));
  return WriteOutput(flags.json, ResultJson(labels, session.replay));
}

struct GenerateFlags {
  std::string nodes = "nodes.csv", tasks = "tasks.csv";
  std::uint64_t seed = 42;
};

void AddGenerate(CLI::App& app, GenerateFlags& flags) {
  CLI::App* const generate =
      app.add_subcommand("generate", "Write the demo's workload as CSV files that `run` reads");
  generate->add_option("--nodes", flags.nodes, "Where the nodes go")->capture_default_str();
  generate->add_option("--tasks", flags.tasks, "Where the tasks go")->capture_default_str();
  generate->add_option("--seed", flags.seed, "Seed of the tasks")->capture_default_str();
}

void AddDemo(CLI::App& app, DemoOptions& options) {
  CLI::App* const demo = app.add_subcommand(
      "demo", "Replay a workload over HTTP under several policies and print a table");
  demo->add_option("--trace", options.trace_folder,
                   "Folder with the openb CSV files; default: a generated workload")
      ->type_name("DIR");
  demo->add_option("--policies", options.policies, "Which policies, separated by commas")
      ->delimiter(',')
      ->type_name("NAME,...");
  demo->add_option("--seed", options.seed, "Seed of the workload and of the order")
      ->capture_default_str();
}

int Main(int argc, char** argv) {
  CLI::App app("Replays GPU workloads on Berth's engine", "berth-replay");
  app.require_subcommand(1);
  RunFlags run;
  run.session.berth_binary = BerthBinaryBeside();
  AddRun(app, run);
  GenerateFlags generate;
  AddGenerate(app, generate);
  DemoOptions demo{
      "", {"random", "gpu-packing", "fragmentation-gradient"}, 42, BerthBinaryBeside()};
  AddDemo(app, demo);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : kUsage;
  }
  Status status;
  if (app.got_subcommand("run")) {
    status = Run(run);
  } else if (app.got_subcommand("generate")) {
    status = WriteWorkload(GenerateWorkload(generate.seed), generate.nodes, generate.tasks);
  } else {
    status = RunDemo(demo);
  }
  return status ? 0 : Report(status.error());
}

}  // namespace
}  // namespace berth::replay

int main(int argc, char** argv) { return berth::replay::Main(argc, argv); }
