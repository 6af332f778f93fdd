// SPDX-License-Identifier: Apache-2.0
//
// The commands and options that a parser knows, as people see them: CLI11 keeps a group of options
// as a command without a name.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

namespace berth {

// Those right below it, but for hidden ones (without a group).
std::vector<const CLI::App*> CommandsOf(const CLI::App& command);

// Its own and those of its groups; positionals too.
std::vector<const CLI::Option*> OptionsOf(const CLI::App& command);

}  // namespace berth
