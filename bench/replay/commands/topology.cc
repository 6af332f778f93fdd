// SPDX-License-Identifier: Apache-2.0
//
// berth-replay topology: policies side by side on one machine's links, or one choice of one policy.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "bench/machine_files/machine_file.h"
#include "bench/machine_files/show_topology.h"
#include "bench/replay/commands/command.h"
#include "bench/replay/commands/options.h"
#include "bench/replay/report.h"
#include "bench/rules/choice_policy.h"
#include "bench/topology/topology_replay.h"
#include "server/wire/node/topology_json.h"
#include "topology/links/gpu_links.h"

namespace berth::replay {
namespace {

struct TopologyFlags {
  TopologyReplayOptions options;
  std::string matrix, mix = "1:40,2:25,3:10,4:18,8:7", json;
  std::vector<std::string> policies = {"first-fit", "nvidia-best-effort", "hami-topology", "berth"};
  int nvlink_gigabytes = 25, pcie_generation = 0;
};

struct ChooseFlags {
  std::string file;  // "-": standard input
  bool json = false;
  std::string policy = "berth", free, required;  // GPUs as "0,3,5"; "" is none
  int size = 0;
};

std::string NameOf(ChoicePolicy policy) {
  for (const ChoicePolicyName& row : ChoicePolicies()) {
    if (row.policy == policy) return std::string(row.name);
  }
  return "";
}

std::string PolicyNames() { return Join(ChoicePolicies(), ", ", &ChoicePolicyName::name); }

nlohmann::ordered_json JsonOf(const TopologyFlags& flags, const MadeWith& made_with,
                              const std::vector<TopologyScore>& scores) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const TopologyScore& score : scores) {
    rows.push_back({{"policy", NameOf(score.policy)},
                    {"mean_ring_ratio", score.mean_ring_ratio},
                    {"share_below_half", score.share_below_half},
                    {"numa_span_ratio", score.numa_span_ratio},
                    {"decision_us", score.decision_us}});
  }
  return {{"made_with", MadeWithJson(made_with)},
          {"first_seed", flags.options.first_seed},
          {"seeds", flags.options.seeds},
          {"results", rows}};
}

std::string ScoresText(const std::vector<TopologyScore>& scores) {
  char line[120];
  std::snprintf(line, sizeof line, "%-26s %10s %10s %10s %12s\n", "policy", "ring", "below 1/2",
                "NUMA span", "us/decision");
  std::string text = line;
  for (const TopologyScore& score : scores) {
    std::snprintf(line, sizeof line, "%-26s %10.4f %10.4f %10.4f %12.3f\n",
                  NameOf(score.policy).c_str(), score.mean_ring_ratio, score.share_below_half,
                  score.numa_span_ratio, score.decision_us);
    text += line;
  }
  return text;
}

Status Replay(TopologyFlags flags, const MadeWith& made_with) {
  BERTH_TRY(const LinkMatrix matrix, ReadTopologyFile(flags.matrix));
  auto mix = ParseSizeMix(flags.mix);
  if (!mix) return tl::unexpected(std::move(mix).error().Within("--mix"));
  flags.options.mix = *std::move(mix);
  for (const std::string& name : flags.policies) {
    auto policy = ParseChoicePolicy(name);
    if (!policy) return tl::unexpected(std::move(policy).error().Within("--policies"));
    flags.options.policies.push_back(*policy);
  }
  LinkSpeeds speeds =
      flags.pcie_generation > 0 ? SpeedsOfPcie(flags.pcie_generation) : SpeedsFor(matrix);
  speeds.nvlink = flags.nvlink_gigabytes * 1000;
  BERTH_TRY(const std::vector<TopologyScore> scores,
            ReplayTopology(matrix, WiringOf(matrix, speeds), flags.options));
  return WriteTableAndJson(ScoresText(scores), flags.json, JsonOf(flags, made_with, scores));
}

Result<GpuMask> ParseGpus(const char* flag, std::string_view text, int gpus) {
  GpuMask set = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const auto gpu = ParseInt(text.substr(0, end), 0, gpus - 1);
    if (!gpu) return tl::unexpected(Error(gpu.error()).Within(flag));
    const GpuMask bit = GpuBit(static_cast<int>(*gpu));
    if ((set & bit) != 0) {
      return Invalid(std::string(flag) + ": want each GPU once, got " + std::to_string(*gpu) +
                     " twice");
    }
    set |= bit;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return set;
}

// 1000 thousandths -> "1", 870 -> "0.87".
std::string Decimal(int thousandths) {
  if (thousandths >= kPerfect) return "1";
  std::string text = std::to_string(thousandths);
  text.insert(0, "0." + std::string(3 - text.size(), '0'));
  return thousandths == 0 ? "0" : text.substr(0, text.find_last_not_of('0') + 1);
}

Result<std::string> Chosen(const ChooseFlags& flags) {
  BERTH_TRY(const LinkMatrix matrix, ReadTopologyFile(flags.file));
  auto policy = ParseChoicePolicy(flags.policy);
  if (!policy) return tl::unexpected(std::move(policy).error().Within("--policy"));
  ChoiceRequest request;
  request.size = flags.size;
  BERTH_TRY(request.free, ParseGpus("--free", flags.free, matrix.gpu_count()));
  BERTH_TRY(request.required, ParseGpus("--required", flags.required, matrix.gpu_count()));
  WiringTables tables;
  const WiringSets sets = tables.SetsOf(WiringOf(matrix));
  const Choice choice = ChooseGpus(matrix, sets, *policy, request);
  if (choice.gpus == 0) {
    if (!flags.json) return "none: " + choice.reason + "\n";
    const nlohmann::ordered_json json = {{"gpus", nlohmann::json::array()},
                                         {"reason", choice.reason}};
    return json.dump() + "\n";
  }
  std::vector<std::string> gpus;
  for (GpuMask set = choice.gpus; set != 0; set &= set - 1) {
    gpus.push_back(std::to_string(std::countr_zero(set)));
  }
  const std::string quality = Decimal(sets.quality(choice.gpus));
  if (!flags.json) return Join(gpus, " ") + "  quality " + quality + "\n";
  return "{\"gpus\":[" + Join(gpus, ",") + "],\"quality\":" + quality + "}\n";
}

CLI::App* AddChoose(CLI::App& topology, ChooseFlags& flags) {
  CLI::App* const choose =
      topology.add_subcommand("choose", "Print the GPUs that one policy takes");
  choose->add_option("FILE", flags.file, "Topology file, as for `berth-replay topology show`")
      ->required();
  choose->add_option("--policy", flags.policy, "Policy: " + PolicyNames())->capture_default_str();
  choose->add_option("--free", flags.free, "Free GPUs, such as 0,3,5")->required();
  choose->add_option("--required", flags.required, "GPUs that must be among the chosen");
  choose->add_option("--size", flags.size, "Number of GPUs")->required();
  choose->add_flag("--json", flags.json, "Print JSON");
  return choose;
}

CLI::App* AddOfFile(CLI::App& topology, const char* name, const char* what, ShownTopology& flags) {
  CLI::App* const command = topology.add_subcommand(name, what);
  command
      ->add_option("FILE", flags.file,
                   "Output of `nvidia-smi topo -m`, NCCL topology XML or JSON; - is standard input")
      ->required();
  return command;
}

}  // namespace

Command AddTopology(CLI::App& app) {
  const auto flags = std::make_shared<TopologyFlags>();
  const auto choice = std::make_shared<ChooseFlags>();
  TopologyReplayOptions& options = flags->options;
  CLI::App* const topology = app.add_subcommand(
      "topology", "Compare the GPUs that policies choose for jobs on one machine");
  const CLI::App* const choose = AddChoose(*topology, *choice);
  const auto shown = std::make_shared<ShownTopology>();
  CLI::App* const show =
      AddOfFile(*topology, "show",
                "Print the matrix, islands, NUMA groups, best sets per size and Graphviz", *shown);
  show->add_flag("--json", shown->json, "Print the matrix as JSON");
  const CLI::App* const annotate =
      AddOfFile(*topology, "annotate", "Print the node annotation berth.dev/topology", *shown);
  topology->require_subcommand(0, 0);  // it compares policies without one
  topology
      ->add_option(
          "--matrix", flags->matrix,
          "Topology file, as for `berth-replay topology show`; required but for commands below")
      ->type_name("FILE");
  topology->add_option("--mix", flags->mix, "Sizes of the jobs and their frequencies")
      ->capture_default_str()
      ->type_name("SIZE:SHARE,...");
  AddNames(*topology, "--policies", flags->policies, "Policies (" + PolicyNames() + ")");
  AddRange(*topology, "--load", options.load, 0.01, 10.0,
           "Offered fraction of the machine's GPU time");
  AddRange(*topology, "--jobs", options.jobs, 1, 10'000'000, "Jobs per seed");
  AddSeeds(*topology, "--first-seed", options.first_seed, options.seeds);
  AddRange(*topology, "--nvlink-gbps", flags->nvlink_gigabytes, 1, 1000,
           "Bandwidth of one NVLink in one direction, in GB/s; 50 for Blackwell");
  topology
      ->add_option("--pcie-generation", flags->pcie_generation,
                   "PCIe generation: 3, 4 or 5; default: inferred from the NVLinks")
      ->check(Between(3, 5));
  AddJson(*topology, flags->json);
  topology->callback([flags, topology] {
    if (topology->get_subcommands().empty() && flags->matrix.empty())
      throw CLI::RequiredError("--matrix");
  });
  return [=](const MadeWith& made_with) -> Status {
    if (topology->get_subcommands().empty()) return Replay(*flags, made_with);
    BERTH_TRY(const std::string text, choose->parsed()     ? Chosen(*choice)
                                      : annotate->parsed() ? AnnotateTopology(*shown)
                                                           : ShowTopology(*shown));
    return WriteOutput("-", text);
  };
}

}  // namespace berth::replay
