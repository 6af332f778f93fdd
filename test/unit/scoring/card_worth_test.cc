// SPDX-License-Identifier: Apache-2.0
//
// Memory of a share as a dimension of the expected waste.
#include "scoring/waste/gpu_state.h"

#include <gtest/gtest.h>

#include "scoring/engine/profile_tables.h"
#include "scoring/registry.h"
#include "scoring/scorers/scorers.h"
#include "scoring/waste/fleet.h"
#include "scoring/waste/market.h"
#include "scoring/waste/pod_draws.h"
#include "test/support/builders.h"

namespace berth::test::card_worth_test {
namespace {

Fleet FleetWith(const std::vector<ANode>& nodes) { return FleetOf(*SnapshotOf(nodes)); }
RequestMix Only(const APod& pod) { return {{pod.Shape(), 1}}; }

TEST(CardWorth, CountsComputeAloneWithoutMemorySizes) {
  const Fleet fleet = FleetWith({ANode("n").Gpus(2)});
  const RequestMix mix = {{APod("a").Share(300).Shape(), 0.5}, {APod("b").Whole(2).Shape(), 0.5}};
  EXPECT_FALSE(WorthOf(mix, fleet).counts_memory);
  EXPECT_FALSE(WorthOf(Only(APod("p").Share(300, 4000)), {}).counts_memory)
      << "the memory of the fleet is unknown";
}

TEST(CardWorth, IsMoreOfWhatMoreIsAskedOf) {
  const Fleet fleet = FleetWith({ANode("n").Gpus(2, 16'000)});
  const CardWorth worth = WorthOf(Only(APod("p").Share(250, 8000)), fleet);
  EXPECT_TRUE(worth.counts_memory);
  EXPECT_NEAR(worth.memory / worth.compute, 16, 1e-9) << "twice as much, to the power of four";
  EXPECT_NEAR(worth.memory + worth.compute, 1, 1e-9);
  EXPECT_NEAR(worth.GpusOf(APod("w").Whole(3).Shape()), 3, 1e-9);
  EXPECT_NEAR(worth.GpusOf(APod("p").Share(250, 8000).Shape()), (0.25 + 16 * 0.5) / 17, 1e-9);
}

// Half of either dimension is asked for, so a card with 900 and 4,000 of 16,000 MiB free is worth
// (900 + 250) / 2.
const APod kHalf = APod("half").Share(500, 8000);
ANode OneFullOfMemory() {
  return ANode("n").Gpus(2, 16'000).Holding(APod("x").Share(100, 12'000), {0});
}

TEST(CardWorth, CountsACardWithoutMemoryAsWaste) {
  const RequestMix mix = Only(kHalf);
  const Fleet fleet = FleetWith({OneFullOfMemory()});
  const Node node = OneFullOfMemory().Build();
  WasteParameters parameters;
  parameters.optimism = 0;
  EXPECT_NEAR(WastePotential(mix, fleet, parameters).WasteMilli(node), 575, 1e-9);
  EXPECT_NEAR(FragmentationGradient(mix, WorthOf(mix, fleet)).FragmentMilli(node), 575, 1e-9);
  EXPECT_NEAR(FragmentationGradient(mix).FragmentMilli(node), 0, 1e-9) << "as it was published";
}

TEST(CardWorth, DoesNotDependOnTheOrderOfCards) {
  const ANode one = OneFullOfMemory();
  const ANode other = ANode("m").Gpus(2, 16'000).Holding(APod("x").Share(100, 12'000), {1});
  const CardWorth worth = WorthOf(Only(kHalf), FleetWith({one}));
  EXPECT_EQ(worth.StateOf(one.Build()).Hash(0), worth.StateOf(other.Build()).Hash(0));
  EXPECT_NEAR(worth.MilliOf(worth.StateOf(one.Build())), 575 + 1000, 1e-9);
}

TEST(CardWorth, AfterAPlacementIsThatOfTheNodeThatHasIt) {
  const RequestMix mix = Only(kHalf);
  const CardWorth worth = WorthOf(mix, FleetWith({OneFullOfMemory()}));
  const Node before = OneFullOfMemory().Build();
  for (const int gpu : {0, 1}) {
    const APod pod = APod("p").Share(300, 4000);
    const Node after = OneFullOfMemory().Holding(pod, {gpu}).Build();
    const DeviceChoice choice{std::uint64_t{1} << gpu, 300, 4000};
    EXPECT_EQ(worth.StateOf(before).After(before, pod.Shape(), choice).Hash(0),
              worth.StateOf(after).Hash(0));
  }
  const APod whole = APod("w").Whole(1);
  EXPECT_EQ(worth.StateOf(before).After(before, whole.Shape(), {2, 1000, 16'000}).Hash(0),
            worth.StateOf(OneFullOfMemory().Holding(APod("all").Share(1000, 16'000), {1}).Build())
                .Hash(0));
}

TEST(CardWorth, UsedIsWhatIsWorthTheMost) {
  const auto snapshot = SnapshotOf({OneFullOfMemory()});
  EXPECT_NEAR(UsedOf(*snapshot), 0.05, 1e-9);
  EXPECT_NEAR(UsedOf(*snapshot, WorthOf(Only(kHalf), FleetOf(*snapshot))), 1 - 1.575 / 2, 1e-9);
}

TEST(CardWorth, RoomForMuchMemoryIsAGood) {
  const RequestMix mix = Only(APod("p").Share(100, 12'000));
  const auto snapshot = SnapshotOf({OneFullOfMemory()});
  const Fleet fleet = FleetOf(*snapshot);
  const ModelGroups groups(mix);
  const ScarcityMarket market(mix, groups, fleet, {}, 1, WorthOf(mix, fleet));
  std::vector<int> supply(market.goods()), taken(market.goods());
  market.Supply(snapshot->node(0), supply);
  market.Taken(snapshot->node(0), APod("q").Share(100, 8000).Shape(), {2, 100, 8000}, taken);
  ASSERT_EQ(market.goods(), 3U) << "GPU, room in memory, slots";
  EXPECT_EQ(supply[1], 1) << "only the idle card has room";
  EXPECT_EQ(taken[1], 1);
}

std::vector<NodeIndex> BestOf(const std::vector<ANode>& nodes, const APod& pod,
                              const RequestMix& mix) {
  ProfileTables tables(
      BuildProfile(*FindBuiltinProfile("expected-waste"), mix, {}, FleetWith(nodes)).value());
  return tables.Best(SnapshotOf(nodes), pod.Shape());
}

TEST(ExpectedWaste, PutsAShareWhereItsMemoryFits) {
  const RequestMix mix = Only(APod("m").Share(100, 12'000));
  const std::vector<ANode> nodes = {ANode("a").Gpus(1).Holding(APod("x").Share(100, 4000), {0}),
                                    ANode("b").Gpus(1).Holding(APod("y").Share(100, 12'000), {0})};
  EXPECT_EQ(BestOf(nodes, APod("p").Share(100, 4000), mix), std::vector<NodeIndex>{1})
      << "as much compute is free on both";
}

TEST(ExpectedWaste, PutsMemoryBesideComputeAndComputeBesideMemory) {
  const APod memory = APod("m").Share(100, 12'000), compute = APod("c").Share(800, 3000);
  const RequestMix mix = {{memory.Shape(), 0.5}, {compute.Shape(), 0.5}};
  const std::vector<ANode> nodes = {ANode("a").Gpus(1),
                                    ANode("b").Gpus(1).Holding(APod("x").Share(100, 3000), {0}),
                                    ANode("c").Gpus(1).Holding(APod("y").Share(800, 3000), {0})};
  EXPECT_EQ(BestOf(nodes, memory, mix), std::vector<NodeIndex>{2});
  const std::vector<ANode> others = {ANode("a").Gpus(1),
                                     ANode("b").Gpus(1).Holding(APod("x").Share(100, 3000), {0}),
                                     ANode("c").Gpus(1).Holding(APod("y").Share(100, 12'000), {0})};
  EXPECT_EQ(BestOf(others, compute, mix), std::vector<NodeIndex>{2});
}

}  // namespace
}  // namespace berth::test::card_worth_test
