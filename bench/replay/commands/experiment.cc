// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/commands/experiment.h"

namespace berth::replay {

void AddNames(CLI::App& command, const char* options, std::vector<std::string>& names,
              const std::string& meaning) {
  command.add_option(options, names, meaning + ", separated by commas")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->capture_default_str();
}

void AddHours(CLI::App& command, double& hours) {
  AddRange(command, "--hours", hours, 0.01, 10'000.0, "Length of the simulation, in virtual time");
}

void AddJson(CLI::App& command, std::string& path) {
  command.add_option("--json", path, "Write the results as JSON; - is stdout")->type_name("FILE|-");
}

}  // namespace berth::replay
