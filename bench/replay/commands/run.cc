// SPDX-License-Identifier: Apache-2.0
//
// berth-replay run: one trace and seed, one policy; with departures several side by side.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/replay/commands/command.h"
#include "bench/replay/commands/options.h"
#include "bench/replay/end_page.h"
#include "bench/replay/engine_session.h"
#include "bench/replay/missing_models.h"
#include "bench/replay/progress.h"
#include "bench/replay/report.h"
#include "bench/replay/server_process.h"
#include "bench/replay/session.h"
#include "bench/replay/time/service_report.h"

namespace berth::replay {
namespace {

struct RunFlags {
  std::string nodes, tasks, order, json, pods, page;
  PolicyFlags policies;
  double inflate = 1.3;
  std::uint64_t seed = 42;
  std::string through = "engine";
  UrlOptions extender;
  std::optional<std::size_t> nodes_to_score;
  DepartureOptions departures;
};

struct Input {
  std::vector<ReplayPolicy> policies;
  Workload workload;
  Arrivals arrivals;
};

Through ThroughOf(const RunFlags& flags) {
  if (flags.through == "engine") return Through::kEngine;
  return flags.through == "http" ? Through::kHttp : Through::kUrl;
}

// An extender stands in the place of the policy.
Result<std::vector<ReplayPolicy>> ReadPolicies(const RunFlags& flags) {
  if (ThroughOf(flags) != Through::kUrl) return flags.policies.Read();
  if (!flags.policies.names.empty() || !flags.policies.files.empty()) {
    return Invalid("policy: want none with --through URL, which decides");
  }
  ReplayPolicy extender;
  extender.name = flags.through;
  return std::vector<ReplayPolicy>{extender};
}

Result<Input> Read(const RunFlags& flags) {
  Input input;
  BERTH_TRY(input.policies, ReadPolicies(flags));
  BERTH_TRY(input.workload, ReadWorkload(flags.nodes, flags.tasks, flags.departures.times()));
  const Workload& workload = input.workload;
  if (flags.order.empty()) {
    input.arrivals = DrawArrivals(workload.nodes, workload.tasks, flags.seed, flags.inflate);
  } else {
    BERTH_TRY(input.arrivals,
              ReadArrivals(flags.order, flags.seed, workload.nodes.size(), workload.tasks.size()));
  }
  return input;
}

// What every result begins with.
nlohmann::ordered_json HeadOf(const Input& input, const MadeWith& made_with) {
  return {{"made_with", MadeWithJson(made_with)},
          {"configurations", ConfigurationsJson(input.policies)},
          {"pods_at_start", input.workload.start == nullptr ? 0 : input.workload.start->pods()},
          {"missing_models", MissingModelsJson(input.workload)}};
}

std::string TitleOf(const RunFlags& flags, const Input& input, const ReplayPolicy& policy) {
  return "end of " + input.workload.name + " with " + policy.name + ", seed " +
         std::to_string(flags.seed);
}

Status RunArrivals(const RunFlags& flags, const Input& input, const MadeWith& made_with) {
  const ReplayPolicy& policy = input.policies.front();
  if (input.policies.size() > 1) {
    return Invalid("policy: want one without --with-departures, got " +
                   std::to_string(input.policies.size()) + " (compare takes several)");
  }
  if (!flags.page.empty() && flags.through == "http") {
    return Invalid("page: want --through engine, got http");
  }
  PodStarts starts;
  std::shared_ptr<const Snapshot> end;
  const bool wants_starts = !flags.pods.empty() || !flags.page.empty();
  SessionOptions options{policy,
                         flags.seed,
                         ThroughOf(flags),
                         BerthBinaryBeside(),
                         flags.nodes_to_score,
                         wants_starts ? &starts : nullptr,
                         &end};
  options.extender = flags.extender;
  options.extender.url = flags.through;
  BERTH_TRY(const SessionResult session,
            RunSession(input.workload, input.arrivals, options, TerminalProgress(policy.name)));
  if (!flags.pods.empty()) {
    const std::string rows = PodRows(policy.name, input.workload.tasks, input.arrivals, starts);
    BERTH_TRY_STATUS(WriteOutput(flags.pods, PodTableHead() + rows));
  }
  if (!flags.page.empty()) {
    BERTH_TRY_STATUS(
        WriteOutput(flags.page, EndPage(TitleOf(flags, input, policy), made_with.version, *end,
                                        PodsLeft(input.workload.tasks, input.arrivals, starts))));
  }
  const RunLabels labels{input.workload.name, policy.name, flags.seed, input.workload.nodes.size()};
  if (flags.json.empty()) return WriteOutput("-", ResultText(labels, session.replay));
  nlohmann::ordered_json json = HeadOf(input, made_with);
  json.update(ResultJson(labels, session.replay));
  return WriteOutput(flags.json, json.dump() + "\n");
}

Status RunWithDepartures(const RunFlags& flags, const Input& input, const MadeWith& made_with) {
  if (flags.through != "engine") {
    return Invalid("through: want engine with --with-departures, got " + flags.through);
  }
  BERTH_TRY(const Stream stream, flags.departures.StreamFor(input.workload, flags.seed));
  if (!flags.page.empty() && input.policies.size() > 1) {
    return Invalid("page: want one policy, got " + std::to_string(input.policies.size()));
  }
  std::vector<PolicyResult> results;
  std::string pods = PodTableHead();
  const bool wants_starts = !flags.pods.empty() || !flags.page.empty();
  for (const ReplayPolicy& policy : input.policies) {
    PodStarts starts;
    std::shared_ptr<const Snapshot> end;
    BERTH_TRY(SimulationResult result,
              RunTimedSession(input.workload, input.arrivals, stream, policy, flags.seed,
                              TerminalProgress(policy.name), flags.nodes_to_score.value_or(0),
                              wants_starts ? &starts : nullptr, &end));
    if (!flags.page.empty()) {
      BERTH_TRY_STATUS(
          WriteOutput(flags.page, EndPage(TitleOf(flags, input, policy), made_with.version, *end,
                                          PodsLeft(input.workload.tasks, stream, starts))));
    }
    results.push_back({policy.name, std::move(result)});
    pods += PodRows(policy.name, input.workload.tasks, stream, starts);
  }
  if (!flags.pods.empty()) BERTH_TRY_STATUS(WriteOutput(flags.pods, pods));
  if (flags.json.empty()) {
    const std::string title = input.workload.name + ", seed " + std::to_string(flags.seed);
    return WriteOutput("-", SideBySide(title, results));
  }
  nlohmann::ordered_json json = HeadOf(input, made_with);
  json["trace"] = input.workload.name;
  json["seed"] = flags.seed;
  json["nodes"] = input.workload.nodes.size();
  json["policies"] = nlohmann::ordered_json::array();
  for (const auto& [policy, result] : results) {
    nlohmann::ordered_json entry = {{"policy", policy}};
    entry.update(SimulationJson(result));
    json["policies"].push_back(std::move(entry));
  }
  return WriteOutput(flags.json, json.dump() + "\n");
}

std::string CheckThrough(const std::string& value) {
  if (value == "engine" || value == "http") return "";
  const auto url = conform::ParseExtenderUrl(value);
  return url ? "" : "want engine, http or a URL: " + url.error().message;
}

void AddOptions(CLI::App& run, RunFlags& flags) {
  run.add_option("--nodes", flags.nodes,
                 "Nodes: sn,cpu_milli,memory_mib,gpu,model; or a cluster with its pods (a "
                 "/debug/snapshot, or the JSON of `kubectl get nodes,pods -A -o json`)")
      ->required()
      ->type_name("CSV|JSON");
  run.add_option("--tasks", flags.tasks,
                 "Tasks: name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec...]; may be gzipped")
      ->required()
      ->type_name("CSV");
  CLI::App& decides = AddPolicyOptions(run, "--policy", flags.policies);
  run.add_option("--order", flags.order,
                 "File of arrival orders by seed; may be gzipped; default: drawn by seed")
      ->type_name("FILE");
  AddSeed(run, "--seed", flags.seed, "Seed of the arrival order, the stream and all random draws");
  run.add_option("--inflate", flags.inflate, "GPU demand to reach, as a multiple of the capacity")
      ->check(Between(0.01, 100.0))
      ->capture_default_str();
  decides.require_option(1, 3);
  decides
      .add_option("--through", flags.through,
                  "Decide with the engine in this process, by a `berth serve` over HTTP, or by the "
                  "extender at that urlPrefix, without --policy")
      ->check(CLI::Validator(CheckThrough, ""))
      ->type_name("engine|http|URL")
      ->capture_default_str();
  run.add_flag("--node-bodies", flags.extender.node_bodies,
               "Send full nodes to the extender of --through URL (nodeCacheCapable: false)");
  AddNames(run, "--verbs", flags.extender.verbs, "What the extender of --through URL is asked");
  run.add_option("--nodes-to-score", flags.nodes_to_score,
                 "Nodes passed to scoring (nodesToScore); 0: all. Default: all (engine), the "
                 "server's default (http)")
      ->check(Between(0, 1'000'000))
      ->type_name("N");
  run.add_option("--json", flags.json, "Write the result as JSON; - is stdout")
      ->type_name("FILE|-");
  run.add_option("--pods", flags.pods, "Write a row per pod: node, times and result")
      ->type_name("CSV");
  run.add_option("--page", flags.page,
                 "Write the final state of the cluster as a page for the browser")
      ->type_name("FILE");
  AddDepartureOptions(run, flags.departures);
}

}  // namespace

Command AddRun(CLI::App& app) {
  CLI::App* const run = app.add_subcommand(
      "run", "Replay a trace with one policy: pods only arrive, or also end (--with-departures)");
  const auto flags = std::make_shared<RunFlags>();
  AddOptions(*run, *flags);
  return [flags](const MadeWith& made_with) -> Status {
    NamedFiles reads = {
        {"--nodes", flags->nodes}, {"--tasks", flags->tasks}, {"--order", flags->order}};
    for (const std::string& file : flags->policies.files) reads.emplace_back("--config", file);
    BERTH_TRY_STATUS(CheckFiles(
        reads, {{"--json", flags->json}, {"--pods", flags->pods}, {"--page", flags->page}}));
    BERTH_TRY(const Input input, Read(*flags));
    WarnOfMissingModels(input.workload);
    return flags->departures.on ? RunWithDepartures(*flags, input, made_with)
                                : RunArrivals(*flags, input, made_with);
  };
}

}  // namespace berth::replay
