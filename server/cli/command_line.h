// SPDX-License-Identifier: Apache-2.0
//
// The command line that all programs of Berth share: --version, completion, a manual page, and the
// nearest word for a typo.
//
//   CLI::App app("...", "berth");
//   CommandLine line(app, "1.2.3");
//   ... add commands ...
//   if (const auto code = line.Parse(argc, argv)) return *code;
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"

namespace berth {

// The commands and options of a parser as users see them. CLI11 stores a group of options as a
// command without a name; these functions hide it.

// The direct subcommands that are shown: those with a group.
std::vector<const CLI::App*> CommandsOf(const CLI::App& command);

// Its options and those of its groups, including positionals.
std::vector<const CLI::Option*> OptionsOf(const CLI::App& command);

// The manual page of a program, made from the commands and options of its parser: section
// 1, as troff with the macros of man(7).
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

// Not thread-safe.
class CommandLine {
 public:
  static constexpr int kFailure = 1;
  static constexpr int kUsage = 2;

  // Adds commands and options. The app outlives the object.
  CommandLine(CLI::App& app, std::string version);

  // The exit code if Parse handled everything: help, version, completion, manual page, or wrong
  // usage (explained on stderr). Otherwise nullopt: a command was given, with its options.
  std::optional<int> Parse(int argc, char** argv);

 private:
  // Reports the problem, with the nearest known word.
  int Refuse(const CLI::ParseError& problem) const;

  CLI::App& app_;
  const std::string version_;
  std::string shell_;
  CLI::App* const completion_;
  CLI::App* const man_;
};

}  // namespace berth
