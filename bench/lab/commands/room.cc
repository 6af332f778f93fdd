// SPDX-License-Identifier: Apache-2.0
//
// berth-lab room: what it brings to move running pods for those that wait
// (bench/lab/room/room_rules.h).
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/lab/commands/lab_commands.h"
#include "bench/lab/room/fluid.h"
#include "bench/lab/room/room_rules.h"
#include "bench/replay/commands/experiment.h"
#include "bench/replay/commands/options.h"
#include "bench/replay/report.h"
#include "bench/replay/session.h"
#include "bench/replay/time/departures.h"
#include "bench/replay/time/seed_means.h"
#include "bench/replay/time/service_report.h"

namespace berth::replay {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kNobody = "none";
constexpr const char* kFluid = "fluid";

struct RoomFlags {
  std::string nodes, tasks, policy = "expected-waste";
  std::vector<std::string> rules = {kNobody, "berth", "kai", "descheduler", kFluid};
  std::vector<double> loads = {0.8, 0.9, 1.0, 1.1};
  DepartureOptions departures;
  RoomRuleOptions rule;
  std::uint64_t seed = 42;
  int seeds = 1;
  std::string json;
};

struct RoomRow : SeededRuns<SimulationResult> {
  double load = 1;
  std::string rule;

  [[nodiscard]] double MovedAndEvicted() const {
    return Mean(
        [](const SimulationResult& run) { return static_cast<double>(run.moved + run.evicted); });
  }
  [[nodiscard]] double PerHundred() const {
    const double placed =
        Mean([](const SimulationResult& run) { return static_cast<double>(run.placed); });
    return placed == 0 ? 0 : 100 * MovedAndEvicted() / placed;
  }
};

std::string Text(const RoomFlags& flags, const std::vector<RoomRow>& rows) {
  char line[240];
  std::string text = TraceNameOf(flags.tasks) + ", " + flags.policy + ", seeds " +
                     std::to_string(flags.seed) + " to " +
                     std::to_string(flags.seed + static_cast<std::uint64_t>(flags.seeds) - 1) +
                     "; means of the seeds\n";
  std::snprintf(line, sizeof line, "%-5s %-12s %9s %8s %21s %21s %7s %8s %8s %9s\n", "load", "rule",
                "GPU-h", "of the", "wait p50 / p99", "wait p50 / p99", "moves", "moves", "per 100",
                "GPU-h");
  text += line;
  std::snprintf(line, sizeof line, "%-5s %-12s %9s %8s %21s %21s %7s %8s %8s %9s\n", "", "",
                "served", "demand", "of 4 to 7 GPUs", "of 8 GPUs", "", "an hour", "placed", "lost");
  text += line;
  bool cut_off = false;
  for (const RoomRow& row : rows) {
    const SimulationResult mean = MeanOf(row.runs);
    const ClassService& four = Of(mean, SizeClass::kFour);
    const ClassService& eight = Of(mean, SizeClass::kEight);
    std::snprintf(line, sizeof line,
                  "%-5.2f %-12s %9.0f %7.2f%% %21s %21s %7.0f %8.1f %8.2f %9.1f\n", row.load,
                  row.rule.c_str(), Of(mean, SizeClass::kAll).served_gpu_hours, ServedPct(mean),
                  WaitsText(four).c_str(), WaitsText(eight).c_str(), row.MovedAndEvicted(),
                  row.MovedAndEvicted() / flags.departures.hours, row.PerHundred(),
                  row.Mean(&SimulationResult::lost_gpu_hours));
    text += line;
    cut_off = cut_off || four.p99_cut_off || eight.p99_cut_off;
  }
  return cut_off ? text + kCutOffNote : text;
}

Json JsonOf(const RoomFlags& flags, const MadeWith& made_with, const std::vector<RoomRow>& rows) {
  Json results = Json::array();
  for (const RoomRow& row : rows) {
    for (const SimulationResult& run : row.runs) {
      Json entry = {{"load", row.load},       {"rule", row.rule},
                    {"placed", run.placed},   {"moved", run.moved},
                    {"evicted", run.evicted}, {"gpu_hours_lost", Thousandths(run.lost_gpu_hours)}};
      entry.update(SimulationJson(run));
      results.push_back(std::move(entry));
    }
  }
  return {{"made_with", MadeWithJson(made_with)},
          {"trace", TraceNameOf(flags.tasks)},
          {"policy", flags.policy},
          {"seed", flags.seed},
          {"seeds", flags.seeds},
          {"results", std::move(results)}};
}

Result<SimulationResult> Simulate(const RoomFlags& flags, const Workload& workload,
                                  const ReplayPolicy& policy, const RoomRow& row,
                                  std::uint64_t seed) {
  DepartureOptions departures = flags.departures;
  departures.on = true;
  departures.load = row.load;
  BERTH_TRY(const Stream stream, departures.StreamFor(workload, seed));
  if (row.rule == kFluid) {
    SimulationResult result;
    result.service = FluidService(workload, stream);
    result.horizon_hours = departures.hours;
    return result;
  }
  std::unique_ptr<RoomRule> rule;
  if (row.rule != kNobody) {
    RoomRuleOptions options = flags.rule;
    options.seed = seed;
    BERTH_TRY(rule, MakeRoomRule(row.rule, options));
  }
  const Arrivals order = DrawArrivals(workload.nodes, workload.tasks, seed, 1.3);
  return RunTimedSession(workload, order, stream, policy, seed, {}, 0, nullptr, nullptr,
                         rule.get());
}

Status Run(const RoomFlags& flags, const MadeWith& made_with) {
  BERTH_TRY(const Workload workload, ReadWorkload(flags.nodes, flags.tasks));
  BERTH_TRY(const ReplayPolicy policy, PolicyNamed(flags.policy));
  std::vector<RoomRow> rows;
  for (const double load : flags.loads) {
    for (const std::string& rule : flags.rules) {
      rows.emplace_back();
      rows.back().load = load;
      rows.back().rule = rule;
    }
  }
  const auto simulate = [&](const RoomRow& row, std::size_t s) {
    return Simulate(flags, workload, policy, row, flags.seed + s);
  };
  BERTH_TRY_STATUS(RunSeeds(rows, flags.seeds, simulate));
  if (flags.json.empty()) return WriteOutput("-", Text(flags, rows));
  return WriteTableAndJson(Text(flags, rows), flags.json, JsonOf(flags, made_with, rows));
}

}  // namespace

Command AddRoom(CLI::App& app) {
  const auto flags = std::make_shared<RoomFlags>();
  CLI::App* const room = app.add_subcommand(
      "room", "Compare rules that move running pods to make room for those that wait");
  room->add_option("--nodes", flags->nodes, "Nodes, as for run")->required()->type_name("CSV|JSON");
  room->add_option("--tasks", flags->tasks, "Tasks, as for run")->required()->type_name("CSV");
  room->add_option("--policy", flags->policy, "Places pods, under every rule")
      ->capture_default_str();
  AddNames(*room, "--rules", flags->rules, "Rules");
  room->add_option("--loads", flags->loads, "Mean GPU demand over GPU capacity, by commas")
      ->delimiter(',')
      ->check(Between(0.01, 10.0))
      ->capture_default_str();
  AddHours(*room, flags->departures.hours);
  AddRange(*room, "--mean-lifetime", flags->departures.mean_lifetime_s, 1.0, 1e7,
           "Mean of the lifetimes, in seconds");
  RoomRuleOptions& rule = flags->rule;
  AddRange(*room, "--after-minutes", rule.after_minutes, 0, 10'000,
           "berth: how long a pod has waited");
  AddRange(*room, "--most-moves", rule.most_moves, 1, 1000, "berth: of one plan");
  AddRange(*room, "--moves-per-hundred", rule.moves_per_hundred, 0.0, 1e6,
           "berth: for 100 pods placed");
  AddSeeds(*room, "--seed", flags->seed, flags->seeds);
  AddJson(*room, flags->json);
  return [flags](const MadeWith& made_with) { return Run(*flags, made_with); };
}

}  // namespace berth::replay
