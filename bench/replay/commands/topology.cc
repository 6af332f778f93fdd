// SPDX-License-Identifier: Apache-2.0
//
// berth-replay topology: policies side by side on one machine's links.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "bench/replay/commands/command.h"
#include "bench/replay/report.h"
#include "bench/topology/topology_replay.h"
#include "server/wire/node/topology_json.h"
#include "topology/links/choice_policy.h"

namespace berth::replay {
namespace {

struct TopologyFlags {
  TopologyReplayOptions options;
  std::string matrix, mix = "1:40,2:25,3:10,4:18,8:7", json;
  std::vector<std::string> policies = {"first-fit", "nvidia-best-effort", "hami-topology", "berth"};
  int nvlink_gigabytes = 25, pcie_generation = 0;
};

std::string NameOf(ChoicePolicy policy) {
  for (const ChoicePolicyName& row : ChoicePolicies()) {
    if (row.policy == policy) return std::string(row.name);
  }
  return "";
}

std::string JsonOf(const TopologyFlags& flags, const MadeWith& made_with,
                 const std::vector<TopologyScore>& scores) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const TopologyScore& score : scores) {
    rows.push_back({{"policy", NameOf(score.policy)},
                    {"mean_ring_ratio", score.mean_ring_ratio},
                    {"share_below_half", score.share_below_half},
                    {"numa_span_ratio", score.numa_span_ratio},
                    {"decision_us", score.decision_us}});
  }
  const nlohmann::ordered_json json = {{"made_with", MadeWithJson(made_with)},
                                       {"first_seed", flags.options.first_seed},
                                       {"seeds", flags.options.seeds},
                                       {"results", rows}};
  return json.dump() + "\n";
}

void Print(const std::vector<TopologyScore>& scores) {
  std::printf("%-26s %10s %10s %10s %12s\n", "policy", "ring", "below 1/2", "NUMA span",
              "us/decision");
  for (const TopologyScore& score : scores) {
    std::printf("%-26s %10.4f %10.4f %10.4f %12.3f\n", NameOf(score.policy).c_str(),
                score.mean_ring_ratio, score.share_below_half, score.numa_span_ratio,
                score.decision_us);
  }
}

Status Replay(TopologyFlags flags, const MadeWith& made_with) {
  BERTH_TRY(const std::string text, ReadFile(flags.matrix));
  const auto matrix = wire::ParseTopologyFile(text);
  if (!matrix) return tl::unexpected(Error(matrix.error()).Within(flags.matrix));
  auto mix = ParseSizeMix(flags.mix);
  if (!mix) return tl::unexpected(std::move(mix).error().Within("--mix"));
  flags.options.mix = *std::move(mix);
  for (const std::string& name : flags.policies) {
    auto policy = ParseChoicePolicy(name);
    if (!policy) return tl::unexpected(std::move(policy).error().Within("--policies"));
    flags.options.policies.push_back(*policy);
  }
  LinkSpeeds speeds =
      flags.pcie_generation > 0 ? SpeedsOfPcie(flags.pcie_generation) : SpeedsFor(*matrix);
  speeds.nvlink = flags.nvlink_gigabytes * 1000;
  BERTH_TRY(const std::vector<TopologyScore> scores,
            ReplayTopology(*matrix, WiringOf(*matrix, speeds), flags.options));
  if (flags.json != "-") Print(scores);
  return flags.json.empty() ? Status() : WriteOutput(flags.json, JsonOf(flags, made_with, scores));
}

}  // namespace

Command AddTopology(CLI::App& app) {
  const auto flags = std::make_shared<TopologyFlags>();
  TopologyReplayOptions& options = flags->options;
  CLI::App* const topology = app.add_subcommand(
      "topology", "Compare the GPUs that policies choose for jobs on one machine");
  topology->add_option("--matrix", flags->matrix, "Topology file, as for `berth topology show`")
      ->required()
      ->type_name("FILE");
  topology->add_option("--mix", flags->mix, "Sizes of the jobs and their frequencies")
      ->capture_default_str()
      ->type_name("SIZE:SHARE,...");
  topology->add_option("--policies", flags->policies, "Policies, as for `berth topology choose`")
      ->delimiter(',')
      ->capture_default_str();
  topology->add_option("--load", options.load, "Offered fraction of the machine's GPU time")
      ->check(CLI::Range(0.01, 10.0))
      ->capture_default_str();
  topology->add_option("--jobs", options.jobs, "Jobs per seed")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  topology->add_option("--first-seed", options.first_seed, "The first seed")->capture_default_str();
  topology->add_option("--seeds", options.seeds, "Number of seeds")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  topology
      ->add_option("--nvlink-gbps", flags->nvlink_gigabytes,
                   "Bandwidth of one NVLink in one direction, in GB/s; 50 for Blackwell")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  topology
      ->add_option("--pcie-generation", flags->pcie_generation,
                   "PCIe generation: 3, 4 or 5; default: inferred from the NVLinks")
      ->check(CLI::Range(3, 5));
  topology->add_option("--json", flags->json, "Write the scores as JSON; - is stdout")
      ->type_name("FILE|-");
  return [flags](const MadeWith& made_with) { return Replay(*flags, made_with); };
}

}  // namespace berth::replay
