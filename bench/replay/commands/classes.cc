// SPDX-License-Identifier: Apache-2.0
//
// berth-replay classes: see bench/replay/classes/class_simulation.h.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/replay/classes/class_simulation.h"
#include "bench/replay/commands/command.h"
#include "bench/replay/parallel.h"
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

// One policy, by seed.
struct ClassRow {
  std::string policy;
  std::vector<ClassResult> runs;

  template <class Value>
  [[nodiscard]] double Mean(std::size_t work, Value value) const {
    double sum = 0;
    for (const ClassResult& run : runs) sum += std::invoke(value, run[work]);
    return sum / static_cast<double>(runs.size());
  }
};

constexpr std::size_t kTrainingClass = 0, kInferenceClass = 1, kAllClasses = kWorkClasses;

std::string WaitsText(const ClassRow& row, std::size_t work) {
  return ShortDuration(row.Mean(work, &WorkService::mean_wait_s)) + " / " +
         ShortDuration(row.Mean(work, &WorkService::p99_wait_s));
}

std::string ClassText(const std::vector<ClassRow>& rows) {
  char line[240];
  std::snprintf(line, sizeof line, "%-15s %8s %9s %10s %7s %10s %9s %9s %7s  %s\n", "policy",
                "served %", "training", "inference", "batch", "GPU-h lost", "T on spot",
                "I on RDMA", "price", "waits, mean / p99: training, inference, batch");
  std::string text = line;
  for (const ClassRow& row : rows) {
    const auto served = [&row](std::size_t work) {
      return row.Mean(work, &WorkService::served_pct);
    };
    const double lost = row.Mean(
        kAllClasses, [](const WorkService& all) { return all.held() - all.served_gpu_hours; });
    const double on_spot = row.Mean(
        kTrainingClass, [](const WorkService& training) { return training.PctOn(kSpotFamily); });
    const double on_rdma = row.Mean(
        kInferenceClass, [](const WorkService& inference) { return inference.PctOn(kRdmaFamily); });
    std::snprintf(line, sizeof line,
                  "%-15s %8.2f %9.2f %10.2f %7.2f %10.0f %8.1f%% %8.1f%% %7.3f  %s, %s, %s\n",
                  row.policy.c_str(), served(kAllClasses), served(0), served(1), served(2), lost,
                  on_spot, on_rdma, row.Mean(kAllClasses, &WorkService::price),
                  WaitsText(row, 0).c_str(), WaitsText(row, 1).c_str(), WaitsText(row, 2).c_str());
    text += line;
  }
  return text;
}

using ClassJson = nlohmann::ordered_json;

double AsThousandths(double value) { return std::round(value * 1000) / 1000; }

ClassJson JsonOf(const WorkService& service) {
  ClassJson held = ClassJson::object();
  for (std::size_t f = 0; f < kFamilies; ++f) {
    held[std::string(kFamilyTraits[f])] = AsThousandths(service.held_gpu_hours[f]);
  }
  return {{"arrived", service.arrived},
          {"never", service.never},
          {"mean_wait_s", AsThousandths(service.mean_wait_s)},
          {"p99_wait_s", AsThousandths(service.p99_wait_s)},
          {"reclaimed", service.reclaimed},
          {"demand_gpu_hours", AsThousandths(service.demand_gpu_hours)},
          {"served_gpu_hours", AsThousandths(service.served_gpu_hours)},
          {"served_pct", AsThousandths(service.served_pct())},
          {"held_gpu_hours", held},
          {"paid", AsThousandths(service.paid)},
          {"paid_per_served_gpu_hour", AsThousandths(service.price())}};
}

ClassJson JsonOf(const ClassResult& run, std::uint64_t seed) {
  ClassJson json = {{"seed", seed}};
  for (std::size_t c = 0; c < kWorkClasses; ++c) {
    json[std::string(kWorkClassNames[c])] = JsonOf(run[c]);
  }
  json["all"] = JsonOf(run.back());
  return json;
}

std::string ClassJsonText(const ClassFlags& flags, const MadeWith& made_with,
                          const std::vector<ClassRow>& rows) {
  ClassJson results = ClassJson::array();
  for (const ClassRow& row : rows) {
    ClassJson runs = ClassJson::array();
    for (std::size_t s = 0; s < row.runs.size(); ++s) {
      runs.push_back(JsonOf(row.runs[s], flags.options.seed + s));
    }
    results.push_back({{"policy", row.policy}, {"runs", runs}});
  }
  const ClassJson json = {{"made_with", MadeWithJson(made_with)},
                          {"seed", flags.options.seed},
                          {"seeds", flags.seeds},
                          {"load", flags.options.load},
                          {"hours", flags.options.hours},
                          {"parts", flags.parts},
                          {"reclaims_per_day", flags.options.reclaims_per_day},
                          {"configurations", ConfigurationsJson({flags.berth})},
                          {"results", results}};
  return json.dump() + "\n";
}

// The policies in their order, on the same streams, on all cores.
Status RunClasses(ClassFlags flags, const MadeWith& made_with) {
  std::copy(flags.parts.begin(), flags.parts.end(), flags.options.parts.begin());
  if (!flags.config.empty()) {
    BERTH_TRY(flags.berth, PolicyOfFile(flags.config));
  }
  const auto seeds = static_cast<std::size_t>(flags.seeds);
  std::vector<ClassRow> rows;
  std::vector<ClassPolicy> policies;
  for (const std::string& name : flags.policies) {
    BERTH_TRY(ClassPolicy policy, ClassPolicyNamed(name, flags.berth));
    policies.push_back(std::move(policy));
    rows.push_back({name, std::vector<ClassResult>(seeds)});
  }
  std::vector<Status> status(rows.size() * seeds);
  const auto run = [&](std::size_t row, std::size_t s) -> Status {
    ClassOptions options = flags.options;
    options.seed += s;
    BERTH_TRY(const ClassWorkload workload, DrawClassWorkload(options));
    BERTH_TRY(rows[row].runs[s], SimulateClasses(workload, policies[row], options.seed));
    return {};
  };
  ForEachInParallel(status.size(), AllCores(),
                    [&](std::size_t i) { status[i] = run(i / seeds, i % seeds); });
  for (const Status& one : status) {
    if (!one) return one;
  }
  if (flags.json != "-") BERTH_TRY_STATUS(WriteOutput("-", ClassText(rows)));
  return flags.json.empty() ? Status()
                            : WriteOutput(flags.json, ClassJsonText(flags, made_with, rows));
}

}  // namespace

Command AddClasses(CLI::App& app) {
  const auto flags = std::make_shared<ClassFlags>();
  for (const std::string_view name : ClassPolicyNames()) flags->policies.emplace_back(name);
  CLI::App* const classes = app.add_subcommand("classes",
                                               "Compare workload classes with other schedulers' "
                                               "rules on training, inference and batch pods");
  classes->add_option("--policies,--policy", flags->policies, "Policies, separated by commas")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->capture_default_str();
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
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("T,I,B")
      ->capture_default_str();
  classes->add_option("--load", flags->options.load, "Mean GPU demand over GPU capacity")
      ->check(CLI::Range(0.01, 10.0))
      ->capture_default_str();
  classes->add_option("--hours", flags->options.hours, "Length of the simulation, in virtual time")
      ->check(CLI::Range(0.01, 10'000.0))
      ->capture_default_str();
  classes
      ->add_option("--reclaims-per-day", flags->options.reclaims_per_day,
                   "How often the cloud reclaims each spot node")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  classes->add_option("--seed", flags->options.seed, "The first seed")->capture_default_str();
  classes->add_option("--seeds", flags->seeds, "Number of seeds")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  classes->add_option("--json", flags->json, "Write every run as JSON; - is stdout")
      ->type_name("FILE|-");
  return [flags](const MadeWith& made_with) { return RunClasses(*flags, made_with); };
}

}  // namespace berth::replay
