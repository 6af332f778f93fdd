// SPDX-License-Identifier: Apache-2.0
//
// berth-replay demo: see bench/replay/demo.h.
#include "bench/replay/demo.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "bench/replay/commands/command.h"
#include "bench/replay/commands/options.h"
#include "bench/replay/server_process.h"

namespace berth::replay {

Command AddDemo(CLI::App& app) {
  const auto options = std::make_shared<DemoOptions>();
  options->berth_binary = BerthBinaryBeside();
  CLI::App* const demo = app.add_subcommand(
      "demo", "Show a workload under Berth, kube-scheduler and FGD: live page, bars, report");
  demo->add_option("--trace", options->trace_folder,
                   "Folder with the openb CSV files; default: a generated workload")
      ->type_name("DIR");
  AddSeed(*demo, "--seed", options->seed, "Seed of the workload and of the order");
  demo->add_option("--report", options->report, "Folder for report.{txt,csv,json,html}")
      ->type_name("DIR")
      ->capture_default_str();
  return [options](const MadeWith& made_with) { return RunDemo(*options, made_with); };
}

}  // namespace berth::replay
