// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/power_meter.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "bench/replay/engine_placer.h"
#include "bench/replay/session.h"
#include "scoring/registry.h"
#include "test/support/builders.h"

namespace berth::replay::power_meter_test {
namespace {

using test::ANode;
using test::APod;
using test::SnapshotOf;

// An idle T4 10 W, one in use 70; the CPUs beside them 20 and 165 W, with 48 vCPUs each.
const std::vector<TraceNode> kTwoNodes = {{"a", 48'000, 1024, 2, "T4"}, {"b", 8000, 1024, 1, "X"}};
const std::vector<TraceTask> kTwoTasks = {{"one", 1000, 1, 1, 1000, "T4"},
                                          {"half", 0, 1, 1, 500, "T4"}};

TEST(PowerMeter, FollowsTheClusterFromSnapshotToSnapshot) {
  PowerMeter meter;
  const auto idle =
      SnapshotOf({ANode("a").Model("Tesla-T4").Gpus(2), ANode("b").Model("X").Gpus(1)});
  EXPECT_EQ(meter.Watts(idle), 20);
  const auto busy = std::make_shared<const Snapshot>(idle->With(
      0, std::make_shared<const Node>(
             ANode("a").Model("Tesla-T4").Gpus(2).Holding(APod("p").Share(100), {1}).Build())));
  EXPECT_EQ(meter.Watts(busy), 80);
  EXPECT_EQ(meter.Watts(busy), 80);
  EXPECT_EQ(meter.Watts(idle), 20) << "the pod has left";
}

TEST(PowerMeter, LeavesOutWhatItKnowsNothingOf) {
  const auto cluster =
      SnapshotOf({ANode("a").Model("Tesla-T4").Gpus(2), ANode("b").Model("X").Gpus(3),
                  ANode("c").Places(4), ANode("d")});
  EXPECT_EQ(PowerMeter().Watts(cluster), 20);
  EXPECT_EQ(GpusWithoutWatts(*cluster), 7);
}

TEST(RunReplay, ReportsThePowerAtEveryPercentThatArrived) {
  Engine engine(BuildProfile(*FindBuiltinProfile("first-fit"), {}).value());
  const Arrivals arrivals{{0, 1}, {0, 1}};
  EnginePlacer placer(engine, OrderedNodes(kTwoNodes, arrivals), 1);
  const ReplayResult result = RunReplay(kTwoNodes, kTwoTasks, arrivals, placer, {}).value();
  EXPECT_EQ(result.watts[33], 70 + 10 + 165);
  EXPECT_EQ(result.watts[50], 2 * 70 + 165);
  EXPECT_FALSE(result.watts[34].has_value());
  EXPECT_EQ(result.gpus_without_watts, 1);
}

TEST(RunReplay, KnowsNoPowerWhereAServerPlaces) {
  class Elsewhere final : public Placer {
    Result<std::optional<Placement>> Place(const PodRequest&) override { return std::nullopt; }
  } placer;
  const ReplayResult result = RunReplay(kTwoNodes, kTwoTasks, {{0}, {0, 1}}, placer, {}).value();
  EXPECT_FALSE(result.gpus_without_watts.has_value());
  EXPECT_FALSE(result.watts[33].has_value());
}

TEST(Simulate, AddsUpTheEnergyOfAllNodes) {
  // A GPU runs for the first half of two hours: 245 Wh, and then 20 + 20 W with the cluster idle.
  const Workload workload{"w", kTwoNodes, kTwoTasks};
  Stream stream;
  stream.arrivals = {{0, Millis(0), std::chrono::hours(1)}};
  stream.horizon = std::chrono::hours(2);
  const ProfileSpec& spec = *FindBuiltinProfile("first-fit");
  const SimulationResult result =
      RunTimedSession(workload, {{0}, {0, 1}}, stream, {spec.name, spec}, 1, {}).value();
  EXPECT_DOUBLE_EQ(result.kwh, 0.245 + 0.040);
  EXPECT_EQ(result.gpus_without_watts, 1);
  EXPECT_DOUBLE_EQ(result.samples.front().watts, 245);
  EXPECT_DOUBLE_EQ(result.samples.back().watts, 40);
}

}  // namespace
}  // namespace berth::replay::power_meter_test
