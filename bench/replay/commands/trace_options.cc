// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/commands/trace_options.h"

#include <CLI/CLI.hpp>

namespace berth::replay {

void AddTraceOptions(CLI::App& command, TraceSource& source, std::uint64_t& first_seed,
                     std::uint64_t& seeds) {
  source.data_folder = DefaultDataFolder();
  command
      .add_option("--traces", source.traces,
                  "Trace files, folders or names in the data folder; or `generated`")
      ->required()
      ->delimiter(',')
      ->type_name("TRACE,...");
  command.add_option("--data", source.data_folder, "Folder with the openb CSV files")
      ->capture_default_str()
      ->type_name("DIR");
  command
      .add_option("--nodes", source.nodes,
                  "Nodes, or a cluster with its pods (as for run); default: "
                  "openb_node_list_gpu_node.csv of the data folder")
      ->type_name("CSV|JSON");
  command.add_option("--first-seed", first_seed, "The first seed")->capture_default_str();
  command.add_option("--seeds", seeds, "Number of seeds")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
}

}  // namespace berth::replay
