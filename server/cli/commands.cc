// SPDX-License-Identifier: Apache-2.0
#include "server/cli/commands.h"

namespace berth {

std::vector<const CLI::App*> CommandsOf(const CLI::App& command) {
  return command.get_subcommands(
      [](const CLI::App* next) { return !next->get_name().empty() && !next->get_group().empty(); });
}

std::vector<const CLI::Option*> OptionsOf(const CLI::App& command) {
  std::vector<const CLI::Option*> options;
  for (const CLI::Option* option : command.get_options()) options.push_back(option);
  const auto is_group = [](const CLI::App* next) { return next->get_name().empty(); };
  for (const CLI::App* group : command.get_subcommands(is_group)) {
    for (const CLI::Option* option : OptionsOf(*group)) options.push_back(option);
  }
  return options;
}

}  // namespace berth
