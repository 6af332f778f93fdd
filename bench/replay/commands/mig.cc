// SPDX-License-Identifier: Apache-2.0
//
// berth-replay mig: policies side by side on a fleet of GPUs that are partitioned as pods arrive.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text.h"
#include "bench/mig/mig_replay.h"
#include "bench/replay/commands/command.h"
#include "bench/replay/commands/options.h"
#include "bench/replay/progress.h"
#include "bench/replay/report.h"
#include "topology/mig/mig_product.h"

namespace berth::replay {
namespace {

struct MigFlags {
  MigReplayOptions options;
  std::string product = "A100-40GB", mix = "uniform", lifetimes = "exponential", choose = "device",
              json;
  std::vector<std::string> policies = {"src-drain", "first-fit", "best-fit", "load-balancing",
                                       "hami",      "dra",       "mfi",      "berth"};
};

using MigJson = nlohmann::ordered_json;

MigJson EstimateJson(const std::vector<double>& values) {
  const MigEstimate estimate = EstimateOf(values);
  return {{"mean", Thousandths(estimate.mean)}, {"half_width", Thousandths(estimate.half_width)}};
}

MigJson ScoresJson(const MigFlags& flags, const MadeWith& made_with,
                   const std::vector<MigScore>& scores) {
  MigJson rows = MigJson::array();
  for (const MigScore& score : scores) {
    MigJson rejected = MigJson::object();
    for (const auto& [row, share] : flags.options.mix) {
      const auto r = static_cast<std::size_t>(row);
      rejected[MigProfileName(flags.options.product->rows()[r].profile)] =
          Thousandths(score.rejected_pct[r]);
    }
    const LatencySummary& us = score.decision_us;
    rows.push_back(
        {{"policy", MigPolicyNameOf(score.policy)},
         {"mix", flags.mix},
         {"load", flags.options.load},
         {"accepted_memory_pct", EstimateJson(score.memory_pct)},
         {"accepted_pods_pct", EstimateJson(score.pods_pct)},
         {"rejected_by_profile", rejected},
         {"decision_us", {{"mean", us.mean}, {"p50", us.p50}, {"p99", us.p99}, {"max", us.max}}}});
  }
  return {{"made_with", MadeWithJson(made_with)},
          {"first_seed", flags.options.first_seed},
          {"seeds", flags.options.seeds},
          {"results", rows}};
}

// Of accepted memory, with the paired difference to the first policy.
std::string ScoresText(const std::vector<MigScore>& scores) {
  char line[160];
  std::snprintf(line, sizeof line, "%-16s %16s %16s %16s %12s\n", "policy", "memory %", "- first",
                "pods %", "us/decision");
  std::string text = line;
  for (const MigScore& score : scores) {
    const MigEstimate memory = EstimateOf(score.memory_pct), pods = EstimateOf(score.pods_pct);
    std::vector<double> differences;
    for (std::size_t i = 0; i < score.memory_pct.size(); ++i) {
      differences.push_back(score.memory_pct[i] - scores[0].memory_pct[i]);
    }
    const MigEstimate paired = EstimateOf(differences);
    std::snprintf(line, sizeof line, "%-16s %8.2f +- %4.2f %+8.2f +- %4.2f %8.2f +- %4.2f %12.3f\n",
                  std::string(MigPolicyNameOf(score.policy)).c_str(), memory.mean,
                  memory.half_width, paired.mean, paired.half_width, pods.mean, pods.half_width,
                  score.decision_us.mean);
    text += line;
  }
  return text;
}

Status Within(std::string_view place, Error error) {
  return tl::unexpected(std::move(error).Within(place));
}

Status Replay(MigFlags flags, const MadeWith& made_with) {
  MigReplayOptions& options = flags.options;
  options.product = FindMigProduct(flags.product);
  if (options.product == nullptr) options.product = MigProductOfLabel(flags.product);
  if (options.product == nullptr) {
    std::string known;
    for (const MigProduct& product : MigCatalogue()) known += product.name() + ", ";
    return Invalid("--product: want " + known + "or a product label, got \"" + flags.product +
                   "\"");
  }
  auto mix = ReadMigMix(*options.product, flags.mix);
  if (!mix) return Within("--mix", std::move(mix).error());
  options.mix = *std::move(mix);
  const auto lifetimes = ParseMigLifetimes(flags.lifetimes);
  if (!lifetimes) return Within("--lifetimes", lifetimes.error());
  options.lifetimes = *lifetimes;
  options.pick = flags.choose == "node-only" ? MigPick::kNodeFirstFit : MigPick::kPolicy;
  for (const std::string& name : flags.policies) {
    const auto policy = ParseMigPolicy(name);
    if (!policy) return Within("--policies", policy.error());
    options.policies.push_back(*policy);
  }
  BERTH_TRY(const std::vector<MigScore> scores,
            ReplayMig(options, TerminalProgress("mig " + flags.mix)));
  return WriteTableAndJson(ScoresText(scores), flags.json, ScoresJson(flags, made_with, scores));
}

void AddWorkload(CLI::App& mig, MigFlags& flags) {
  MigReplayOptions& options = flags.options;
  mig.add_option("--product", flags.product, "GPU product of the catalogue, or its node label")
      ->capture_default_str();
  AddRange(mig, "--gpus", options.gpus, 1, 1'000'000, "Number of GPUs of the fleet");
  AddRange(mig, "--gpus-per-node", options.gpus_per_node, 1, 64, "Number of GPUs of a node");
  mig.add_option("--mix", flags.mix, "Requested profiles and their frequencies")
      ->type_name("uniform|skew-small|skew-big|bimodal|FILE")
      ->capture_default_str();
  AddRange(mig, "--load", options.load, 0.01, 10.0,
           "Mean requested memory over the fleet's memory");
  mig.add_option("--lifetimes", flags.lifetimes, "Distribution of the pods' lifetimes")
      ->type_name("exponential|heavy-tailed")
      ->capture_default_str();
  AddRange(mig, "--arrivals", options.arrivals, 3, 100'000'000,
           "Pods per seed; the first third is not measured");
  AddSeeds(mig, "--first-seed", options.first_seed, options.seeds);
}

}  // namespace

Command AddMig(CLI::App& app) {
  const auto flags = std::make_shared<MigFlags>();
  CLI::App* const mig =
      app.add_subcommand("mig", "Compare how many MIG pods each policy accepts on a fleet");
  AddWorkload(*mig, *flags);
  AddNames(*mig, "--policies", flags->policies,
           "Of " + Join(MigPolicies(), ", ", &MigPolicyName::name));
  mig->add_option("--choose", flags->choose,
                  "What a policy chooses. device: GPU and start; node-only: the node (its "
                  "allocator takes the first fit)")
      ->check(CLI::IsMember({"device", "node-only"}))
      ->capture_default_str();
  AddJson(*mig, flags->json);
  return [flags](const MadeWith& made_with) { return Replay(*flags, made_with); };
}

}  // namespace berth::replay
