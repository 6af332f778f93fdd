// SPDX-License-Identifier: Apache-2.0
//
// berth-replay generate: the demo's workload as files.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "bench/replay/commands/command.h"
#include "bench/replay/commands/options.h"
#include "bench/replay/workload.h"

namespace berth::replay {

Command AddGenerate(CLI::App& app) {
  struct Flags {
    std::string nodes = "nodes.csv", tasks = "tasks.csv";
    std::uint64_t seed = 42;
  };
  const auto flags = std::make_shared<Flags>();
  CLI::App* const generate =
      app.add_subcommand("generate", "Write the demo's workload as CSV files for `run`");
  generate->add_option("--nodes", flags->nodes, "Write the nodes to this file")
      ->capture_default_str();
  generate->add_option("--tasks", flags->tasks, "Write the tasks to this file")
      ->capture_default_str();
  AddSeed(*generate, "--seed", flags->seed, "Seed of the tasks");
  return [flags](const MadeWith&) {
    return WriteWorkload(GenerateWorkload(flags->seed), flags->nodes, flags->tasks);
  };
}

}  // namespace berth::replay
