// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/commands/trace_options.h"

#include "bench/replay/commands/experiment.h"

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
  AddSeeds(command, "--first-seed", first_seed, seeds);
}

}  // namespace berth::replay
