// SPDX-License-Identifier: Apache-2.0
//
// The parity gate: the five deterministic published policies, replayed on the published arrival
// orders, give the authors' allocation curves. Model, metric and protocol are right together or not
// at all.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "bench/replay/arrivals.h"
#include "bench/replay/csv.h"
#include "bench/replay/engine_placer.h"
#include "bench/replay/oracle_mix.h"
#include "bench/replay/replay.h"
#include "bench/replay/trace.h"
#include "scoring/registry.h"
#include "test/support/data_dir.h"

namespace berth::replay::parity_test {
namespace {

constexpr std::array<std::string_view, 11> kTraces = {
    "default",     "cpu050",    "cpu100",    "cpu200",     "gpushare40", "gpushare80",
    "gpushare100", "gpuspec10", "gpuspec33", "multigpu20", "multigpu50"};
constexpr std::array<std::uint64_t, 5> kSeeds = {42, 43, 44, 45, 46};

// Our name of a policy, and the one in the published table.
struct PolicyName {
  std::string_view ours;
  std::string_view published;
};
constexpr std::array<PolicyName, 5> kPolicies = {{{"dot-product", "DotProd"},
                                                  {"gpu-clustering", "GpuClustering"},
                                                  {"gpu-packing", "GpuPacking"},
                                                  {"best-fit", "BestFit"},
                                                  {"fragmentation-gradient", "FGD"}}};

// Published values in hundredths of a percent; -1 where there is none.
using PublishedCurve = std::vector<long>;
using PublishedKey = std::tuple<std::string, std::string, std::uint64_t>;  // trace, policy, seed

std::map<PublishedKey, PublishedCurve> ReadPublished(const std::string& path) {
  std::map<PublishedKey, PublishedCurve> curves;
  const std::string text = ReadTextFile(path).value();
  for (const std::string_view line : SplitLines(text)) {
    const auto fields = SplitFields(line, ',');
    if (fields[0] == "workload") continue;
    const std::string trace(fields[0].substr(std::string_view("openb_pod_list_").size()));
    const std::string policy(fields[1].substr(fields[1].find('-') + 1));
    PublishedCurve curve;
    for (std::size_t i = 5; i < fields.size(); ++i) {
      curve.push_back(fields[i].empty() ? -1
                                        : std::lround(std::stod(std::string(fields[i])) * 100));
    }
    curves[{trace, policy, std::stoull(std::string(fields[3]))}] = curve;
  }
  return curves;
}

struct Trace {
  std::string name;
  std::vector<TraceTask> tasks;
  RequestMix mix;
};

class Parity : public testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path openb = test::DataDir() / "openb";
    BERTH_NEEDS_DATA(openb);
    nodes_ = ReadNodes(openb / "openb_node_list_gpu_node.csv").value();
    published_ = ReadPublished(openb / "published" / "allocation_curves.csv.gz");
    for (const std::string_view name : kTraces) {
      const std::string file = "openb_pod_list_" + std::string(name) + ".csv.gz";
      Trace trace{std::string(name), ReadTasks(openb / file).value(), {}};
      trace.mix = OracleMix(trace.tasks);
      traces_.push_back(std::move(trace));
    }
  }

  // The replayed curve in hundredths.
  std::vector<double> Replay(const Trace& trace, std::string_view policy, std::uint64_t seed) {
    const auto orders = test::DataDir() / "openb" / "orders" / (trace.name + ".txt.gz");
    const Arrivals arrivals = ReadArrivals(orders, seed, nodes_.size(), trace.tasks.size()).value();
    Engine engine(BuildProfile(*FindBuiltinProfile(policy), trace.mix).value());
    EnginePlacer placer(engine, OrderedNodes(nodes_, arrivals), seed);
    const ReplayResult result = RunReplay(nodes_, trace.tasks, arrivals, placer, {}).value();
    std::vector<double> curve;
    for (const auto& point : result.allocated_pct) curve.push_back(point ? *point * 100 : -1);
    return curve;
  }

  void Compare(const Trace& trace, const PolicyName& policy, std::uint64_t seed) {
    const std::vector<double> ours = Replay(trace, policy.ours, seed);
    const std::string where =
        trace.name + " " + std::string(policy.published) + " seed " + std::to_string(seed);
    const std::lock_guard lock(mutex_);
    const auto found = published_.find({trace.name, std::string(policy.published), seed});
    ASSERT_NE(found, published_.end()) << where;
    const PublishedCurve& published = found->second;
    ASSERT_EQ(published.size(), ours.size()) << where;
    EXPECT_EQ(published.back(), std::lround(ours.back())) << where << " at 130 %";
    for (std::size_t x = 0; x < ours.size(); ++x) {
      if (published[x] < 0 && ours[x] < 0) continue;
      const long unit_off = std::labs(published[x] - std::lround(ours[x]));
      EXPECT_LE(unit_off, 1) << where << " at " << x << " %: published " << published[x]
                             << ", here " << ours[x] << " (hundredths)";
      off_by_one_ += unit_off == 1 ? 1 : 0;
      ++points_;
    }
    ++curves_;
  }

  std::vector<TraceNode> nodes_;
  std::vector<Trace> traces_;
  std::map<PublishedKey, PublishedCurve> published_;
  std::mutex mutex_;
  int curves_ = 0, points_ = 0, off_by_one_ = 0;
};

TEST_F(Parity, FivePublishedPoliciesReplayTheirCurvesOnElevenTraces) {
  struct Job {
    const Trace* trace;
    PolicyName policy;
    std::uint64_t seed;
  };
  std::vector<Job> jobs;
  for (const Trace& trace : traces_) {
    for (const PolicyName& policy : kPolicies) {
      for (const std::uint64_t seed : kSeeds) jobs.push_back({&trace, policy, seed});
    }
  }
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> workers;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    workers.emplace_back([&] {
      for (std::size_t job = next++; job < jobs.size(); job = next++) {
        Compare(*jobs[job].trace, jobs[job].policy, jobs[job].seed);
      }
    });
  }
  workers.clear();
  std::printf("parity: %d curves, %d points, %d of them one unit in the last digit off\n", curves_,
              points_, off_by_one_);
  EXPECT_EQ(curves_, 275);
}

}  // namespace
}  // namespace berth::replay::parity_test
