// SPDX-License-Identifier: Apache-2.0
//
// berth-lab tune: searches the setting of a policy and writes it as a configuration.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/lab/commands/lab_commands.h"
#include "bench/lab/tune/tuning.h"
#include "bench/replay/commands/options.h"
#include "bench/replay/engine_session.h"
#include "bench/replay/missing_models.h"
#include "bench/replay/model_settings.h"
#include "bench/replay/parallel.h"
#include "bench/replay/progress.h"
#include "bench/replay/report.h"

namespace berth::replay {
namespace {

struct TuneFlags {
  TraceSource source;
  TuningOptions options;
  std::vector<std::string> scorers;
  std::string config, out, json;
};

constexpr const char* kTunedName = "tuned";

// The scorers with equal weights; devices are picked as the first one's own profile does.
Result<ProfileSpec> ProfileOf(const std::vector<std::string>& scorers) {
  ProfileSpec profile{kTunedName, {}, DeviceRule::kBestScore, TieRule::kEqual};
  if (const auto own = ProfileNamed(scorers.front())) profile.devices = own->devices;
  for (const std::string& scorer : scorers) profile.scorers.push_back({scorer, kFirstWeight});
  if (auto built = BuildProfile(profile, {}); !built) {
    return tl::unexpected(std::move(built).error().Within("scorers"));
  }
  return profile;
}

Result<TunedPolicy> StartOf(const TuneFlags& flags, const ReplayConfig& from) {
  if (!flags.scorers.empty()) {
    BERTH_TRY(ProfileSpec profile, ProfileOf(flags.scorers));
    return TunedPolicy{std::move(profile)};
  }
  TunedPolicy start{ChosenProfile(from.config)};
  start.profile.name = kTunedName;
  start.waste = from.model.waste;
  if (!start.profile.scorers.empty()) {
    // Only ratios matter: scale them so that the first weight is the one that stays.
    const double scale = static_cast<double>(kFirstWeight) / start.profile.scorers[0].weight;
    for (ScorerSpec& scorer : start.profile.scorers) {
      const double weight = std::clamp(scorer.weight * scale, 1.0, double{kMaxScorerWeight});
      scorer.weight = static_cast<int>(weight + 0.5);
    }
  }
  return start;
}

// The configuration with the found profile as the only user-defined one of that name.
std::string ConfigText(ReplayConfig from, const TuningResult& result) {
  Config& config = from.config;
  std::erase_if(config.profiles, [](const ProfileSpec& spec) { return spec.name == kTunedName; });
  config.profiles.push_back(result.best.profile);
  config.profile = kTunedName;
  from.model.waste = result.best.waste;
  char head[256];
  std::snprintf(head, sizeof head,
                "# Found by `berth-lab tune` in %zu evaluations. %s on held-out seeds: %.3f\n"
                "# (before: %.3f; fragmentation-gradient: %.3f).\n",
                result.evaluations, result.value.c_str(), result.holdout.best, result.holdout.start,
                result.holdout_baseline);
  std::string text = head + PrintReplayConfig(from);
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

Status RunTune(TuneFlags& flags, const MadeWith& made_with) {
  if (flags.scorers.empty() == flags.config.empty()) {
    return Invalid("want --scorers or --config, got both or neither");
  }
  ReplayConfig config;
  if (!flags.config.empty()) {
    BERTH_TRY(config, LoadReplayConfigFile(flags.config));
  }
  BERTH_TRY(const TunedPolicy start, StartOf(flags, config));
  flags.source.times = flags.options.departures.times();
  BERTH_TRY(const std::vector<Trace> traces, ReadTraces(flags.source));
  for (const Trace& trace : traces) WarnOfMissingModels(trace.workload);
  BERTH_TRY(const TuningResult result,
            Tune(start, traces, flags.options, TerminalProgress("tune")));
  BERTH_TRY_STATUS(WriteOutput(flags.out, ConfigText(std::move(config), result)));
  if (!flags.json.empty()) {
    nlohmann::ordered_json json = {{"made_with", MadeWithJson(made_with)},
                                   {"first_seed", flags.options.first_seed},
                                   {"seeds", flags.options.seeds},
                                   {"first_holdout_seed", flags.options.first_holdout_seed},
                                   {"holdout_seeds", flags.options.holdout_seeds}};
    json.update(TuningJson(result, start));
    return WriteOutput(flags.json, json.dump() + "\n");
  }
  if (flags.out == "-") return {};  // the configuration alone
  return WriteOutput("-", TuningText(result, start));
}

}  // namespace

Command AddTune(CLI::App& app) {
  const auto flags = std::make_shared<TuneFlags>();
  TuningOptions& options = flags->options;
  options.threads = AllCores();
  CLI::App* const tune = app.add_subcommand(
      "tune",
      "Search a policy's weights and parameters, and write a configuration for `berth serve`");
  AddTraceOptions(*tune, flags->source, options.first_seed, options.seeds);
  tune->add_option("--scorers", flags->scorers,
                   "Scorers whose weights are searched, separated by commas")
      ->delimiter(',')
      ->type_name("NAME,...");
  tune->add_option("--config", flags->config, "Or: start from this configuration's profile")
      ->type_name("FILE");
  tune->add_option("--budget", options.budget, "Number of replays; at least two per trace and seed")
      ->required()
      ->check(Between(1, 1'000'000));
  AddSeed(*tune, "--first-holdout-seed", options.first_holdout_seed, "The first held-out seed");
  tune->add_option("--holdout-seeds", options.holdout_seeds, "Number of held-out seeds")
      ->check(Between(1, 10'000))
      ->capture_default_str();
  tune->add_option("--inflate", options.inflate,
                   "GPU demand to reach, as a multiple of the capacity")
      ->check(Between(0.01, 100.0))
      ->capture_default_str();
  AddDepartureOptions(*tune, options.departures);
  tune->add_option("--threads", options.threads,
                   "Number of parallel replays; default: one per core")
      ->check(Between(1, 1024));
  tune->add_option("--out", flags->out, "Write the BerthConfiguration to this file; - is stdout")
      ->required()
      ->type_name("FILE|-");
  tune->add_option("--json", flags->json,
                   "Write the result as JSON to this file instead of text; - is stdout")
      ->type_name("FILE|-");
  return [flags](const MadeWith& made_with) { return RunTune(*flags, made_with); };
}

}  // namespace berth::replay
