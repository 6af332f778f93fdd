// SPDX-License-Identifier: Apache-2.0
#include "scoring/waste/pod_draws.h"

#include <gtest/gtest.h>

#include <cmath>

#include "test/support/builders.h"

namespace berth::test::waste_potential_test {
namespace {

double WasteOf(ANode node, const RequestMix& mix, const Fleet& fleet = {}) {
  WasteParameters parameters;
  parameters.optimism = 0;  // the mean
  return WastePotential(mix, fleet, parameters).WasteMilli(node.Build());
}

RequestMix Only(const APod& pod) { return {{pod.Shape(), 1}}; }

TEST(WastePotential, IsWhatOneKindOfPodLeaves) {
  const RequestMix shares = Only(APod("p").Share(400).Cpu(1));
  EXPECT_EQ(WasteOf(ANode("n").Gpus(1), shares), 200) << "two of them fit";
  EXPECT_EQ(WasteOf(ANode("n").Gpus(2).Holding(APod("x").Share(500), {1}), shares), 200 + 100);
  EXPECT_EQ(WasteOf(ANode("n").Gpus(1).Holding(APod("x").Share(700), {0}), shares), 300)
      << "none fits";
  EXPECT_EQ(WasteOf(ANode("n").Gpus(3), Only(APod("p").Whole(2).Cpu(1))), 1000);
  EXPECT_EQ(WasteOf(ANode("n").Gpus(4).Cpu(20), Only(APod("p").Whole(1).Cpu(8))), 2000)
      << "the CPU is for two";
  const RequestMix pairs = Only(APod("p").Shares(2, 400).Cpu(1));
  EXPECT_EQ(WasteOf(ANode("n").Gpus(3), pairs), 1000 + 400) << "the fullest fill up together";
  EXPECT_EQ(WasteOf(ANode("n").Gpus(2).Holding(APod("x").Share(500), {1}), pairs), 600 + 100);
  EXPECT_EQ(WasteOf(ANode("n").Gpus(0), shares), 0);
}

TEST(WastePotential, IsAllThatIsFreeWhereNothingGoes) {
  const RequestMix mix = Only(APod("p").Whole(1).Models({"A100"}));
  EXPECT_EQ(WasteOf(ANode("n").Gpus(2).Model("T4"), mix), 2000);
  EXPECT_EQ(WasteOf(ANode("n").Gpus(2).Model("A100"), mix), 0);
  EXPECT_EQ(WasteOf(ANode("n").Gpus(2), {}), 2000) << "nobody is expected";
  EXPECT_EQ(WasteOf(ANode("n").Gpus(2), Only(APod("p").Cpu(1))), 2000);
}

TEST(WastePotential, PodsWithoutGpuTakeTheCpu) {
  const RequestMix both = {{APod("a").Cpu(30).Shape(), 0.9},
                           {APod("b").Whole(1).Cpu(30).Shape(), 0.1}};
  const double waste = WasteOf(ANode("n").Gpus(2).Cpu(64), both);
  EXPECT_GT(waste, 1000) << "they are there first, mostly";
  EXPECT_LT(waste, 2000);
}

TEST(WastePotential, MainMemoryEndsAFillingAsCpuDoes) {
  const auto node = [](int gib) { return ANode("n").Gpus(4).MemoryGib(gib); };
  const RequestMix mix = Only(APod("p").Whole(1).MemoryGib(40));
  EXPECT_EQ(WasteOf(node(80), mix), 2000) << "the memory is for two";
  EXPECT_EQ(WasteOf(node(160), mix), 0);
  EXPECT_EQ(WasteOf(node(30), mix), 4000) << "for none";
  EXPECT_EQ(WasteOf(node(160).Holding(APod("x").MemoryGib(100), {}), mix), 3000);
  const RequestMix both = {{APod("a").MemoryGib(60).Shape(), 0.9},
                           {APod("b").Whole(1).MemoryGib(40).Shape(), 0.1}};
  const double waste = WasteOf(node(100), both);
  EXPECT_GT(waste, 2000) << "pods without GPU are there first, mostly";
  EXPECT_LT(waste, 4000);
  EXPECT_EQ(WasteOf(node(0), Only(APod("p").Whole(1))), 0) << "no pod says how much it needs";
}

TEST(WastePotential, MainMemoryCountsBesideTheMemoryOfGpus) {
  const RequestMix mix = Only(APod("p").Share(500, 8000).MemoryGib(40));
  const Fleet fleet = FleetOf(*SnapshotOf({ANode("a").Gpus(2).MemoryGib(160)}));
  EXPECT_NEAR(WasteOf(ANode("n").Gpus(2).MemoryGib(160), mix, fleet), 0, 1e-9);
  EXPECT_NEAR(WasteOf(ANode("n").Gpus(2).MemoryGib(80), mix, fleet), 1000, 1e-9);
}

TEST(WastePotential, StatesThatDifferALittleInMainMemoryAreOne) {
  const WastePotential potential(Only(APod("p").Whole(1).MemoryGib(40)), {}, WasteParameters{});
  const auto computed_after = [&](int gib) {
    (void)potential.WasteMilli(ANode("n").Gpus(4).MemoryGib(gib).Build());
    return potential.computed();
  };
  EXPECT_EQ(computed_after(160), 1U);
  EXPECT_EQ(computed_after(161), 1U) << "a step is 4 GiB";
  EXPECT_EQ(computed_after(170), 2U);
  EXPECT_EQ(computed_after(400), 3U);
  EXPECT_EQ(computed_after(1000), 3U) << "there is plenty from 100 GiB a GPU on";
}

TEST(WastePotential, OptimismLooksAtTheFillingsThatSuitTheNode) {
  const RequestMix mix = {{APod("a").Share(500).Shape(), 0.5}, {APod("b").Share(700).Shape(), 0.5}};
  const Node node = ANode("n").Gpus(1).Build();
  const auto waste = [&](double optimism) {
    WasteParameters parameters;
    parameters.optimism = optimism;
    return WastePotential(mix, {}, parameters).WasteMilli(node);
  };
  EXPECT_LT(waste(0.1), waste(0.5));
  EXPECT_LT(waste(0.5), waste(0));
  EXPECT_NEAR(waste(100), waste(0), 1);
  EXPECT_GE(waste(0.001), 0);
}

TEST(WastePotential, PodsThatAskForTooMuchCountUntilPatienceEnds) {
  const Node node = ANode("n").Gpus(1).Cpu(10).Holding(APod("x").Share(700), {0}).Build();
  const auto waste = [&](const RequestMix& mix, int patience) {
    WasteParameters parameters;
    parameters.optimism = 0;
    parameters.fills = 256;
    parameters.coverage = 1;
    parameters.patience = patience;
    return WastePotential(mix, {}, parameters).WasteMilli(node);
  };
  const RequestClass whole{APod("w").Whole(1).Shape(), 0.6},
      large{APod("l").Share(650).Shape(), 0.3}, fits{APod("f").Share(300).Shape(), 0.1};
  // One of six draws has to fit; five deviations.
  EXPECT_NEAR(waste({whole, large, fits}, 5), 300 * std::pow(0.9, 6), 47);
  EXPECT_EQ(waste({whole, large, fits}, 400), 0) << "one comes in the end";
  // Pods without GPU do not count, but take what CPU there is.
  const RequestClass light{APod("c").CpuMilli(1).Shape(), 1}, heavy{APod("h").Cpu(10).Shape(), 1};
  RequestClass needs_cpu = fits;
  needs_cpu.shape.cpu_milli = 10'000;
  EXPECT_NEAR(waste({light, whole, large, fits}, 5), 300 * std::pow(0.9, 6), 47);
  EXPECT_NEAR(waste({heavy, whole, large, needs_cpu}, 400), 300 * (1 - 0.1 / 1.1), 27)
      << "if it comes before the first of them";
}

TEST(WastePotential, GpusAreNotToldApartAndThoseOutOfOrderDoNotCount) {
  const RequestMix mix = {{APod("a").Share(300).Shape(), 0.5}, {APod("b").Whole(1).Shape(), 0.5}};
  const double waste = WasteOf(ANode("n").Gpus(3).Holding(APod("x").Share(500), {0}), mix);
  EXPECT_EQ(WasteOf(ANode("m").Gpus(3).Holding(APod("x").Share(500), {2}), mix), waste);
  EXPECT_EQ(WasteOf(ANode("m").Gpus(4).Unhealthy(0).Holding(APod("x").Share(500), {2}), mix),
            waste);
}

TEST(WastePotential, RemembersWhatItHasComputed) {
  const WastePotential potential(Only(APod("p").Share(300)), {}, WasteParameters{});
  const Node node = ANode("n").Gpus(2).Build(), same = ANode("m").Gpus(2).Build();
  const double waste = potential.WasteMilli(node);
  EXPECT_EQ(potential.computed(), 1u);
  EXPECT_EQ(potential.WasteMilli(same), waste);
  EXPECT_EQ(potential.computed(), 1u);
}

TEST(PodDraws, AClassWithModelsIsDrawnMoreOftenWhereItCanGo) {
  const auto snapshot = SnapshotOf({ANode("a").Gpus(1).Model("A"), ANode("b").Gpus(9).Model("B")});
  const RequestMix mix = {{APod("a").Share(500).Models({"A"}).Shape(), 0.1},
                          {APod("b").Share(700).Shape(), 0.9}};
  const ANode node = ANode("n").Gpus(1).Model("A");
  // Drawn one to nine a fill mostly ends with 300, drawn one to one half of them end with 0.
  EXPECT_GT(WasteOf(node, mix), 200);
  EXPECT_LT(WasteOf(node, mix, FleetOf(*snapshot)), 230);
}

TEST(PodDraws, CalibrationMakesAcceptedPodsLookLikeThoseThatArrive) {
  const Fleet fleet =
      FleetOf(*SnapshotOf({ANode("a").Gpus(8).Cpu(96), ANode("b").Gpus(2).Cpu(16)}));
  RequestMix mix = {{APod("a").Whole(8).Cpu(64).Shape(), 0.2},
                    {APod("b").Share(200).Cpu(2).Shape(), 0.6},
                    {APod("c").Cpu(8).Shape(), 0.2}};
  const auto shares = [&] {
    const PodDraws draws(mix, fleet, WasteParameters{});
    std::vector<double> accepted(mix.size(), 0);
    for (const NodeKind& kind : fleet) draws.CountAccepted(kind.state, 0, kind.nodes, accepted);
    const double all = accepted[0] + accepted[1] + accepted[2];
    return std::vector<double>{accepted[0] / all, accepted[1] / all, accepted[2] / all};
  };
  const double before = std::abs(shares()[0] - 0.2);
  for (int round = 0; round < 10; ++round) Calibrate(mix, fleet, {}, WasteParameters{});
  EXPECT_LT(std::abs(shares()[0] - 0.2), before);
  EXPECT_GT(mix[0].draw, mix[1].draw);
}

TEST(PodDraws, DrawsAreTakenOverByClass) {
  RequestMix before = {{APod("a").Whole(8).MemoryGib(3).Shape(), 1, 4.0}};
  RequestMix mix = {{APod("b").Share(200).Shape(), 0.5}, {APod("a").Whole(8).Shape(), 0.5}};
  InheritDraws(before, mix);
  EXPECT_EQ(mix[0].draw, 1.0);
  EXPECT_EQ(mix[1].draw, 4.0);
}

TEST(Fleet, NodesWithOtherMainMemoryAreOfAnotherKind) {
  const auto kinds = [](int gib) {
    return FleetOf(
               *SnapshotOf({ANode("a").Gpus(2).MemoryGib(256), ANode("b").Gpus(2).MemoryGib(gib)}))
        .size();
  };
  EXPECT_EQ(kinds(128), 2U);
  EXPECT_EQ(kinds(257), 1U) << "what the system takes differs a little";
}

TEST(Fleet, CountsNodesByKindAsIfTheyWereEmpty) {
  const auto snapshot = SnapshotOf({ANode("a").Gpus(2).Holding(APod("x").Whole(1), {0}),
                                    ANode("b").Gpus(2), ANode("c").Gpus(4), ANode("d")});
  const Fleet fleet = FleetOf(*snapshot);
  ASSERT_EQ(fleet.size(), 2u);
  EXPECT_EQ(fleet[0].nodes, 2);
  EXPECT_EQ(fleet[0].state.total, 2000);
  EXPECT_EQ(fleet[1].nodes, 1);
}

TEST(Fleet, SamplesNodesAsTheyAre) {
  const auto snapshot =
      SnapshotOf({ANode("a").Gpus(2).Holding(APod("x").Whole(1), {0}), ANode("b").Gpus(2),
                  ANode("c"), ANode("d").Gpus(4), ANode("e").Gpus(1)});
  const auto totals = [&](std::size_t nodes) {
    std::vector<int> found;
    for (const NodeKind& kind : SampleOf(*snapshot, nodes)) found.push_back(kind.state.total);
    return found;
  };
  EXPECT_EQ(totals(10), (std::vector<int>{1000, 2000, 4000, 1000})) << "all that have GPUs";
  EXPECT_EQ(totals(2), (std::vector<int>{1000, 4000}));
}

TEST(PodDraws, CalibrationAlsoLooksAtTheNodesAsTheyAre) {
  const auto full = SnapshotOf(
      {ANode("a").Gpus(2).Holding(APod("x").Share(300), {0}).Holding(APod("y").Share(300), {1})});
  const RequestMix mix = {{APod("a").Whole(1).Shape(), 0.5}, {APod("b").Share(500).Shape(), 0.5}};
  RequestMix empty_alone = mix, both = mix;
  Calibrate(empty_alone, FleetOf(*full), {}, WasteParameters{});
  Calibrate(both, FleetOf(*full), SampleOf(*full, 1), WasteParameters{});
  EXPECT_GT(both[0].draw, empty_alone[0].draw) << "there no whole GPU is free any more";
}

}  // namespace
}  // namespace berth::test::waste_potential_test
