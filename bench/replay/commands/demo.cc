// SPDX-License-Identifier: Apache-2.0
//
// berth-replay demo: see bench/replay/demo.h.
#include "bench/replay/demo.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "bench/replay/commands/command.h"
#include "bench/replay/server_process.h"

namespace berth::replay {

Command AddDemo(CLI::App& app) {
  const auto options = std::make_shared<DemoOptions>(
      DemoOptions{"",
                  {"random", "gpu-packing", "fragmentation-gradient", "expected-waste"},
                  42,
                  BerthBinaryBeside()});
  CLI::App* const demo = app.add_subcommand(
      "demo", "Replay a workload over HTTP under several policies and print a table");
  demo->add_option("--trace", options->trace_folder,
                   "Folder with the openb CSV files; default: a generated workload")
      ->type_name("DIR");
  demo->add_option("--policies", options->policies, "Policies, separated by commas")
      ->delimiter(',')
      ->type_name("NAME,...");
  demo->add_option("--seed", options->seed, "Seed of the workload and of the order")
      ->capture_default_str();
  return [options](const MadeWith&) { return RunDemo(*options); };
}

}  // namespace berth::replay
