// SPDX-License-Identifier: Apache-2.0
//
// What every program of this house has on its command line: --version, completion, a manual page,
// and a word on what may have been meant.
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

  // The exit code where all is said: help, version, wrong usage (with what was wrong, on stderr),
  // completion, manual page. Else a command was given, with its options.
  std::optional<int> Parse(int argc, char** argv);

 private:
  // With the nearest of the words that would have been understood.
  int Refuse(const CLI::ParseError& problem) const;

  CLI::App& app_;
  const std::string version_;
  std::string shell_;
  CLI::App* const completion_;
  CLI::App* const man_;
};

}  // namespace berth
