// SPDX-License-Identifier: Apache-2.0
//
// berth-replay mig: policies side by side on a fleet of GPUs that are partitioned as pods arrive.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text.h"
#include "bench/mig/mig_replay.h"
#include "bench/replay/commands/command.h"
#include "bench/replay/progress.h"
#include "bench/replay/report.h"
#include "topology/mig/mig_catalog.h"

namespace berth::replay {
namespace {

struct MigFlags {
  MigReplayOptions options;
  std::string product = "A100-40GB", mix = "uniform", lifetimes = "exponential", choose = "device",
              json;
  std::vector<std::string> policies = {"src-drain", "first-fit", "best-fit", "load-balancing",
                                       "hami",      "dra",       "mfi",      "berth"};
};

using Json = nlohmann::ordered_json;

double Thousandths(double value) { return std::round(value * 1000) / 1000; }

Json EstimateJson(const std::vector<double>& values) {
  const MigEstimate estimate = EstimateOf(values);
  return {{"mean", Thousandths(estimate.mean)}, {"half_width", Thousandths(estimate.half_width)}};
}

std::string ScoresJson(const MigFlags& flags, const MadeWith& made_with,
                       const std::vector<MigScore>& scores) {
  Json rows = Json::array();
  for (const MigScore& score : scores) {
    Json rejected = Json::object();
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
  const Json json = {{"made_with", MadeWithJson(made_with)},
                     {"first_seed", flags.options.first_seed},
                     {"seeds", flags.options.seeds},
                     {"results", rows}};
  return json.dump() + "\n";
}

// Of accepted memory, with the paired difference to the first policy.
void Print(const std::vector<MigScore>& scores) {
  std::printf("%-16s %16s %16s %16s %12s\n", "policy", "memory %", "- first", "pods %",
              "us/decision");
  for (const MigScore& score : scores) {
    const MigEstimate memory = EstimateOf(score.memory_pct), pods = EstimateOf(score.pods_pct);
    std::vector<double> differences;
    for (std::size_t i = 0; i < score.memory_pct.size(); ++i) {
      differences.push_back(score.memory_pct[i] - scores[0].memory_pct[i]);
    }
    const MigEstimate paired = EstimateOf(differences);
    std::printf("%-16s %8.2f +- %4.2f %+8.2f +- %4.2f %8.2f +- %4.2f %12.3f\n",
                std::string(MigPolicyNameOf(score.policy)).c_str(), memory.mean, memory.half_width,
                paired.mean, paired.half_width, pods.mean, pods.half_width, score.decision_us.mean);
  }
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
  if (flags.json != "-") Print(scores);
  return flags.json.empty() ? Status()
                            : WriteOutput(flags.json, ScoresJson(flags, made_with, scores));
}

void AddWorkload(CLI::App& mig, MigFlags& flags) {
  MigReplayOptions& options = flags.options;
  mig.add_option("--product", flags.product, "GPU product of the catalogue, or its node label")
      ->capture_default_str();
  mig.add_option("--gpus", options.gpus, "Number of GPUs of the fleet")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  mig.add_option("--gpus-per-node", options.gpus_per_node, "Number of GPUs of a node")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  mig.add_option("--mix", flags.mix, "Requested profiles and their frequencies")
      ->type_name("uniform|skew-small|skew-big|bimodal|FILE")
      ->capture_default_str();
  mig.add_option("--load", options.load, "Mean requested memory over the fleet's memory")
      ->check(CLI::Range(0.01, 10.0))
      ->capture_default_str();
  mig.add_option("--lifetimes", flags.lifetimes, "Distribution of the pods' lifetimes")
      ->type_name("exponential|heavy-tailed")
      ->capture_default_str();
  mig.add_option("--arrivals", options.arrivals, "Pods per seed; the first third is not measured")
      ->check(CLI::Range(3, 100'000'000))
      ->capture_default_str();
  mig.add_option("--first-seed", options.first_seed, "The first seed")->capture_default_str();
  mig.add_option("--seeds", options.seeds, "Number of seeds")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
}

}  // namespace

Command AddMig(CLI::App& app) {
  const auto flags = std::make_shared<MigFlags>();
  CLI::App* const mig =
      app.add_subcommand("mig", "Compare how many MIG pods each policy accepts on a fleet");
  AddWorkload(*mig, *flags);
  mig->add_option("--policies", flags->policies,
                  "Of " + Join(MigPolicies(), ", ", &MigPolicyName::name))
      ->delimiter(',')
      ->capture_default_str();
  mig->add_option("--choose", flags->choose,
                  "What a policy chooses. device: GPU and start; node-only: the node (its "
                  "allocator takes the first fit)")
      ->check(CLI::IsMember({"device", "node-only"}))
      ->capture_default_str();
  mig->add_option("--json", flags->json, "Write the scores as JSON; - is stdout")
      ->type_name("FILE|-");
  return [flags](const MadeWith& made_with) { return Replay(*flags, made_with); };
}

}  // namespace berth::replay
