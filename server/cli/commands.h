// SPDX-License-Identifier: Apache-2.0
//
// The commands and options of a parser as users see them. CLI11 stores a group of options as a
// command without a name; these functions hide it.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

namespace berth {

// The direct subcommands that are shown: those with a group.
std::vector<const CLI::App*> CommandsOf(const CLI::App& command);

// Its options and those of its groups, including positionals.
std::vector<const CLI::Option*> OptionsOf(const CLI::App& command);

}  // namespace berth
