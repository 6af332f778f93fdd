// SPDX-License-Identifier: Apache-2.0
//
// Rules that move pods, on streams whose figures are worked out by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "bench/lab/room/fluid.h"
#include "bench/lab/room/room_rules.h"
#include "bench/replay/session.h"

namespace berth::replay::room_test {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

const std::vector<TraceTask> kTasks = {
    {"one", 1000, 1, 1, 1000, ""}, {"two", 1000, 1, 2, 1000, ""}, {"three", 1000, 1, 3, 1000, ""}};
constexpr std::size_t kOne = 0, kTwo = 1, kThree = 2;

// Nodes of 2 GPUs. first-fit fills them in order: n0 one, one; n1 one, one.
Workload Nodes(std::size_t count, int gpus = 2) {
  Workload workload{"test", {}, kTasks};
  for (std::size_t i = 0; i < count; ++i) {
    workload.nodes.push_back({"n" + std::to_string(i), 64'000, 1024, gpus, "T4"});
  }
  return workload;
}

SimulationResult Under(const std::string& rule, const Workload& workload,
                       const std::vector<Arrival>& arrivals, Millis horizon,
                       const RoomRuleOptions& options = {}) {
  Arrivals order;
  for (std::size_t i = 0; i < workload.nodes.size(); ++i) order.node_rank.push_back(i);
  std::unique_ptr<RoomRule> made;
  if (rule != "none") made = MakeRoomRule(rule, options).value();
  const auto result =
      RunTimedSession(workload, order, {arrivals, horizon, 0}, PolicyNamed("first-fit").value(), 1,
                      {}, 0, nullptr, nullptr, made.get());
  EXPECT_TRUE(result.has_value());
  return *result;
}

// Two nodes are half idle from minute 10 on, and a pod of two GPUs comes at minute 20.
const std::vector<Arrival> kHalfIdle = {{kOne, minutes(0), hours(3)},
                                        {kOne, minutes(0), minutes(10)},
                                        {kOne, minutes(0), hours(3)},
                                        {kOne, minutes(0), minutes(10)},
                                        {kTwo, minutes(20), hours(1)}};
RoomRuleOptions Free() { return {.after_minutes = 30, .moves_per_hundred = 100}; }

TEST(RoomRule, NobodyMovesWithoutOne) {
  const SimulationResult result = Under("none", Nodes(2), kHalfIdle, hours(4));
  EXPECT_DOUBLE_EQ(Of(result, SizeClass::kTwo).wait_p99_s, 160 * 60);
  EXPECT_EQ(result.moved, 0);
}

TEST(RoomRule, BerthMovesOneForThePodThatHasWaitedLongEnough) {
  // At minute 50 it has waited half an hour. One of the two moves: it loses 50 minutes of one GPU,
  // and the 5 that it takes to begin anew.
  const SimulationResult result = Under("berth", Nodes(2), kHalfIdle, hours(4), Free());
  EXPECT_EQ(result.moved, 1);
  EXPECT_EQ(result.placed, 5);
  EXPECT_DOUBLE_EQ(Of(result, SizeClass::kTwo).wait_p99_s, 30 * 60);
  EXPECT_DOUBLE_EQ(result.lost_gpu_hours, 55.0 / 60);
  // All run whole: the one that moved from minute 55 to 235.
  EXPECT_DOUBLE_EQ(Of(result, SizeClass::kAll).served_gpu_hours, 3 + 3 + 2.0 / 6 + 2);
  EXPECT_DOUBLE_EQ(Of(result, SizeClass::kOne).wait_longest_s, 0) << "a move is no wait";
}

TEST(RoomRule, AMovedPodIsCutOffAtTheHorizonAsOthersAre) {
  // From minute 55 to 120 in place of 0 to 120.
  const SimulationResult result = Under("berth", Nodes(2), kHalfIdle, hours(2), Free());
  EXPECT_DOUBLE_EQ(Of(result, SizeClass::kOne).served_gpu_hours, 2 + 65.0 / 60 + 2.0 / 6);
}

TEST(RoomRule, BerthKeepsToItsBudget) {
  RoomRuleOptions options = Free();
  options.moves_per_hundred = 1;  // four pods are placed: less than a move
  EXPECT_EQ(Under("berth", Nodes(2), kHalfIdle, hours(4), options).moved, 0);
  options = Free();
  options.most_moves = 0;
  EXPECT_EQ(Under("berth", Nodes(2), kHalfIdle, hours(4), options).moved, 0);
}

TEST(RoomRule, BerthSparesWhoHasRunForLessThanTenMinutes) {
  // From minute 42 on each node has one pod, which came at minute 41. At minute 50 there is no
  // plan; it looks again five minutes later.
  const SimulationResult result = Under("berth", Nodes(2),
                                        {{kOne, minutes(0), minutes(42)},
                                         {kOne, minutes(0), minutes(10)},
                                         {kOne, minutes(0), minutes(42)},
                                         {kOne, minutes(0), minutes(10)},
                                         {kTwo, minutes(20), hours(1)},
                                         {kOne, minutes(41), hours(3)},
                                         {kOne, minutes(41), hours(3)}},
                                        hours(4), Free());
  EXPECT_EQ(result.moved, 1);
  EXPECT_DOUBLE_EQ(Of(result, SizeClass::kTwo).wait_p99_s, 35 * 60);
}

TEST(RoomRule, KaiMovesAtOnceWithoutACost) {
  const SimulationResult result = Under("kai", Nodes(2), kHalfIdle, hours(4));
  EXPECT_EQ(result.moved, 1);
  EXPECT_DOUBLE_EQ(Of(result, SizeClass::kTwo).wait_p99_s, 1);
  EXPECT_NEAR(result.lost_gpu_hours, (20 * 60 + 1 + 300) / 3600.0, 1e-9);
}

TEST(RoomRule, KaiMovesNobodyWhoWouldHaveNoPlace) {
  std::vector<Arrival> full = kHalfIdle;
  full[3].runs = hours(3);
  EXPECT_EQ(Under("kai", Nodes(2), full, hours(2)).moved, 0);
  EXPECT_EQ(Under("berth", Nodes(2), full, hours(2), Free()).moved, 0);
}

TEST(RoomRule, TheDeschedulerEvictsTheLeastUsedNodeWhileItsPodsFitElsewhere) {
  // Every five minutes from 10 on one of two half-idle nodes is emptied, and its pod starts on the
  // other or on the same.
  const SimulationResult result = Under("descheduler", Nodes(2), kHalfIdle, minutes(21));
  EXPECT_GE(result.evicted, 1);
  EXPECT_EQ(result.moved, 0);
  EXPECT_GT(result.lost_gpu_hours, 0);
  EXPECT_EQ(Of(result, SizeClass::kOne).never, 0);
}

TEST(RoomRule, SameSeedSameMoves) {
  const Workload workload = Nodes(4, 4);
  const Arrivals order{{}, {0, 1, 2, 3}};
  const StreamOptions options{0.9, Lifetimes::kLogNormal, minutes(20), minutes(90)};
  const Stream stream = DrawStream(workload.nodes, workload.tasks, options, 3).value();
  for (const std::string& name : RoomRuleNames()) {
    const auto run = [&] {
      const RoomRuleOptions rule{.after_minutes = 1, .moves_per_hundred = 100, .seed = 7};
      const auto made = MakeRoomRule(name, rule).value();
      return RunTimedSession(workload, order, stream, PolicyNamed("best-fit").value(), 9, {}, 0,
                             nullptr, nullptr, made.get())
          .value();
    };
    const SimulationResult first = run();
    EXPECT_EQ(first.trace, run().trace) << name;
    EXPECT_GT(first.moved + first.evicted, 0) << name;
  }
}

TEST(RoomRule, NamesThoseThereAre) {
  const auto rule = MakeRoomRule("kay", {});
  ASSERT_FALSE(rule.has_value());
  EXPECT_EQ(rule.error().message,
            "rule: want one of none, fluid, berth, kai, descheduler, got \"kay\"");
}

TEST(FluidService, LosesNothingToFragments) {
  const Workload workload = Nodes(2);
  const Stream stream{kHalfIdle, hours(4), 0};
  const Service service = FluidService(workload, stream);
  EXPECT_DOUBLE_EQ(service[static_cast<std::size_t>(SizeClass::kTwo)].wait_p99_s, 0);
}

TEST(FluidService, KeepsThePoolForWhoCameFirst) {
  // Four GPUs, two of them taken for an hour. One of three GPUs comes, then one of one: it waits.
  const Workload workload = Nodes(2);
  const Stream stream{{{kTwo, minutes(0), hours(1)},
                       {kThree, minutes(10), minutes(30)},
                       {kOne, minutes(20), minutes(30)}},
                      hours(4),
                      0};
  const Service service = FluidService(workload, stream);
  EXPECT_DOUBLE_EQ(service[static_cast<std::size_t>(SizeClass::kOne)].wait_p99_s, 40 * 60);
  EXPECT_DOUBLE_EQ(service[static_cast<std::size_t>(SizeClass::kAll)].wait_longest_s, 50 * 60);
}

TEST(FluidService, HasAPoolForEachModel) {
  Workload workload = Nodes(2);
  workload.nodes[1].model = "P100";
  workload.tasks[kThree].gpu_spec = "T4";
  workload.tasks[kOne].gpu_spec = "P100";
  const Stream stream{{{kThree, minutes(0), hours(1)}, {kOne, minutes(1), hours(1)}}, hours(4), 0};
  const Service service = FluidService(workload, stream);
  EXPECT_EQ(service[static_cast<std::size_t>(SizeClass::kAll)].never, 1) << "two T4 for three";
  EXPECT_DOUBLE_EQ(service[static_cast<std::size_t>(SizeClass::kOne)].wait_p99_s, 0)
      << "it waits for another pool";
}

}  // namespace
}  // namespace berth::replay::room_test
