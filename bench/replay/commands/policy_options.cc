// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/commands/policy_options.h"

#include <CLI/CLI.hpp>

namespace berth::replay {

void AddPolicyOptions(CLI::App& command, const std::string& option, PolicyFlags& flags) {
  CLI::App* const group = command.add_option_group("policies", "At least one of");
  group->require_option(1, 2);
  group->add_option(option, flags.names, "Built-in profiles such as best-fit, separated by commas")
      ->delimiter(',')
      ->type_name("NAME,...");
  group
      ->add_option(
          "--config", flags.files,
          "BerthConfiguration files, separated by commas; each profile gets the name of its file")
      ->delimiter(',')
      ->type_name("FILE,...");
}

}  // namespace berth::replay
