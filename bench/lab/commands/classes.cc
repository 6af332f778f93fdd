// SPDX-License-Identifier: Apache-2.0
//
// berth-lab classes: see bench/lab/classes/class_simulation.h.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/lab/classes/class_simulation.h"
#include "bench/lab/commands/lab_commands.h"
#include "bench/replay/commands/experiment.h"
#include "bench/replay/commands/options.h"
#include "bench/replay/report.h"
#include "bench/replay/time/service_report.h"

namespace berth::replay {
namespace {

struct ClassFlags {
  std::vector<std::string> policies;
  std::vector<double> parts = {50, 30, 20};
  int seeds = 3;
  ClassOptions options;
  ReplayPolicy berth = BerthWithExample();
  std::string config, json;
};

struct ClassRow : SeededRuns<ClassResult> {
  std::string policy;

  template <class Value>
  [[nodiscard]] double MeanOf(std::size_t work, const Value& value) const {
    return Mean([&](const ClassResult& run) { return std::invoke(value, run[work]); });
  }
};

constexpr std::size_t kTrainingClass = 0, kInferenceClass = 1, kAllClasses = kWorkClasses;

std::string WaitsText(const ClassRow& row, std::size_t work) {
  return ShortDuration(row.MeanOf(work, &WorkService::mean_wait_s)) + " / " +
         ShortDuration(row.MeanOf(work, &WorkService::p99_wait_s));
}

std::string ClassText(const std::vector<ClassRow>& rows) {
  char line[240];
  std::snprintf(line, sizeof line, "%-15s %8s %9s %10s %7s %10s %9s %9s %7s  %s\n", "policy",
                "served %", "training", "inference", "batch", "GPU-h lost", "T on spot",
                "I on RDMA", "price", "waits, mean / p99: training, inference, batch");
  std::string text = line;
  for (const ClassRow& row : rows) {
    const auto served = [&row](std::size_t work) {
      return row.MeanOf(work, &WorkService::served_pct);
    };
    const double lost = row.MeanOf(
        kAllClasses, [](const WorkService& all) { return all.held() - all.served_gpu_hours; });
    const double on_spot = row.MeanOf(
        kTrainingClass, [](const WorkService& training) { return training.PctOn(kSpotFamily); });
    const double on_rdma = row.MeanOf(
        kInferenceClass, [](const WorkService& inference) { return inference.PctOn(kRdmaFamily); });
    std::snprintf(line, sizeof line,
                  "%-15s %8.2f %9.2f %10.2f %7.2f %10.0f %8.1f%% %8.1f%% %7.3f  %s, %s, %s\n",
                  row.policy.c_str(), served(kAllClasses), served(0), served(1), served(2), lost,
                  on_spot, on_rdma, row.MeanOf(kAllClasses, &WorkService::price),
                  WaitsText(row, 0).c_str(), WaitsText(row, 1).c_str(), WaitsText(row, 2).c_str());
    text += line;
  }
  return text;
}

using ClassJson = nlohmann::ordered_json;

ClassJson JsonOf(const WorkService& service) {
  ClassJson held = ClassJson::object();
  for (std::size_t f = 0; f < kFamilies; ++f) {
    held[std::string(kFamilyTraits[f])] = Thousandths(service.held_gpu_hours[f]);
  }
  return {{"arrived", service.arrived},
          {"never", service.never},
          {"mean_wait_s", Thousandths(service.mean_wait_s)},
          {"p99_wait_s", Thousandths(service.p99_wait_s)},
          {"reclaimed", service.reclaimed},
          {"demand_gpu_hours", Thousandths(service.demand_gpu_hours)},
          {"served_gpu_hours", Thousandths(service.served_gpu_hours)},
          {"served_pct", Thousandths(service.served_pct())},
          {"held_gpu_hours", held},
          {"paid", Thousandths(service.paid)},
          {"paid_per_served_gpu_hour", Thousandths(service.price())}};
}

ClassJson JsonOf(const ClassResult& run, std::uint64_t seed) {
  ClassJson json = {{"seed", seed}};
  for (std::size_t c = 0; c < kWorkClasses; ++c) {
    json[std::string(kWorkClassNames[c])] = JsonOf(run[c]);
  }
  json["all"] = JsonOf(run.back());
  return json;
}

ClassJson JsonOf(const ClassFlags& flags, const MadeWith& made_with,
                 const std::vector<ClassRow>& rows) {
  ClassJson results = ClassJson::array();
  for (const ClassRow& row : rows) {
    ClassJson runs = ClassJson::array();
    for (std::size_t s = 0; s < row.runs.size(); ++s) {
      runs.push_back(JsonOf(row.runs[s], flags.options.seed + s));
    }
    results.push_back({{"policy", row.policy}, {"runs", runs}});
  }
  return {{"made_with", MadeWithJson(made_with)},
          {"seed", flags.options.seed},
          {"seeds", flags.seeds},
          {"load", flags.options.load},
          {"hours", flags.options.hours},
          {"parts", flags.parts},
          {"reclaims_per_day", flags.options.reclaims_per_day},
          {"configurations", ConfigurationsJson({flags.berth})},
          {"results", results}};
}

// The policies in their order, on the same streams, on all cores.
Status RunClasses(ClassFlags flags, const MadeWith& made_with) {
  std::copy(flags.parts.begin(), flags.parts.end(), flags.options.parts.begin());
  if (!flags.config.empty()) {
    BERTH_TRY(flags.berth, PolicyOfFile(flags.config));
  }
  std::vector<ClassRow> rows;
  std::map<std::string, ClassPolicy> policies;
  for (const std::string& name : flags.policies) {
    BERTH_TRY(ClassPolicy policy, ClassPolicyNamed(name, flags.berth));
    policies.emplace(name, std::move(policy));
    rows.push_back({{}, name});
  }
  const auto simulate = [&](const ClassRow& row, std::size_t s) -> Result<ClassResult> {
    ClassOptions options = flags.options;
    options.seed += s;
    BERTH_TRY(const ClassWorkload workload, DrawClassWorkload(options));
    return SimulateClasses(workload, policies.at(row.policy), options.seed);
  };
  BERTH_TRY_STATUS(RunSeeds(rows, flags.seeds, simulate));
  return WriteTableAndJson(ClassText(rows), flags.json, JsonOf(flags, made_with, rows));
}

}  // namespace

Command AddClasses(CLI::App& app) {
  const auto flags = std::make_shared<ClassFlags>();
  for (const std::string_view name : ClassPolicyNames()) flags->policies.emplace_back(name);
  CLI::App* const classes = app.add_subcommand("classes",
                                               "Compare workload classes with other schedulers' "
                                               "rules on training, inference and batch pods");
  AddNames(*classes, "--policies,--policy", flags->policies, "Policies");
  classes
      ->add_option("--config", flags->config,
                   "BerthConfiguration with a profile and the workload classes training, inference "
                   "and batch; default: the documented example")
      ->type_name("FILE");
  classes
      ->add_option("--parts", flags->parts,
                   "Weights of training, inference and batch in the requested GPUs, in any unit")
      ->delimiter(',')
      ->expected(static_cast<int>(kWorkClasses))
      ->check(Between(0.0, 1e6))
      ->type_name("T,I,B")
      ->capture_default_str();
  ClassOptions& options = flags->options;
  AddRange(*classes, "--load", options.load, 0.01, 10.0, "Mean GPU demand over GPU capacity");
  AddHours(*classes, options.hours);
  AddRange(*classes, "--reclaims-per-day", options.reclaims_per_day, 0.0, 100.0,
           "How often the cloud reclaims each spot node");
  AddSeeds(*classes, "--seed", options.seed, flags->seeds);
  AddJson(*classes, flags->json);
  return [flags](const MadeWith& made_with) { return RunClasses(*flags, made_with); };
}

}  // namespace berth::replay
