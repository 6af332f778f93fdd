// SPDX-License-Identifier: Apache-2.0
//
// The commands and options of a parser as users see them. CLI11 stores a group of options as a
// command without a name; these functions hide it.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth {

// The direct subcommands that are shown: those with a group.
std::vector<const CLI::App*> CommandsOf(const CLI::App& command);

// Its options and those of its groups, including positionals.
std::vector<const CLI::Option*> OptionsOf(const CLI::App& command);

// The manual page of a program, made from the commands and options of its parser.

// Section 1, as troff with the macros of man(7).
std::string ManPage(const CLI::App& app, const std::string& version);

// Completion of a command line in bash, zsh, fish and kubectl. Each shell's script asks the program
// itself, which knows every command and option.

// The hidden command that the scripts call.
inline constexpr std::string_view kCompleteCommand = "__complete";

// What may follow. words: those after the program's name; the last one may be incomplete. Lines
// "WORD\tWHAT IT IS", then ":4", or ":0" where files may follow as well: what kubectl expects of
// kubectl_complete-NAME (k8s.io/kubectl, plugin_completion.go), and cobra prints.
std::string Complete(const CLI::App& app, std::span<const std::string> words);

// The script for "bash", "zsh" or "fish". Error: kInvalidArgument for another shell.
Result<std::string> CompletionScript(std::string_view shell, const std::string& program);

}  // namespace berth
