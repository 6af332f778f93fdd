// SPDX-License-Identifier: Apache-2.0
//
// The options that several commands have.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bench/replay/compare/trace_set.h"
#include "bench/replay/policy.h"
#include "bench/replay/time/departures.h"

namespace berth::replay {

// A number from low to high. CLI::Range lets NaN through, which is neither below nor above.
template <class Number>
CLI::Validator Between(Number low, Number high) {
  const auto check = [low, high](const std::string& text) -> std::string {
    Number number{};
    const bool is_number = CLI::detail::lexical_cast(text, number);
    if (is_number && number >= low && number <= high) return "";
    std::ostringstream problem;
    problem.precision(15);
    problem << "want a number from " << low << " to " << high << ", got \"" << text << '"';
    return problem.str();
  };
  return {check, CLI::Range(low, high).get_description(), ""};
}
// A number with its default in the help.
template <class Number>
void AddRange(CLI::App& command, const char* option, Number& value, Number low, Number high,
              const std::string& meaning) {
  command.add_option(option, value, meaning)->check(Between(low, high))->capture_default_str();
}
// Names by commas; `options` such as "--policies,--policy".
void AddNames(CLI::App& command, const char* options, std::vector<std::string>& names,
              const std::string& meaning);
void AddHours(CLI::App& command, double& hours);
// CLI11 makes the largest seed of one that is negative, or larger than that.
void AddSeed(CLI::App& command, const char* option, std::uint64_t& seed,
             const std::string& meaning);
// `first_option` is "--seed" or "--first-seed".
template <class Count>
void AddSeeds(CLI::App& command, const char* first_option, std::uint64_t& first, Count& seeds) {
  AddSeed(command, first_option, first, "The first seed");
  AddRange(command, "--seeds", seeds, Count{1}, Count{10'000}, "Number of seeds");
}
// What files are given with, and their paths; "" and "-" are none.
using NamedFiles = std::vector<std::pair<std::string, std::string>>;
// Error: kInvalidArgument where a file to write is one of those that are read, or is written twice.
Status CheckFiles(const NamedFiles& reads, const NamedFiles& writes);
void AddJson(CLI::App& command, std::string& path);

// Built-in profiles, configurations, or both; at least one. `option` is what the names are given
// with, such as "--policies".
struct PolicyFlags {
  std::vector<std::string> names, files;
  [[nodiscard]] Result<std::vector<ReplayPolicy>> Read() const { return Policies(names, files); }
};
// Returns their group: one or two of its options are given.
CLI::App& AddPolicyOptions(CLI::App& command, const std::string& option, PolicyFlags& flags);

// Traces and seeds.
void AddTraceOptions(CLI::App& command, TraceSource& source, std::uint64_t& first_seed,
                     std::uint64_t& seeds);

// How streams are drawn, where `load` is given: lifetimes, and for how long.
void AddStreamOptions(CLI::App& command, DepartureOptions& options, CLI::Option* load);
// What there is with --with-departures.
void AddDepartureOptions(CLI::App& command, DepartureOptions& options);

}  // namespace berth::replay
