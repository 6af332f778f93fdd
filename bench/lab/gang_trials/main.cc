// SPDX-License-Identifier: Apache-2.0
//
// berth-gang-trials: gangs of several sizes on API servers of several speeds, each so many times.
// Every trial is a `berth serve` of its own behind a small kube-scheduler, on a cluster with room
// for the gang. The exit status is 1 where a gang did not get whole. `beside`, `differing` and
// `large` measure what gangs cost those that ask (waiting_gangs.h).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "bench/lab/gang_trials/trial.h"
#include "bench/lab/gang_trials/waiting_gangs.h"
#include "bench/replay/report.h"
#include "bench/replay/server_process.h"

namespace berth::gang_trials {
namespace {

using std::chrono::milliseconds;

struct Options {
  std::vector<int> sizes{64, 300, 1000, 5000};
  std::vector<int> delays_ms{0, 10, 100, 300};
  int trials = 30;
  int at_once = 1;
  int at_a_time = TrialOptions().at_a_time;
  int arrival_ms = 1000;
  int cycle_ms = 0;
  int hold_s = 50;
  std::uint64_t seed = 1;
  std::string json;
  std::string berth = replay::BerthBinaryBeside();
};

struct Cell {
  int members = 0;
  Duration binding{};
  std::vector<TrialResult> results;
};

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

Cell RunTrials(const Options& options, int members, Duration binding) {
  Cell cell{members, binding, {}};
  std::mutex mutex;
  std::atomic<int> next = 0;
  const auto run = [&] {
    for (int i = next++; i < options.trials; i = next++) {
      TrialOptions trial{.berth = options.berth,
                         .members = members,
                         .binding = binding,
                         .at_a_time = options.at_a_time,
                         .cycle = milliseconds(options.cycle_ms),
                         .hold = std::chrono::seconds(options.hold_s),
                         .arrival = milliseconds(options.arrival_ms)};
      trial.seed = Mix64(options.seed + static_cast<std::uint64_t>(i));
      TrialResult result = TryGang(trial);
      const std::lock_guard lock(mutex);
      if (!result.whole) {
        std::fprintf(stderr, "%d members, %d bound: %s\n", members, result.bound,
                     result.gangs.c_str());
      }
      cell.results.push_back(std::move(result));
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < std::min(options.at_once, options.trials); ++i) threads.emplace_back(run);
  threads.clear();
  return cell;
}

// The largest of a member of all results.
template <class Get>
auto Most(const Cell& cell, Get get) {
  decltype(get(TrialResult())) most{};
  for (const TrialResult& one : cell.results) most = std::max(most, get(one));
  return most;
}

nlohmann::ordered_json Report(const Options& options, const Cell& cell) {
  const auto whole = std::ranges::count_if(cell.results, &TrialResult::whole);
  const Duration ideal = TimeOfBindings(cell.members, cell.binding, options.at_a_time);
  const Duration in_part = Most(cell, [](const TrialResult& one) { return one.in_part; });
  const Duration last = Most(cell, [](const TrialResult& one) { return one.until_whole; });
  const Duration cpu = Most(cell, [](const TrialResult& one) { return one.cpu; });
  std::uint64_t failed = 0, unanswered = 0, filters = 0;
  int twice = 0;
  for (const TrialResult& one : cell.results) {
    failed += one.scheduler.failed_binds;
    unanswered += one.scheduler.unanswered_binds;
    filters += one.scheduler.filters;
    twice += one.double_grants;
  }
  const double filter_ms =
      Most(cell, [](const TrialResult& one) { return one.scheduler.longest_filter_ms; });
  std::printf("%7d %8d %6td/%-3d %9.2f %9.2f %11.2f %8.2f %7llu %7llu %10.1f %6d %8.2f\n",
              cell.members, static_cast<int>(Seconds(cell.binding) * 1000), whole, options.trials,
              Seconds(in_part), Seconds(ideal), Seconds(in_part - ideal), Seconds(last),
              static_cast<unsigned long long>(failed), static_cast<unsigned long long>(unanswered),
              filter_ms, twice, Seconds(cpu));
  std::fflush(stdout);
  return {{"members", cell.members},        {"binding_ms", Seconds(cell.binding) * 1000},
          {"trials", options.trials},       {"whole", whole},
          {"in_part_s", Seconds(in_part)},  {"bindings_s", Seconds(ideal)},
          {"until_whole_s", Seconds(last)}, {"filters", filters},
          {"failed_binds", failed},         {"unanswered_binds", unanswered},
          {"longest_filter_ms", filter_ms}, {"gpus_given_twice", twice},
          {"cpu_s", Seconds(cpu)}};
}

int RunAll(const Options& options) {
  std::printf(
      "members  Binding    whole   in part    of that   in part -  whole    binds   binds    "
      "longest  GPUs   CPU of\n"
      "             ms                  s  Bindings s  Bindings s  after s  failed  unansw.  "
      "filter ms twice  berth, s\n");
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  bool good = true;
  for (const int members : options.sizes) {
    for (const int delay : options.delays_ms) {
      all.push_back(Report(options, RunTrials(options, members, milliseconds(delay))));
      good = good && all.back()["whole"] == options.trials && all.back()["gpus_given_twice"] == 0;
    }
  }
  if (!options.json.empty()) {
    if (const Status written = replay::WriteOutput(options.json, all.dump(1) + "\n"); !written) {
      std::fprintf(stderr, "berth-gang-trials: %s\n", written.error().message.c_str());
      return 2;
    }
  }
  return good ? 0 : 1;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Gangs on slow API servers", "berth-gang-trials");
  app.add_option("--sizes", options.sizes, "Members of the gangs")
      ->delimiter(',')
      ->check(CLI::Range(2, 10'000));
  app.add_option("--delays", options.delays_ms, "Milliseconds of a Binding")
      ->delimiter(',')
      ->check(CLI::Range(0, 10'000));
  app.add_option("--trials", options.trials, "Trials of each")->check(CLI::Range(1, 1000));
  app.add_option("--at-once", options.at_once, "Trials that run at the same time")
      ->check(CLI::Range(1, 64));
  app.add_option("--bind-threads", options.at_a_time, "Bindings that berth makes at a time")
      ->check(CLI::Range(1, 1024));
  app.add_option("--arrival", options.arrival_ms, "Milliseconds in which all members come")
      ->check(CLI::Range(0, 600'000));
  app.add_option("--cycle", options.cycle_ms, "Milliseconds that the scheduler takes for a pod")
      ->check(CLI::Range(0, 1000));
  app.add_option("--hold", options.hold_s, "gangs.holdSeconds; httpTimeout is 10 s more")
      ->check(CLI::Range(5, 3600));
  app.add_option("--seed", options.seed, "Of the times at which they come");
  app.add_option("--json", options.json, "A file for the figures");
  app.add_option("--berth", options.berth, "The program that is tried");
  CostOptions cost;
  app.add_option("--nodes", cost.nodes, "Of `beside`, `differing` and `large`")
      ->check(CLI::Range(1, 10'000));
  const CLI::App* const beside = app.add_subcommand("beside", "Single pods beside gangs that wait");
  const CLI::App* const differing = app.add_subcommand("differing", "Members that differ");
  const CLI::App* const large = app.add_subcommand("large", "A gang of 8,000 on a busy cluster");
  app.require_subcommand(0, 1);
  app.fallthrough();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  }
  cost.berth = options.berth;
  if (beside->parsed()) MeasureBeside(cost);
  if (differing->parsed()) MeasureDiffering(cost);
  if (large->parsed()) MeasureLarge(cost);
  return app.get_subcommands().empty() ? RunAll(options) : 0;
}

}  // namespace
}  // namespace berth::gang_trials

int main(int argc, char** argv) { return berth::gang_trials::Main(argc, argv); }
