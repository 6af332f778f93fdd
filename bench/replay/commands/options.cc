// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/commands/options.h"

#include <filesystem>
#include <limits>
#include <map>
#include <system_error>

#include "base/text.h"

namespace berth::replay {

void AddNames(CLI::App& command, const char* options, std::vector<std::string>& names,
              const std::string& meaning) {
  command.add_option(options, names, meaning + ", separated by commas")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->capture_default_str();
}

void AddHours(CLI::App& command, double& hours) {
  AddRange(command, "--hours", hours, 0.01, 10'000.0, "Length of the simulation, in virtual time");
}

void AddSeed(CLI::App& command, const char* option, std::uint64_t& seed,
             const std::string& meaning) {
  const auto check = [](const std::string& text) -> std::string {
    if (ReadNumber<std::uint64_t>(text)) return "";
    return "want an integer from 0 to " +
           std::to_string(std::numeric_limits<std::uint64_t>::max()) + ", got \"" + text + "\"";
  };
  command.add_option(option, seed, meaning)
      ->check(CLI::Validator(check, ""))
      ->capture_default_str();
}

Status CheckFiles(const NamedFiles& reads, const NamedFiles& writes) {
  NamedFiles before = reads;
  std::error_code ignored;
  for (const auto& [option, path] : writes) {
    if (path.empty() || path == "-") continue;
    // Several may go to /dev/null.
    if (std::filesystem::exists(path, ignored) &&
        !std::filesystem::is_regular_file(path, ignored)) {
      continue;
    }
    for (const auto& [other, its_path] : before) {
      if (std::filesystem::weakly_canonical(path, ignored) ==
              std::filesystem::weakly_canonical(its_path, ignored) ||
          std::filesystem::equivalent(path, its_path, ignored)) {
        return Invalid(option + ": want a file of its own, got that of " + other + " (" + path +
                       ")");
      }
    }
    before.emplace_back(option, path);
  }
  return {};
}

void AddJson(CLI::App& command, std::string& path) {
  command.add_option("--json", path, "Write the results as JSON; - is stdout")->type_name("FILE|-");
}

CLI::App& AddPolicyOptions(CLI::App& command, const std::string& option, PolicyFlags& flags) {
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
  return *group;
}

void AddTraceOptions(CLI::App& command, TraceSource& source, std::uint64_t& first_seed,
                     std::uint64_t& seeds) {
  source.data_folder = DefaultDataFolder();
  command
      .add_option("--traces", source.traces,
                  "Trace files, folders or names in the data folder; or `generated`")
      ->required()
      ->delimiter(',')
      ->type_name("TRACE,...");
  command.add_option("--data", source.data_folder, "Folder with the openb CSV files")
      ->capture_default_str()
      ->type_name("DIR");
  command
      .add_option("--nodes", source.nodes,
                  "Nodes, or a cluster with its pods (as for run); default: "
                  "openb_node_list_gpu_node.csv of the data folder")
      ->type_name("CSV|JSON");
  AddSeeds(command, "--first-seed", first_seed, seeds);
}

void AddStreamOptions(CLI::App& command, DepartureOptions& options, CLI::Option* load) {
  const std::map<std::string, Lifetimes> kLifetimes = {{"lognormal", Lifetimes::kLogNormal},
                                                       {"pareto", Lifetimes::kBoundedPareto},
                                                       {"by-owner", Lifetimes::kByOwner}};
  command
      .add_option(
          "--lifetimes", options.lifetimes,
          "Distribution of drawn lifetimes: lognormal (sigma 1), pareto (alpha 1.2, bounded), or "
          "by-owner (lognormal, most of it between 40 owners of tasks)")
      ->transform(CLI::CheckedTransformer(kLifetimes))
      ->type_name("lognormal|pareto|by-owner")
      ->needs(load);
  command
      .add_option("--mean-lifetime", options.mean_lifetime_s, "Mean of drawn lifetimes, in seconds")
      ->check(Between(1.0, 1e7))
      ->capture_default_str()
      ->needs(load);
  command.add_option("--hours", options.hours, "Length of the drawn stream, in virtual time")
      ->check(Between(0.01, 1e4))
      ->capture_default_str()
      ->needs(load);
}

void AddDepartureOptions(CLI::App& command, DepartureOptions& options) {
  CLI::Option* const on = command.add_flag(
      "--with-departures", options.on,
      "Pods arrive, end and wait in a queue, at the trace's times or at drawn ones (--load)");
  CLI::Option* const load =
      command
          .add_option("--load", options.load,
                      "Draw Poisson arrivals and lifetimes; the value is mean GPU demand over "
                      "capacity")
          ->check(Between(0.01, 10.0))
          ->needs(on);
  AddStreamOptions(command, options, load);
}

}  // namespace berth::replay
