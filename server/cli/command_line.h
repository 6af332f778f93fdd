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

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

namespace berth {

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
