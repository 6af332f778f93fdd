// SPDX-License-Identifier: Apache-2.0
//
// Small streams whose figures are worked out by hand.
#include "bench/replay/time/simulation.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/replay/session.h"
#include "bench/replay/time/room_memo.h"
#include "bench/replay/time/service_report.h"
#include "scoring/registry.h"

namespace berth::replay::simulation_test {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

const std::vector<TraceTask> kTasks = {{"half", 1000, 1, 1, 500, ""},
                                       {"one", 1000, 1, 1, 1000, ""},
                                       {"two", 1000, 1, 2, 1000, ""},
                                       {"zero", 1000, 1, 0, 0, ""}};
constexpr std::size_t kHalf = 0, kOne = 1, kTwo = 2, kZero = 3;

// On one node with two GPUs, first fit.
SimulationResult OnTwoGpus(const std::vector<Arrival>& arrivals, Millis horizon,
                           std::size_t primed = 0, const std::vector<TraceTask>& tasks = kTasks,
                           const std::string& policy = "first-fit") {
  const Workload workload{"test", {{"n", 64'000, 1024, 2, "T4"}}, tasks};
  const auto result = RunTimedSession(workload, {{}, {0}}, {arrivals, horizon, primed},
                                      PolicyNamed(policy).value(), 1, {});
  EXPECT_TRUE(result.has_value()) << result.error().message;
  return *result;
}

TEST(Simulate, GivesDevicesBackWhenAPodHasRun) {
  // The second pod waits for the first one's GPUs: from 1 min to 60 min.
  const SimulationResult result =
      OnTwoGpus({{kTwo, seconds(0), hours(1)}, {kTwo, minutes(1), minutes(30)}}, hours(2));
  const ClassService& two = Of(result, SizeClass::kTwo);
  EXPECT_EQ(two.arrived, 2);
  EXPECT_EQ(two.never, 0);
  EXPECT_DOUBLE_EQ(two.wait_p50_s, 0);
  EXPECT_DOUBLE_EQ(two.wait_p99_s, 59 * 60);
  EXPECT_DOUBLE_EQ(two.served_gpu_hours, 2 * 1 + 2 * 0.5);
  EXPECT_DOUBLE_EQ(two.demand_gpu_hours, 3);
  EXPECT_DOUBLE_EQ(result.waiting_hours, 59.0 / 60);
  EXPECT_DOUBLE_EQ(result.idle_gpu_hours_waiting, 0) << "nothing was idle meanwhile";
}

TEST(Simulate, HoldsAWaitAgainstTheRun) {
  // Each waits for 59 minutes; one runs for 30, the other for two seconds, which count as ten.
  const SimulationResult long_run =
      OnTwoGpus({{kTwo, seconds(0), hours(1)}, {kTwo, minutes(1), minutes(30)}}, hours(2));
  EXPECT_DOUBLE_EQ(Of(long_run, SizeClass::kTwo).slowdown_mean, (1 + 89.0 / 30) / 2);
  EXPECT_DOUBLE_EQ(Of(long_run, SizeClass::kTwo).starvation, 59.0 / 30);
  const SimulationResult short_run =
      OnTwoGpus({{kTwo, seconds(0), hours(1)}, {kTwo, minutes(1), seconds(2)}}, hours(2));
  EXPECT_DOUBLE_EQ(Of(short_run, SizeClass::kTwo).slowdown_mean, (1 + 3542.0 / 10) / 2);
  EXPECT_DOUBLE_EQ(Of(short_run, SizeClass::kTwo).starvation, 354);
  const std::string text = SideBySide("t", {{"first-fit", long_run}});
  EXPECT_NE(text.find("1.98 / 2.0"), std::string::npos) << text;
}

TEST(Simulate, MarksQuantilesThatAPodStillWaitingWouldLengthen) {
  // Of four pods of two GPUs three start at once; the last waits for the last five minutes.
  const std::vector<Arrival> three = {{kTwo, minutes(0), minutes(10)},
                                      {kTwo, minutes(10), minutes(10)},
                                      {kTwo, minutes(20), minutes(40)}};
  std::vector<Arrival> four = three;
  four.push_back({kTwo, minutes(25), minutes(1)});
  const SimulationResult none = OnTwoGpus(three, minutes(30)), one = OnTwoGpus(four, minutes(30));
  EXPECT_FALSE(Of(none, SizeClass::kTwo).p99_cut_off);
  EXPECT_FALSE(Of(one, SizeClass::kTwo).p50_cut_off) << "half of the pods waited for less";
  EXPECT_TRUE(Of(one, SizeClass::kTwo).p99_cut_off);
  EXPECT_TRUE(Of(one, SizeClass::kAll).p99_cut_off);
  EXPECT_FALSE(Of(one, SizeClass::kOne).p99_cut_off) << "there is none";
  EXPECT_EQ(SimulationJson(one)["classes"]["2"]["wait_p99_cut_off"], true);
  const std::string text = SideBySide("t", {{"first-fit", one}});
  EXPECT_NE(text.find("0 / > 5.0 min"), std::string::npos) << text;
  EXPECT_NE(text.find(kCutOffNote), std::string::npos) << text;
  EXPECT_EQ(SideBySide("t", {{"first-fit", none}}).find('>'), std::string::npos);
}

TEST(Simulate, CutsOffAtTheHorizon) {
  // The first runs on; the second comes at 15 min and would have run 45 min of the hour.
  const SimulationResult result =
      OnTwoGpus({{kOne, seconds(0), hours(5)}, {kTwo, minutes(15), hours(5)}}, hours(1));
  EXPECT_DOUBLE_EQ(Of(result, SizeClass::kOne).served_gpu_hours, 1);
  const ClassService& two = Of(result, SizeClass::kTwo);
  EXPECT_EQ(two.never, 1);
  EXPECT_DOUBLE_EQ(two.wait_p99_s, 45 * 60) << "at least so long";
  EXPECT_DOUBLE_EQ(two.served_gpu_hours, 0);
  EXPECT_DOUBLE_EQ(two.demand_gpu_hours, 1.5);
  EXPECT_DOUBLE_EQ(result.idle_gpu_hours_waiting, 0.75) << "one GPU idle for 45 min";
  EXPECT_DOUBLE_EQ(Of(result, SizeClass::kMulti).demand_gpu_hours, 1.5);
  EXPECT_DOUBLE_EQ(Of(result, SizeClass::kAll).demand_gpu_hours, 2.5);
}

TEST(Simulate, TriesAgainWhenTheBackoffIsOver) {
  // Fails at 0 s (backoff 1 s). The end of the share at 0.5 s moves it to the backoff queue; at
  // 1 s it fits.
  const SimulationResult result =
      OnTwoGpus({{kHalf, seconds(0), Millis(500)}, {kTwo, seconds(0), seconds(10)}}, minutes(1));
  EXPECT_DOUBLE_EQ(Of(result, SizeClass::kTwo).wait_p99_s, 1);
  EXPECT_EQ(result.attempts, 3);
}

TEST(Simulate, LetsNobodyPassWhereTheyTakeTurns) {
  // Two GPUs are free at 1 h and at 2 h. The pod without GPUs waits for nobody.
  const SimulationResult result = OnTwoGpus({{kOne, seconds(0), hours(1)},
                                             {kTwo, seconds(1), hours(1)},
                                             {kHalf, seconds(2), minutes(1)},
                                             {kZero, seconds(3), minutes(1)}},
                                            hours(3), 0, kTasks, "first-fit+in-turn");
  EXPECT_DOUBLE_EQ(Of(result, SizeClass::kTwo).wait_longest_s, 3599);
  EXPECT_DOUBLE_EQ(Of(result, SizeClass::kShare).wait_longest_s, 7198);
  EXPECT_DOUBLE_EQ(Of(result, SizeClass::kCpuOnly).wait_longest_s, 0);
}

// A pod of two waits from 1 min on for one that ends at 60 min. One of 30 min goes beside that at 3
// min; one of 60 min comes at 40 min, and would delay it to 100 min.
TEST(Simulate, PassesWhoWouldDelayALargePodWhereRunTimesAreKnown) {
  const auto of = [](const std::string& policy) {
    return OnTwoGpus({{kOne, seconds(0), minutes(60)},
                      {kTwo, minutes(1), minutes(10)},
                      {kOne, minutes(3), minutes(30)},
                      {kOne, minutes(40), minutes(60)}},
                     hours(4), 0, kTasks, "first-fit+earmarks" + policy);
  };
  EXPECT_DOUBLE_EQ(Of(of(""), SizeClass::kTwo).wait_longest_s, 99 * 60);
  for (const char* const policy : {"+words", "+deadlines"}) {
    const SimulationResult known = of(policy);
    EXPECT_DOUBLE_EQ(Of(known, SizeClass::kTwo).wait_longest_s, 59 * 60) << policy;
    EXPECT_DOUBLE_EQ(Of(known, SizeClass::kOne).wait_longest_s, 30 * 60) << policy;
  }
  EXPECT_DOUBLE_EQ(Of(of("+words/10"), SizeClass::kTwo).wait_longest_s, 99 * 60)
      << "a word that nobody keeps is none";
}

// Twelve pods of one GPU have run for an hour each. One more comes at 6 h, a pod of two a minute
// later, and the next of one at 6:40, which would delay it to 7:40.
TEST(Simulate, LearnsRunTimesFromPodsThatHaveEnded) {
  const auto of = [](const std::string& policy) {
    std::vector<Arrival> arrivals;
    for (int i = 0; i < 12; ++i) arrivals.push_back({kOne, hours(i / 2), minutes(60)});
    arrivals.push_back({kOne, hours(6), minutes(60)});
    arrivals.push_back({kTwo, minutes(361), minutes(10)});
    arrivals.push_back({kOne, minutes(400), minutes(60)});
    return OnTwoGpus(arrivals, hours(9), 0, kTasks, "first-fit+earmarks" + policy);
  };
  EXPECT_DOUBLE_EQ(Of(of(""), SizeClass::kTwo).wait_longest_s, 99 * 60);
  EXPECT_DOUBLE_EQ(Of(of("+learned"), SizeClass::kTwo).wait_longest_s, 59 * 60);
}

TEST(Simulate, LetsSmallPodsPassOneThatDoesNotFit) {
  const SimulationResult result = OnTwoGpus({{kOne, seconds(0), hours(1)},
                                             {kTwo, seconds(1), hours(1)},
                                             {kHalf, seconds(2), minutes(1)},
                                             {kZero, seconds(3), minutes(1)}},
                                            hours(3));
  EXPECT_DOUBLE_EQ(Of(result, SizeClass::kShare).wait_p99_s, 0);
  EXPECT_DOUBLE_EQ(Of(result, SizeClass::kCpuOnly).wait_p99_s, 0);
  EXPECT_DOUBLE_EQ(Of(result, SizeClass::kTwo).wait_p99_s, 3600 - 1);
}

TEST(Simulate, PutsTheHigherPriorityFirst) {
  std::vector<TraceTask> tasks = kTasks;
  tasks[kOne].priority = 10;
  // Both wait for the two GPUs; the later one has the higher priority.
  const SimulationResult result = OnTwoGpus({{kTwo, seconds(0), minutes(10)},
                                             {kTwo, seconds(1), minutes(10)},
                                             {kOne, seconds(2), minutes(10)}},
                                            hours(1), 0, tasks);
  EXPECT_DOUBLE_EQ(Of(result, SizeClass::kOne).wait_p99_s, 600 - 2);
  EXPECT_DOUBLE_EQ(Of(result, SizeClass::kTwo).wait_p99_s, 1200 - 1);
}

TEST(Simulate, LeavesPrimedPodsOutOfTheWaits) {
  const SimulationResult result =
      OnTwoGpus({{kTwo, seconds(0), hours(1)}, {kOne, minutes(30), minutes(30)}}, hours(2), 1);
  EXPECT_EQ(Of(result, SizeClass::kAll).arrived, 1);
  EXPECT_DOUBLE_EQ(Of(result, SizeClass::kAll).wait_p50_s, 1800);
  EXPECT_DOUBLE_EQ(Of(result, SizeClass::kAll).served_gpu_hours, 2.5);
}

TEST(Simulate, TakesReadingsAtEvenDistances) {
  const SimulationResult result =
      OnTwoGpus({{kOne, minutes(30), hours(1)}, {kTwo, minutes(45), hours(1)}}, hours(48));
  ASSERT_EQ(result.samples.size(), static_cast<std::size_t>(kSamples));
  EXPECT_DOUBLE_EQ(result.samples[0].at_hours, 1);
  EXPECT_DOUBLE_EQ(result.samples[0].allocated_gpus, 1);
  EXPECT_DOUBLE_EQ(result.samples[0].waiting_gpus, 2);
  EXPECT_DOUBLE_EQ(result.samples[1].allocated_gpus, 2);
  EXPECT_DOUBLE_EQ(result.samples[3].allocated_gpus, 0);
  double idle = 0;
  for (const double gpus : result.samples[0].idle) idle += gpus;
  EXPECT_NEAR(idle, 1, 1e-12);
}

// Ten minutes of a crowded cluster of mixed nodes.
struct Crowd {
  Workload workload;
  Stream stream;
  Arrivals order;
};
Crowd ACrowd() {
  Crowd crowd;
  crowd.workload = GenerateWorkload(3, 400);
  crowd.workload.nodes.resize(40);
  crowd.order = DrawArrivals(crowd.workload.nodes, crowd.workload.tasks, 3, 1);
  const StreamOptions options{1.3, Lifetimes::kLogNormal, minutes(10), minutes(10)};
  crowd.stream = DrawStream(crowd.workload.nodes, crowd.workload.tasks, options, 3).value();
  return crowd;
}

TEST(Simulate, GivesTheSameForTheSame) {
  const Crowd crowd = ACrowd();
  for (const ProfileSpec& spec : BuiltinProfiles()) {
    const auto run = [&] {
      return SimulationJson(
          RunTimedSession(crowd.workload, crowd.order, crowd.stream, {spec.name, spec}, 9, {})
              .value());
    };
    EXPECT_EQ(run().dump(), run().dump()) << spec.name;
  }
}

TEST(RoomMemo, SparesOnlyAttemptsThatTheEngineWouldRefuse) {
  const Crowd crowd = ACrowd();
  Engine engine(BuildProfile(*FindBuiltinProfile("best-fit"), {}).value());
  EnginePlacer placer(engine, OrderedNodes(crowd.workload.nodes, crowd.order), 1);
  RoomMemo memo(crowd.workload.tasks.size());
  struct Held {
    std::string uid;
    NodeIndex node;
  };
  std::vector<Held> held;
  Random random(11);
  int spared = 0;
  for (std::size_t n = 0; n < 3000; ++n) {
    const std::size_t task = random.Below(crowd.workload.tasks.size());
    const PodRequest pod = PodOf(crowd.workload.tasks[task], n);
    const bool may_fit = memo.MayFit(task, pod.shape, *placer.state().Current());
    const auto node = placer.Put(pod).value();
    if (!may_fit) ++spared;
    ASSERT_TRUE(may_fit || !node) << "the memo refused what fits";
    if (node) {
      held.push_back({pod.id.uid, *node});
    } else {
      memo.Failed(task);
    }
    if (n > 500 && n % 3 == 0) {
      const std::size_t leaving = random.Below(held.size());
      placer.Remove(held[leaving].uid);
      memo.Freed(held[leaving].node);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(leaving));
    }
  }
  EXPECT_GT(spared, 100);
}

}  // namespace
}  // namespace berth::replay::simulation_test
