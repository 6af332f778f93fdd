// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/commands/departure_options.h"

#include <CLI/CLI.hpp>
#include <map>
#include <string>

namespace berth::replay {
void AddDepartureOptions(CLI::App& command, DepartureOptions& options) {
  CLI::Option* const on = command.add_flag(
      "--with-departures", options.on,
      "Pods arrive, end and wait in a queue, at the trace's times or at drawn ones (--load)");
  command
      .add_option("--load", options.load,
                  "Draw Poisson arrivals and lifetimes; the value is mean GPU demand over capacity")
      ->check(CLI::Range(0.01, 10.0))
      ->needs(on);
  CLI::Option* const load = command.get_option("--load");
  const std::map<std::string, Lifetimes> kLifetimes = {{"lognormal", Lifetimes::kLogNormal},
                                                       {"pareto", Lifetimes::kBoundedPareto}};
  command
      .add_option(
          "--lifetimes", options.lifetimes,
          "Distribution of drawn lifetimes: lognormal (sigma 1) or pareto (alpha 1.2, bounded)")
      ->transform(CLI::CheckedTransformer(kLifetimes))
      ->type_name("lognormal|pareto")
      ->needs(load);
  command
      .add_option("--mean-lifetime", options.mean_lifetime_s, "Mean of drawn lifetimes, in seconds")
      ->check(CLI::Range(1.0, 1e7))
      ->capture_default_str()
      ->needs(load);
  command.add_option("--hours", options.hours, "Length of the drawn stream, in virtual time")
      ->check(CLI::Range(0.01, 1e4))
      ->capture_default_str()
      ->needs(load);
}

}  // namespace berth::replay
