// SPDX-License-Identifier: Apache-2.0
#include "scoring/scorers/scorers.h"

#include <gtest/gtest.h>

#include "scoring/devices/device_picker.h"
#include "scoring/engine/evaluation_table.h"
#include "scoring/engine/profile_tables.h"
#include "scoring/registry.h"
#include "scoring/waste/market.h"
#include "test/support/builders.h"

namespace berth::test::expected_waste_test {
namespace {

int ScoreOf(const ANode& node, const APod& pod, const RequestMix& mix) {
  const Node built = node.Build();
  const auto choices = DeviceChoices(built, pod.Shape(), DeviceRule::kBestScore);
  std::vector<int> scores(choices.size());
  WasteParameters parameters;
  parameters.best_fit = 1;
  ExpectedWaste(mix, {}, parameters).Score(built, pod.Shape(), choices, scores);
  return scores.front();
}

TEST(ExpectedWaste, CostsWhatWasteGrowsAndALittleForWhatIsLeft) {
  const RequestMix mix = {{APod("m").Share(500).Shape(), 1}};
  // In steps of 0.005 GPU. Waste 0 before; 100 that nothing fits into after, that is 20 steps, and
  // 1 / 2 * (64 / 128 + 0.1 / 8) GPU, that is 51.25.
  EXPECT_EQ(
      ScoreOf(ANode("n").Gpus(1).Holding(APod("x").Share(500), {0}), APod("p").Share(400), mix),
      -71);
  // Waste is the same before and after.
  EXPECT_EQ(ScoreOf(ANode("n").Gpus(1), APod("p").Share(500), mix), -56);
  EXPECT_EQ(ScoreOf(ANode("n"), APod("p").Cpu(64), mix), 0);
}

std::vector<NodeIndex> BestOf(const std::vector<ANode>& nodes, const APod& pod,
                              const RequestMix& mix) {
  ProfileTables tables(BuildProfile(*FindBuiltinProfile("expected-waste"), mix).value());
  return tables.Best(SnapshotOf(nodes), pod.Shape());
}

TEST(ExpectedWaste, PutsAShareWhereItsComplementComes) {
  const RequestMix mix = {{APod("a").Share(600).Shape(), 0.5}, {APod("b").Share(400).Shape(), 0.5}};
  const std::vector<ANode> nodes = {ANode("a").Gpus(1).Holding(APod("x").Share(400), {0}),
                                    ANode("b").Gpus(1).Holding(APod("y").Share(600), {0}),
                                    ANode("c").Gpus(1)};
  EXPECT_EQ(BestOf(nodes, APod("p").Share(400), mix), std::vector<NodeIndex>{1});
}

TEST(ExpectedWaste, LeavesTheLastSlotToThoseWhoNeedIt) {
  const RequestMix mix = {{APod("one").Whole(1).Cpu(1).Shape(), 0.5},
                          {APod("eight").Whole(8).Cpu(8).Shape(), 0.5}};
  const std::vector<ANode> nodes = {ANode("a").Gpus(8), ANode("b").Gpus(4), ANode("c").Gpus(4)};
  EXPECT_EQ(BestOf(nodes, APod("p").Whole(1).Cpu(1), mix), (std::vector<NodeIndex>{1, 2}));
}

TEST(ExpectedWaste, LeavesTheModelToThoseWhoNeedIt) {
  const RequestMix mix = {{APod("any").Whole(1).Cpu(1).Shape(), 0.5},
                          {APod("a").Whole(1).Cpu(1).Models({"A"}).Shape(), 0.5}};
  const std::vector<ANode> nodes = {ANode("a").Gpus(2).Model("A"), ANode("b").Gpus(2).Model("B")};
  EXPECT_EQ(BestOf(nodes, APod("p").Whole(1).Cpu(1), mix), std::vector<NodeIndex>{1});
}

TEST(ExpectedWaste, PodsWithoutGpuGoWhereThereIsNone) {
  const RequestMix mix = {{APod("m").Whole(1).Cpu(16).Shape(), 1}};
  const std::vector<ANode> nodes = {ANode("a").Gpus(4), ANode("b")};
  EXPECT_EQ(BestOf(nodes, APod("p").Cpu(8), mix), std::vector<NodeIndex>{1});
}

// One GPU is half used, the other idle: which of them is better depends on what a slot for two is
// worth, and that on the rest of the cluster.
TEST(ExpectedWaste, TheGpuOfAShareFollowsThePrices) {
  const RequestMix mix = {{APod("two").Whole(2).Cpu(1).Shape(), 0.5},
                          {APod("s").Share(700).Cpu(1).Shape(), 0.5}};
  ProfileTables tables(BuildProfile(*FindBuiltinProfile("expected-waste"), mix).value());
  const RequestShape shape = APod("p").Share(100).Cpu(1).Shape();
  const ANode node = ANode("a").Gpus(3).Holding(APod("x").Share(250), {2});
  const auto alone = SnapshotOf({node});
  const auto placement = tables.PlaceOn(alone, shape, 0);
  ASSERT_TRUE(placement.has_value());
  EXPECT_EQ(placement->grants.front().gpu, 2) << "the only slot for two";
  EXPECT_EQ(tables.Best(alone, shape), std::vector<NodeIndex>{0});
}

TEST(ExpectedWaste, NodesThatAreHardlyDifferentAreTies) {
  const RequestMix mix = {{APod("m").Share(301).Shape(), 0.5}, {APod("k").Share(300).Shape(), 0.5}};
  const std::vector<ANode> nodes = {ANode("a").Gpus(1).Holding(APod("x").Share(300), {0}),
                                    ANode("b").Gpus(1).Holding(APod("x").Share(301), {0})};
  EXPECT_EQ(BestOf(nodes, APod("p").Share(300), mix), std::vector<NodeIndex>{1})
      << "the fuller one";
}

TEST(ExpectedWaste, PacksWhereNothingIsKnown) {
  const std::vector<ANode> nodes = {
      ANode("a").Gpus(8), ANode("b").Gpus(8).Holding(APod("x").Whole(4), {0, 1, 2, 3}),
      ANode("c").Gpus(8).Holding(APod("y").Whole(3), {0, 1, 2}), ANode("d").Gpus(8)};
  EXPECT_EQ(BestOf(nodes, APod("p").Whole(4), {}), std::vector<NodeIndex>{1});
  EXPECT_EQ(BestOf(nodes, APod("p").Whole(1), {}), std::vector<NodeIndex>{2});
  EXPECT_EQ(BestOf(nodes, APod("p").Share(300), {}), std::vector<NodeIndex>{2});
  EXPECT_EQ(BestOf(nodes, APod("p").Whole(8), {}), (std::vector<NodeIndex>{0, 3}));
}

TEST(ExpectedWaste, AMixOfSmallPodsAloneDoesNotOpenWholeNodes) {
  const RequestMix twos = {{APod("two").Whole(2).Cpu(1).Shape(), 1}};
  const std::vector<ANode> nodes = {ANode("a").Gpus(8),
                                    ANode("b").Gpus(8).Holding(APod("x").Whole(2), {0, 1})};
  EXPECT_EQ(BestOf(nodes, APod("p").Whole(2).Cpu(1), twos), std::vector<NodeIndex>{1});
}

// 39 cores are asked for with every GPU.
RequestMix AskingForMuchCpu() {
  return {{APod("gpu").Whole(1).Cpu(20).Shape(), 0.5}, {APod("none").Cpu(19).Shape(), 0.5}};
}

Fleet FleetWith(std::int64_t cores_per_gpu) {
  return FleetOf(*SnapshotOf({ANode("a").Gpus(2).Cpu(2 * cores_per_gpu)}));
}

TEST(CpuPrice, RisesWhereAsMuchIsAskedForAsThereIs) {
  const RequestMix mix = AskingForMuchCpu();
  EXPECT_EQ(CpuPriceOf(mix, FleetWith(42)), 0) << "93 % is asked for";
  EXPECT_NEAR(CpuPriceOf(mix, FleetWith(40)), kCpuPrice / 2, 1e-9) << "97.5 %";
  EXPECT_EQ(CpuPriceOf(mix, FleetWith(39)), kCpuPrice);
  EXPECT_EQ(CpuPriceOf(mix, FleetWith(10)), kCpuPrice);
}

TEST(CpuPrice, IsNothingWhereNothingIsKnown) {
  EXPECT_EQ(CpuPriceOf({}, FleetWith(10)), 0);
  EXPECT_EQ(CpuPriceOf(AskingForMuchCpu(), {}), 0);
  EXPECT_EQ(CpuPriceOf({{APod("none").Cpu(19).Shape(), 1}}, FleetWith(10)), 0);
  EXPECT_EQ(CpuPriceOf(AskingForMuchCpu(), FleetOf(*SnapshotOf({ANode("a")}))), 0);
}

TEST(ExpectedWaste, PodsWithoutGpuPackTheCpuThatIsScarce) {
  const RequestMix mix = AskingForMuchCpu();
  const std::vector<ANode> nodes = {
      ANode("a").Gpus(1).Cpu(64).Holding(APod("x").Whole(1).Cpu(16), {0}),
      ANode("b").Gpus(1).Cpu(64).Holding(APod("y").Whole(1).Cpu(32), {0})};
  const APod pod = APod("p").Cpu(16);
  const auto best = [&](const std::vector<ANode>& among, std::int64_t cores_per_gpu) {
    ProfileTables tables(
        BuildProfile(*FindBuiltinProfile("expected-waste"), mix, {}, FleetWith(cores_per_gpu))
            .value());
    return tables.Best(SnapshotOf(among), pod.Shape());
  };
  EXPECT_EQ(best(nodes, 39), std::vector<NodeIndex>{1});
  EXPECT_EQ(best(nodes, 42), (std::vector<NodeIndex>{0, 1})) << "there is plenty";
  EXPECT_EQ(best({nodes[0], nodes[1], ANode("c").Cpu(64)}, 39), std::vector<NodeIndex>{2})
      << "CPU beside no GPU costs nothing";

  // 32 and 16 of 128 cores are left: 0.2 GPU * 1 / 4 and 1 / 8, in steps of 0.005 GPU.
  const ExpectedWaste scorer(mix, FleetWith(39), {});
  const auto score = [&](const ANode& node) {
    const Node built = node.Build();
    int points = 0;
    scorer.Score(built, pod.Shape(), std::vector<DeviceChoice>(1), {&points, 1});
    return points;
  };
  EXPECT_EQ(score(nodes[0]), -10);
  EXPECT_EQ(score(nodes[1]), -5);
}

TEST(ExpectedWaste, PodsWithoutGpuStayEqualOnNodesThatAreEmptyOrNot) {
  const std::vector<ANode> nodes = {ANode("a").Cpu(64),
                                    ANode("b").Cpu(64).Holding(APod("x").Cpu(8), {})};
  EXPECT_EQ(BestOf(nodes, APod("p").Cpu(1), {}), (std::vector<NodeIndex>{0, 1}));
}

}  // namespace
}  // namespace berth::test::expected_waste_test
