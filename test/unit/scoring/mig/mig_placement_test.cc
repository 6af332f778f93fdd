// SPDX-License-Identifier: Apache-2.0
//
// MIG devices through the engine: filter, choice of the device, scores. One test per combination of
// nodes that are cut, shared and whole.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scoring/engine/engine.h"
#include "scoring/groups/group_domains.h"
#include "scoring/mig/mig_tables.h"
#include "scoring/registry.h"
#include "test/support/builders.h"
#include "test/support/mig_nodes.h"
#include "topology/mig/mig_product.h"

namespace berth::test::mig_placement_test {
namespace {

using Grants = std::vector<MigGrant>;

RequestMix SomeMix() {
  return {{APod("x").Share(500).Cpu(8).Shape(), 0.5},
          {APod("y").Whole(1).Cpu(8).Shape(), 0.3},
          {APod("z").Whole(8).Cpu(64).Shape(), 0.2}};
}

class Decider {
 public:
  explicit Decider(std::vector<ANode> nodes, const std::string& profile = "expected-waste")
      : snapshot_(SnapshotOf(nodes)),
        engine_(BuildProfile(*FindBuiltinProfile(profile), SomeMix()).value()) {}

  // The best nodes, by name.
  std::string Best(const APod& pod) {
    std::string names;
    for (const NodeIndex node : engine_.Best(snapshot_, pod.Shape())) {
      names.append(names.empty() ? "" : " ").append(snapshot_->names().name(node));
    }
    return names;
  }
  Reason ReasonOf(const APod& pod, const std::string& node) {
    const NodeIndex index = snapshot_->names().Find(node);
    return engine_.Filter(snapshot_, pod.Shape(), std::span(&index, 1)).front();
  }
  Placement On(const APod& pod, const std::string& node) {
    const auto placed = engine_.PlaceOn(snapshot_, pod.Shape(), snapshot_->names().Find(node));
    EXPECT_TRUE(placed) << TextOf(placed.error());
    return placed ? *placed : Placement{};
  }

 private:
  std::shared_ptr<const Snapshot> snapshot_;
  Engine engine_;
};

Reason Says(const ANode& node, const APod& pod) {
  return FirstObjection(node.Build(), pod.Shape());
}

TEST(MigFilter, SaysWhyTheDevicesCannotBeGiven) {
  const ANode cut = ANode("n").Mig(StaticMig(1, kBalanced));
  const ANode dynamic = ANode("n").Mig(DynamicMig(1));
  EXPECT_EQ(Says(cut, APod("p").Mig("1g.5gb", 2)), Reason::kFits);
  EXPECT_EQ(Says(cut, APod("p").Mig("1g.5gb", 3)), Reason::kTooFewMig);
  EXPECT_EQ(Says(cut, APod("p").Mig("4g.20gb")), Reason::kNoMigProfile);
  EXPECT_EQ(Says(cut, APod("p").Mig("1g.10gb+me")), Reason::kNoMigProfile);
  EXPECT_EQ(Says(cut, APod("p").MigNeeding(1, 0)), Reason::kMigByNameOnly);
  EXPECT_EQ(Says(dynamic, APod("p").Mig("4g.20gb").Mig("3g.20gb")), Reason::kFits);
  EXPECT_EQ(Says(dynamic, APod("p").Mig("4g.20gb", 2)), Reason::kTooFewMig);
  EXPECT_EQ(Says(dynamic, APod("p").MigNeeding(3, 0, 2)), Reason::kFits);
  EXPECT_EQ(Says(dynamic, APod("p").MigNeeding(3, 0, 3)), Reason::kTooFewMig);
  EXPECT_EQ(Says(ANode("n").Gpus(8), APod("p").Mig("1g.5gb")), Reason::kNoMig);
  ANode busy = dynamic;
  busy.HoldingMig(APod("a").Mig("1g.5gb"), {AGrant(0, "1g.5gb", 0)});
  EXPECT_EQ(Says(busy, APod("p").Mig("4g.20gb")), Reason::kMigBusy);
  EXPECT_EQ(Says(busy, APod("p").Mig("3g.20gb")), Reason::kFits);
}

TEST(MigFilter, GivesByNeedAloneWhereHamisAgentMakesTheDevices) {
  MigSpec spec = DynamicMig(2, "H100-80GB");
  spec.agent = "hami";
  EXPECT_EQ(Says(ANode("n").Mig(spec), APod("p").Mig("1g.10gb")), Reason::kMigByNeedOnly);
  EXPECT_EQ(Says(ANode("n").Mig(spec), APod("p").MigNeeding(1, 0)), Reason::kFits);
}

TEST(MigFilter, GivesOnlyWhatTheAgentMakesAndNothingOfAClosedGpu) {
  MigSpec spec = DynamicMig(2);
  const MigProduct& product = *spec.product;
  spec.gpus[0].offered = 0;
  spec.gpus[1].offered = product.PlacementsOf(*product.RowOf(ProfileOf("1g.5gb")));
  EXPECT_EQ(Says(ANode("n").Mig(spec), APod("p").Mig("1g.5gb", 7)), Reason::kFits);
  EXPECT_EQ(Says(ANode("n").Mig(spec), APod("p").Mig("1g.5gb", 8)), Reason::kTooFewMig);
  EXPECT_EQ(Says(ANode("n").Mig(spec), APod("p").Mig("1g.10gb")), Reason::kNoMigProfile);
  EXPECT_EQ(Says(ANode("n").Mig(spec), APod("p").MigNeeding(2, 0)), Reason::kNoMigProfile);
  const auto plan = PlanMig(spec, MigUse(spec), MigWith(1));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->grants.front().gpu, 1);
}

TEST(MigFilter, LeavesDevicesToTheSchedulerThatGivesThemOut) {
  MigSpec spec = DynamicMig(1);
  spec.foreign = true;
  const ANode node = ANode("n").Gpus(2).Mig(spec);
  EXPECT_EQ(Says(node, APod("p").Mig("1g.5gb")), Reason::kMigForeign);
  EXPECT_EQ(Says(node, APod("p").MigNeeding(1, 0)), Reason::kMigForeign);
  EXPECT_EQ(Says(node, APod("p").Whole(2)), Reason::kFits);
  EXPECT_FALSE(
      PlanMig(spec, MigUse(spec), std::get<MigSlices>(APod("p").Mig("1g.5gb").Shape().gpus)));
}

TEST(MigFilter, KeepsCutGpusFromPodsThatWantThemWholeAndTheReverse) {
  const ANode cut = ANode("n").Mig(DynamicMig(8));
  EXPECT_EQ(Says(cut, APod("p").Whole(1)), Reason::kNoGpu);
  EXPECT_EQ(Says(cut, APod("p").Share(100)), Reason::kNoGpu);
  const ANode both = ANode("n").Gpus(4).Mig(DynamicMig(4));
  EXPECT_EQ(Says(both, APod("p").Whole(4)), Reason::kFits);
  EXPECT_EQ(Says(both, APod("p").Whole(5)), Reason::kTooFewGpus);
  EXPECT_EQ(Says(both, APod("p").Mig("7g.40gb", 4)), Reason::kFits);
  EXPECT_EQ(Says(both, APod("p").Mig("7g.40gb", 5)), Reason::kTooFewMig);
}

TEST(MigFilter, KeepsPodsWithGpusOffANodeInTroubleEachWithItsReason) {
  const std::vector<std::pair<MigTrouble, Reason>> cases = {
      {MigTrouble::kChanging, Reason::kMigChanging},
      {MigTrouble::kFailed, Reason::kMigFailed},
      {MigTrouble::kInvalid, Reason::kMigInvalid},
      {MigTrouble::kStale, Reason::kMigStale}};
  for (const auto& [trouble, reason] : cases) {
    MigSpec spec = StaticMig(2, kSevenSmall);
    spec.trouble = trouble;
    const ANode node = ANode("n").Gpus(2).Mig(spec);
    for (const APod& pod : {APod("p").Mig("1g.5gb"), APod("p").Whole(1), APod("p").Share(1)}) {
      EXPECT_EQ(Says(node, pod), reason) << CodeOf(reason);
      EXPECT_EQ(VerdictOf(reason), Verdict::kUnresolvable);
    }
    EXPECT_EQ(Says(node, APod("p").Cpu(1)), Reason::kFits);
  }
}

// 56 devices of 8 A100-40GB under strategy single: each counts as a GPU.
ANode SingleNode(const std::string& name) {
  MigSpec spec;
  spec.single = ProfileOf("1g.5gb");
  spec.single_memory_mib = 4864;
  return ANode(name).Gpus(56, 4864).Model("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb").Mig(spec);
}

TEST(MigFilter, UnderStrategySingleEachDeviceCountsAsAGpu) {
  const ANode node = SingleNode("n");
  EXPECT_EQ(Says(node, APod("p").Whole(56)), Reason::kFits);
  EXPECT_EQ(Says(node, APod("p").Share(500)), Reason::kMigNotShared);
  EXPECT_EQ(Says(node, APod("p").Mig("1g.5gb")), Reason::kNoMig);
  EXPECT_EQ(Says(node, APod("p").MigNeeding(1, 4000, 3)), Reason::kFits);
  EXPECT_EQ(Says(node, APod("p").MigNeeding(2, 0)), Reason::kNoMigProfile);
  EXPECT_EQ(Says(node, APod("p").MigNeeding(1, 4000, 57)), Reason::kTooFewGpus);
  EXPECT_EQ(PodsThatFit(node.Build(), APod("p").MigNeeding(1, 4000, 3).Shape()), 18);
  const Placement placement = Decider({node}).On(APod("p").MigNeeding(1, 4000, 2), "n");
  EXPECT_EQ(placement.grants, (std::vector<DeviceGrant>{{0, 1000, 4864}, {1, 1000, 4864}}));
  EXPECT_TRUE(placement.mig.empty());
}

TEST(MigFilter, CountsUsersOfSharedDevices) {
  MigSpec spec;
  spec.shared = {{{ProfileOf("1g.5gb"), true}, 2}};
  const ANode node = ANode("n").Mig(spec);
  EXPECT_EQ(Says(node, APod("p").Mig("1g.5gb", 2, true)), Reason::kFits);
  EXPECT_EQ(Says(node, APod("p").Mig("1g.5gb", 3, true)), Reason::kTooFewMig);
  EXPECT_EQ(Says(node, APod("p").Mig("1g.5gb")), Reason::kNoMigProfile);
  EXPECT_EQ(PodsThatFit(node.Build(), APod("p").Mig("1g.5gb", 1, true).Shape()), 2);
}

TEST(MigFilter, CountsUsersOfDevicesThatKeepTheirName) {
  MigSpec spec = StaticMig(1, kSevenSmall);
  spec.shared = {{{ProfileOf("3g.20gb"), false}, 2}};
  const ANode node = ANode("n").Mig(spec);
  EXPECT_EQ(Says(node, APod("p").Mig("3g.20gb", 2)), Reason::kFits);
  EXPECT_EQ(Says(node, APod("p").Mig("3g.20gb", 2).Isolated(Isolation::kHardware)),
            Reason::kNotItsOwn);
  EXPECT_EQ(Says(node, APod("p").Mig("1g.5gb").Isolated(Isolation::kHardware)), Reason::kFits);
  const Placement placement = Decider({node}).On(APod("p").Mig("3g.20gb", 2), "n");
  EXPECT_TRUE(node.Build().CanTake(placement));
}

TEST(MigPlan, CutsWhereLeastIsLost) {
  Decider decider({ANode("n").Mig(DynamicMig(2))});
  const MigProduct& product = *FindMigProduct("A100-40GB");
  const MigStates states = MigStates::Of(product).value();
  const MigPotential potential(states, BerthWeights(product));
  for (const char* profile : {"1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"}) {
    const int row = *product.RowOf(ProfileOf(profile));
    std::map<std::int64_t, int> placements;  // by loss; of equal ones the first
    for (MigSet left = product.PlacementsOf(row); left != 0; left &= left - 1) {
      const int placement = std::countr_zero(left);
      placements.emplace(potential.Loss(0, placement), placement);
    }
    const MigPlacement& best = product.placement(placements.begin()->second);
    EXPECT_EQ(decider.On(APod("p").Mig(profile), "n").mig,
              (Grants{AGrant(0, profile, best.start)}));
  }
  EXPECT_EQ(decider.On(APod("p").Mig("3g.20gb"), "n").mig, (Grants{AGrant(0, "3g.20gb", 4)}));
  EXPECT_EQ(decider.On(APod("p").Mig("4g.20gb").Mig("3g.20gb"), "n").mig,
            (Grants{AGrant(0, "4g.20gb", 0), AGrant(0, "3g.20gb", 4)}));
}

TEST(MigPlan, BreaksNoEmptyGpuWhileABrokenOneFits) {
  ANode node = ANode("n").Mig(DynamicMig(3));
  node.HoldingMig(APod("a").Mig("1g.5gb"), {AGrant(1, "1g.5gb", 6)});
  const Grants got = Decider({node}).On(APod("p").Mig("1g.5gb"), "n").mig;
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].gpu, 1);
}

TEST(MigPlan, SaysNoMoreThanTheProfileWhereTheNodePicks) {
  MigSpec spec = DynamicMig(2);
  spec.allocator = MigAllocator::kFirstFit;
  const ANode node = ANode("n").Mig(spec);
  EXPECT_EQ(Decider({node}).On(APod("p").Mig("1g.5gb"), "n").mig, (Grants{AGrantOf("1g.5gb")}));
  const auto plan = PlanMig(spec, MigUse(spec), *APod("p").Mig("1g.5gb").Shape().mig());
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->slots.front().gpu, 0U);
  EXPECT_EQ(MigPlacementName(*spec.product, plan->slots.front().placement), "1g.5gb at 0");
}

TEST(MigPlan, PlansSeveralProfilesTogether) {
  // 2g wants what leaves most, and 1g.10gb may begin at 6 where 2g may not.
  ANode node = ANode("n").Mig(DynamicMig(1));
  node.HoldingMig(APod("a").Mig("4g.20gb"), {AGrant(0, "4g.20gb", 0)});
  EXPECT_EQ(Says(node, APod("p").Mig("1g.10gb").Mig("2g.10gb")), Reason::kFits);
  EXPECT_EQ(Decider({node}).On(APod("p").Mig("1g.10gb").Mig("2g.10gb"), "n").mig,
            (Grants{AGrant(0, "2g.10gb", 4), AGrant(0, "1g.10gb", 6)}));
}

TEST(MigPacking, TakesAnInstanceThatIsThereBeforeItCutsAGpu) {
  Decider decider(
      {ANode("cut").Mig(StaticMig(8, kSevenSmall)), ANode("dynamic").Mig(DynamicMig(8))});
  EXPECT_EQ(decider.Best(APod("p").Mig("1g.5gb")), "cut");
  EXPECT_EQ(decider.Best(APod("p").Mig("3g.20gb")), "dynamic");
}

TEST(MigPacking, PrefersTheFullestNodeSoThatOthersEmpty) {
  ANode used = ANode("b").Mig(StaticMig(8, kSevenSmall));
  used.HoldingMig(APod("x").Mig("1g.5gb"), {AGrantOf("1g.5gb")});
  Decider decider(
      {ANode("a").Mig(StaticMig(8, kSevenSmall)), used, ANode("c").Mig(StaticMig(8, kSevenSmall))});
  EXPECT_EQ(decider.Best(APod("p").Mig("1g.5gb")), "b");
}

TEST(MigPacking, ChoosesTheNodeWhoseGpusLoseLeast) {
  // b has a GPU whose left half is broken already: a 1g there keeps the room for 7g, 4g and 3g of
  // a.
  ANode broken = ANode("b").Mig(DynamicMig(1));
  broken.HoldingMig(APod("x").Mig("1g.5gb"), {AGrant(0, "1g.5gb", 0)});
  Decider decider({ANode("a").Mig(DynamicMig(1)), broken});
  EXPECT_EQ(decider.Best(APod("p").Mig("1g.5gb")), "b");
  EXPECT_EQ(decider.Best(APod("p").Mig("4g.20gb")), "a");
}

TEST(MigPacking, PredictsTheDeviceWhereTheNodePicks) {
  // First fit breaks the empty GPU 0 of a; on b its first GPU is broken already.
  MigSpec first_fit = DynamicMig(2);
  first_fit.allocator = MigAllocator::kFirstFit;
  ANode a = ANode("a").Mig(first_fit), b = ANode("b").Mig(first_fit);
  a.HoldingMig(APod("x").Mig("1g.5gb"), {AGrant(1, "1g.5gb", 0)});
  b.HoldingMig(APod("y").Mig("1g.5gb"), {AGrant(0, "1g.5gb", 0)});
  EXPECT_EQ(Decider({a, b}).Best(APod("p").Mig("1g.5gb")), "b");
}

TEST(MigByClaims, TheDeviceThatKubeSchedulerTakesDecidesAboutTheNode) {
  // It takes the lowest start of the first GPU: on `whole` one that nobody broke into.
  ANode whole = ANode("whole").Mig(MigByClaims(1)), broken = ANode("broken").Mig(MigByClaims(1));
  broken.ClaimedMig(0, "1g.5gb", 6);
  EXPECT_EQ(Decider({broken, whole}).Best(APod("p").Mig("1g.5gb")), "broken");
  EXPECT_EQ(Decider({broken, whole}).Best(APod("p").Mig("4g.20gb")), "broken");
  EXPECT_EQ(Decider({broken, whole}).Best(APod("p").Mig("7g.40gb")), "whole");
  // Its order of GPUs, not that of their numbers.
  MigSpec other_first = MigByClaims(2);
  std::swap(other_first.gpus[0], other_first.gpus[1]);
  ANode second = ANode("second").Mig(other_first), first = ANode("first").Mig(MigByClaims(2));
  for (ANode* node : {&second, &first}) node->ClaimedMig(1, "1g.5gb", 6);
  EXPECT_EQ(Decider({first, second}).Best(APod("p").Mig("1g.5gb")), "second");
}

TEST(MigByClaims, SeveralDevicesFitWhereverTheyCanGoTogether) {
  // 3g.20gb first and at the lowest start would leave room for one 2g.10gb: it is not the order.
  EXPECT_EQ(Says(ANode("n").Mig(MigByClaims(1)), APod("p").Mig("2g.10gb", 2).Mig("3g.20gb")),
            Reason::kFits);
  EXPECT_EQ(Says(ANode("n").Mig(MigByClaims(1)), APod("p").Mig("1g.5gb", 3).Mig("4g.20gb")),
            Reason::kFits)
      << "a search that takes the lowest starts first has to go back";
  EXPECT_EQ(Says(ANode("n").Mig(MigByClaims(1)), APod("p").Mig("1g.5gb", 4).Mig("4g.20gb")),
            Reason::kTooFewMig);
  EXPECT_EQ(PodsThatFit(ANode("n").Mig(MigByClaims(2)).Build(), APod("p").Mig("3g.20gb").Shape()),
            4);
}

TEST(MigByClaims, OnlyNamesThatResourcesHaveAreGiven) {
  MigSpec spec = MigByClaims(1);
  spec.gpus[0].offered = spec.product->PlacementsOf(*spec.product->RowOf({1, 5}));
  const ANode node = ANode("n").Mig(spec);
  EXPECT_EQ(Says(node, APod("p").Mig("1g.5gb", 7)), Reason::kFits);
  EXPECT_EQ(Says(node, APod("p").Mig("3g.20gb")), Reason::kNoMigProfile);
  EXPECT_EQ(Says(node, APod("p").MigNeeding(1, 4000)), Reason::kMigByNameOnly);
}

TEST(MigByClaims, WhatClaimsHoldIsTakenAndPodsHoldNothingBeside) {
  ANode node = ANode("n").Mig(MigByClaims(1));
  node.ClaimedMig(0, "3g.20gb", 0).HoldingMig(APod("x").Mig("3g.20gb"));
  EXPECT_EQ(Says(node, APod("p").Mig("3g.20gb")), Reason::kFits);
  node.ClaimedMig(0, "3g.20gb", 4);
  EXPECT_EQ(Says(node, APod("p").Mig("3g.20gb")), Reason::kMigBusy);
  EXPECT_EQ(node.Build().unattributed(), 0);
}

TEST(MigByClaims, APodIsBoundThoughItsOwnClaimHoldsTheLastDevice) {
  ANode node = ANode("n").Cpu(16).Mig(MigByClaims(1));
  node.ClaimedMig(0, "7g.40gb", 0);
  Decider decider({node});
  const Placement placement = decider.On(APod("p").Mig("7g.40gb").Cpu(8), "n");
  EXPECT_EQ(placement.cpu_milli, 8000);
  EXPECT_TRUE(placement.mig.empty()) << "the claim says it";
  EXPECT_TRUE(node.Build().CanTake(placement));
}

TEST(MigAmongOthers, SmallPodsWithMigDevicesStayOffNodesWithWholeGpus) {
  // Both have the same MIG devices; the CPU of the second is wanted by pods with whole GPUs.
  Decider decider({ANode("both").Cpu(64).Gpus(8).Mig(DynamicMig(4)),
                   ANode("only-mig").Cpu(64).Mig(DynamicMig(4))});
  EXPECT_EQ(decider.Best(APod("p").Mig("1g.5gb").Cpu(8)), "only-mig");
}

TEST(MigAmongOthers, WholeGpusAndSharesGoToTheirOwnNodes) {
  Decider decider({ANode("mig").Mig(DynamicMig(8)),
                   ANode("shared").Gpus(1).Holding(APod("x").Share(500), {0}),
                   ANode("whole").Gpus(8)});
  EXPECT_EQ(decider.Best(APod("p").Share(500)), "shared");
  EXPECT_EQ(decider.Best(APod("p").Whole(8)), "whole");
  EXPECT_EQ(decider.Best(APod("p").Mig("1g.5gb")), "mig");
}

TEST(MigAmongOthers, ANodeWithSharesAndMigDevicesKeepsItsCpuForTheShares) {
  ANode shared = ANode("both").Cpu(16).Gpus(1).Mig(DynamicMig(1));
  shared.Holding(APod("x").Share(500).Cpu(4), {0});
  Decider decider({shared, ANode("only-mig").Cpu(16).Mig(DynamicMig(1))});
  EXPECT_EQ(decider.Best(APod("p").Mig("1g.5gb").Cpu(8)), "only-mig");
  EXPECT_EQ(decider.Best(APod("p").Share(500).Cpu(4)), "both");
}

TEST(MigAmongOthers, ADeviceByNeedGoesToADeviceNeverToAWholeGpu) {
  Decider decider({SingleNode("single"), ANode("whole").Gpus(8)});
  EXPECT_EQ(decider.Best(APod("p").MigNeeding(1, 4000)), "single");
  EXPECT_EQ(decider.ReasonOf(APod("p").MigNeeding(1, 4000), "whole"), Reason::kNoMig);
}

TEST(MigAmongOthers, OtherPodsAreScoredAsIfThereWereNoMig) {
  const std::vector<ANode> nodes = {ANode("a").Gpus(8),
                                    ANode("b").Gpus(8).Holding(APod("x").Share(300), {0}),
                                    ANode("c").Gpus(4)};
  ProfileSpec without = *FindBuiltinProfile("expected-waste");
  std::erase_if(without.scorers, [](const ScorerSpec& s) { return s.name == "mig-packing"; });
  ASSERT_LT(without.scorers.size(), FindBuiltinProfile("expected-waste")->scorers.size());
  Engine with_mig(BuildProfile(*FindBuiltinProfile("expected-waste"), SomeMix()).value());
  Engine plain(BuildProfile(without, SomeMix()).value());
  const auto snapshot = SnapshotOf(nodes);
  const std::vector<NodeIndex> all = {0, 1, 2};
  const std::vector<int> pull = {0, 30, 100};
  for (const APod& pod : {APod("p").Whole(1).Cpu(8), APod("p").Share(250), APod("p").Cpu(4)}) {
    EXPECT_EQ(with_mig.Prioritize(snapshot, pod.Shape(), all, pull),
              plain.Prioritize(snapshot, pod.Shape(), all, pull));
    EXPECT_EQ(with_mig.Best(snapshot, pod.Shape()), plain.Best(snapshot, pod.Shape()));
  }
}

}  // namespace
}  // namespace berth::test::mig_placement_test
