// SPDX-License-Identifier: Apache-2.0
//
// berth-lab waves: see bench/lab/waves/waves.h.
#include "bench/lab/waves/waves.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/lab/commands/lab_commands.h"
#include "bench/replay/commands/options.h"
#include "bench/replay/engine_session.h"
#include "bench/replay/report.h"

namespace berth::replay {
namespace {

using Json = nlohmann::ordered_json;

struct WavesFlags {
  std::vector<std::string> policies = {"expected-waste", "best-fit", "fragmentation-gradient"};
  int seeds = 10;
  WavesOptions options;
  std::string json;
};

std::string Text(const std::vector<WavesTotal>& totals) {
  char line[160];
  std::snprintf(line, sizeof line, "%-42s %-24s %6s %9s %10s %10s %7s\n", "scenario", "policy",
                "waves", "unplaced", "whole GPUs", "could be", "lost %");
  std::string text = line;
  for (const WavesTotal& total : totals) {
    std::snprintf(line, sizeof line, "%-42s %-24s %6d %9d %10d %10d %7.2f\n",
                  total.scenario.c_str(), total.policy.c_str(), total.waves, total.unplaced,
                  total.whole_gpus, total.most_whole_gpus, total.lost_pct());
    text += line;
  }
  return text;
}

std::string JsonText(const WavesFlags& flags, const MadeWith& made_with,
                     const std::vector<WavesTotal>& totals) {
  Json rows = Json::array();
  for (const WavesTotal& total : totals) {
    rows.push_back({{"scenario", total.scenario},
                    {"policy", total.policy},
                    {"waves", total.waves},
                    {"unplaced", total.unplaced},
                    {"whole_gpus", total.whole_gpus},
                    {"most_whole_gpus", total.most_whole_gpus},
                    {"lost_pct", std::round(total.lost_pct() * 100) / 100}});
  }
  const Json json = {{"made_with", MadeWithJson(made_with)},
                     {"seed", flags.options.seed},
                     {"seeds", flags.seeds},
                     {"extender_weight", flags.options.extender_weight},
                     {"results", rows}};
  return json.dump() + "\n";
}

Status Run(const WavesFlags& flags, const MadeWith& made_with) {
  std::vector<ProfileSpec> policies;
  for (const std::string& name : flags.policies) {
    BERTH_TRY(ProfileSpec policy, ProfileNamed(name));
    policies.push_back(std::move(policy));
  }
  BERTH_TRY(const auto totals, RunAllWaves(policies, flags.seeds, flags.options));
  if (flags.json.empty()) return WriteOutput("-", Text(totals));
  return WriteOutput(flags.json, JsonText(flags, made_with, totals));
}

}  // namespace

Command AddWaves(CLI::App& app) {
  const auto flags = std::make_shared<WavesFlags>();
  CLI::App* const waves = app.add_subcommand(
      "waves",
      "Count whole nodes lost to waves of equal pods on small fleets, as kube-scheduler chooses");
  AddNames(*waves, "--policies", flags->policies, "Built-in profiles");
  AddSeeds(*waves, "--seed", flags->options.seed, flags->seeds);
  AddRange(*waves, "--weight", flags->options.extender_weight, 1, 1'000,
           "Weight of the extender in kube-scheduler's configuration");
  AddJson(*waves, flags->json);
  return [flags](const MadeWith& made_with) { return Run(*flags, made_with); };
}

}  // namespace berth::replay
