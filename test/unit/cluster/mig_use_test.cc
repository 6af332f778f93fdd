// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/mig_use.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "cluster/state/audit.h"
#include "cluster/state/cluster_state.h"
#include "test/support/builders.h"
#include "test/support/mig_nodes.h"

namespace berth::test::mig_use_test {
namespace {

MigSet TakenOf(const Node& node, std::size_t gpu) { return node.mig().taken()[gpu]; }

std::vector<std::string> NamesOf(const MigProduct& product, const MigWant& want) {
  std::vector<std::string> names;
  for (const int row : RowsFor(product, want)) {
    names.push_back(MigProfileName(product.row(row).profile));
  }
  return names;
}

TEST(MigUse, TakesTheDevicesThatAreKnown) {
  const MigSpec spec = DynamicMig(2);
  const Node node = ANode("n")
                        .Mig(spec)
                        .HoldingMig(APod("a").Mig("1g.5gb"), {AGrant(1, "1g.5gb", 6)})
                        .HoldingMig(APod("b").Mig("3g.20gb"), {AGrant(1, "3g.20gb", 0)})
                        .Build();
  EXPECT_EQ(TakenOf(node, 0), 0U);
  EXPECT_EQ(TakenOf(node, 1), SetOf(*spec.product, {{"1g.5gb", 6}, {"3g.20gb", 0}}));
}

TEST(MigUse, FindsTheGpuOfARecordByItsUuid) {
  MigSpec spec = DynamicMig(2);
  spec.gpus[0].uuid = "GPU-a";
  spec.gpus[1].uuid = "GPU-b";
  MigGrant by_uuid = AGrant(MigGrant::kUnknown, "3g.20gb", 4);
  by_uuid.uuid = "GPU-b";
  EXPECT_TRUE(by_uuid.exact());
  EXPECT_EQ(NameOf(by_uuid), "3g.20gb at 4 of GPU-b");
  const auto taken = [&spec](const MigGrant& grant) {
    const Node node = ANode("n").Mig(spec).HoldingMig(APod("a").Mig("3g.20gb"), {grant}).Build();
    return std::pair(TakenOf(node, 0), TakenOf(node, 1));
  };
  const MigSet there = SetOf(*spec.product, {{"3g.20gb", 4}});
  EXPECT_EQ(taken(by_uuid), std::pair(MigSet{0}, there));
  by_uuid.uuid = "GPU-c";  // none of the node's: one is assumed, by Berth's rule
  EXPECT_EQ(taken(by_uuid), std::pair(there, MigSet{0}));
}

TEST(MigUse, TakesWhatClaimsHold) {
  MigSpec spec = DynamicMig(2);
  spec.gpus[1].uuid = "GPU-b";
  const std::vector<ClaimedGpu> claims = {
      {"ns/a", "x", "GPU-b", -1, "3g.20gb", 4},   // by its UUID
      {"ns/b", "x", "", 0, "1g.5gb", 6},          // by its index
      {"ns/c", "x", "GPU-x", 1, "1g.5gb", 0},     // GPU 1 is known to be another
      {"ns/d", "x", "GPU-b", -1, "1g.5gb", -1},   // it does not say where
      {"ns/e", "x", "GPU-b", -1, "", -1},         // the whole GPU
      {"ns/f", "x", "GPU-b", -1, "9g.99gb", 0}};  // none of this product
  const auto first = std::span(claims).first(2);
  EXPECT_EQ(SlotsOfClaims(spec, claims), SlotsOfClaims(spec, first));
  const MigUse use(spec, {}, claims);
  EXPECT_EQ(use.taken()[0], SetOf(*spec.product, {{"1g.5gb", 6}}));
  EXPECT_EQ(use.taken()[1], SetOf(*spec.product, {{"3g.20gb", 4}}));
  // A device that nobody names is assumed beside them.
  spec.allocator = MigAllocator::kDriver;
  const PodRecords pods = {std::make_shared<const PodRecord>(
      PodRecord{APod("a").Mig("1g.5gb").Request(), APod("a").On("n"), PodState::kBound, {}})};
  const MigSlot other = {0,
                         *spec.product->PlacementAt(*spec.product->RowOf(ProfileOf("1g.5gb")), 4)};
  EXPECT_EQ(SlotsByPod(spec, pods, claims), (std::vector<std::vector<MigSlot>>{{other}}));
}

TEST(MigUse, AssumesTheAllocatorsPickForAKnownProfile) {
  MigSpec spec = DynamicMig(1);
  const auto taken_by = [&spec](MigAllocator allocator) {
    spec.allocator = allocator;
    return TakenOf(
        ANode("n").Mig(spec).HoldingMig(APod("a").Mig("1g.5gb"), {AGrantOf("1g.5gb")}).Build(), 0);
  };
  EXPECT_EQ(taken_by(MigAllocator::kFirstFit), SetOf(*spec.product, {{"1g.5gb", 0}}));
  EXPECT_EQ(taken_by(MigAllocator::kDriver), SetOf(*spec.product, {{"1g.5gb", 6}}));
  EXPECT_EQ(taken_by(MigAllocator::kHighOrLow), SetOf(*spec.product, {{"1g.5gb", 6}}));
}

TEST(MigUse, CountsAPodThatWasBoundPastBerth) {
  const Node node =
      ANode("n").Mig(StaticMig(1, kBalanced)).HoldingMig(APod("a").Mig("1g.5gb", 2)).Build();
  EXPECT_EQ(node.unattributed(), 0) << "the kubelet picks: nobody could say more";
  EXPECT_EQ(TakenOf(node, 0), SetOf(*node.spec().mig->product, {{"1g.5gb", 2}, {"1g.5gb", 3}}));
}

TEST(MigUse, ReportsUnknownDevicesOfAPodThatBerthDidNotBind) {
  Node node = ANode("n").Mig(DynamicMig(1)).HoldingMig(APod("a").Mig("1g.5gb")).Build();
  EXPECT_EQ(node.unattributed(), 1);
  EXPECT_EQ(TakenOf(node, 0), SetOf(*node.spec().mig->product, {{"1g.5gb", 6}}));
  node.Remove("uid-a");
  EXPECT_EQ(node.unattributed(), 0);
  EXPECT_EQ(TakenOf(node, 0), 0U);
}

TEST(MigUse, KeepsTheCountWhereADeviceIsNotThereAnyMore) {
  // Granted as 1g.5gb at 6, and the node was cut anew since.
  const Node node = ANode("n")
                        .Mig(StaticMig(1, kBalanced))
                        .HoldingMig(APod("a").Mig("1g.5gb"), {AGrant(0, "1g.5gb", 6)})
                        .Build();
  EXPECT_EQ(TakenOf(node, 0), SetOf(*node.spec().mig->product, {{"1g.5gb", 2}}));
}

TEST(MigUse, IsTheSameInWhateverOrderPodsComeAndGo) {
  const MigSpec spec = DynamicMig(2);
  const auto a = APod("a").Mig("2g.10gb"), b = APod("b").Mig("1g.5gb"), c = APod("c").Mig("1g.5gb");
  const auto with = [](const APod& pod, std::vector<MigGrant> mig) {
    PodRecord record = *pod.BoundOn("n");
    record.placement.mig = std::move(mig);
    return std::make_shared<const PodRecord>(record);
  };
  const auto in_a = with(a, {AGrant(0, "2g.10gb", 4)}), in_b = with(b, {AGrantOf("1g.5gb")}),
             in_c = with(c, {AGrant(0, "1g.5gb", 6)});
  std::vector<std::shared_ptr<const PodRecord>> pods = {in_a, in_b, in_c};
  const Node expected(std::make_shared<const NodeSpec>(ANode("n").Mig(spec).Spec()), pods);
  std::ranges::sort(pods);  // by address: only that all orders come matters
  do {
    Node node = ANode("n").Mig(spec).Build();
    for (const auto& pod : pods) node.Put(pod);
    EXPECT_TRUE(node == expected);
    for (const auto& pod : pods) node.Remove(pod->pod.id.uid);
    EXPECT_TRUE(node == ANode("n").Mig(spec).Build());
  } while (std::ranges::next_permutation(pods).found);
}

TEST(MigUse, ANodeTakesWhatIsFreeAndNothingElse) {
  const Node node = ANode("n")
                        .Mig(DynamicMig(1))
                        .HoldingMig(APod("a").Mig("3g.20gb"), {AGrant(0, "3g.20gb", 0)})
                        .Build();
  const auto says = [&node](std::vector<MigGrant> mig) -> std::string {
    const Status status = node.CanTake({"n", 0, 0, {}, std::move(mig)});
    return status ? "yes" : status.error().message;
  };
  EXPECT_EQ(says({AGrant(0, "3g.20gb", 4)}), "yes");
  EXPECT_EQ(says({AGrant(0, "4g.20gb", 0)}), "mig 4g.20gb at 0 of GPU 0: not free");
  EXPECT_EQ(says({AGrant(0, "1g.5gb", 4), AGrant(0, "2g.10gb", 4)}),
            "mig 2g.10gb at 4 of GPU 0: not free");
  EXPECT_EQ(says({AGrant(1, "1g.5gb", 4)}),
            "mig 1g.5gb at 4 of GPU 1: the node has no such device");
  EXPECT_EQ(says({AGrant(0, "1g.5gb", 7)}),
            "mig 1g.5gb at 7 of GPU 0: the node has no such device");
  EXPECT_EQ(says({AGrantOf("7g.40gb")}), "mig 7g.40gb: not free");
  const Status without = ANode("m").Gpus(1).Build().CanTake({"m", 0, 0, {}, {AGrantOf("1g.5gb")}});
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().message, "mig: the node has no MIG devices");
}

TEST(MigUse, CountsTheUsersOfSharedDevicesApart) {
  MigSpec spec = StaticMig(1, kBalanced);
  spec.shared = {{{ProfileOf("1g.5gb"), true}, 2}};
  const MigGrant shared{.profile = ProfileOf("1g.5gb"), .shared = true};
  const Node one =
      ANode("n").Mig(spec).HoldingMig(APod("a").Mig("1g.5gb", 1, true), {shared}).Build();
  EXPECT_EQ(one.mig().shared_taken()[0], 1);
  EXPECT_EQ(TakenOf(one, 0), 0U);
  EXPECT_TRUE(one.CanTake({"n", 0, 0, {}, {shared}}));
  EXPECT_FALSE(one.CanTake({"n", 0, 0, {}, {shared, shared}}));
}

TEST(MigUse, FindsTheSmallestProfilesThatAreEnough) {
  const MigProduct& product = *FindMigProduct("A100-40GB");
  const auto need = [&](int slices, std::int64_t mib) {
    return NamesOf(product, {.profile = {}, .min_slices = slices, .min_memory_mib = mib});
  };
  using Names = std::vector<std::string>;
  // 2g.10gb and 1g.10gb have 9.6 GiB.
  EXPECT_EQ(need(2, 10 * 1024), (Names{"3g.20gb", "4g.20gb", "7g.40gb"}));
  EXPECT_EQ(need(1, 9 * 1024), (Names{"1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"}));
  EXPECT_EQ(need(5, 0), (Names{"7g.40gb"}));
  EXPECT_EQ(need(8, 0), (Names{}));
  EXPECT_EQ(NamesOf(product, {ProfileOf("2g.10gb"), false, 0, 0, 1}), (Names{"2g.10gb"}));
  EXPECT_EQ(NamesOf(product, {ProfileOf("2g.20gb"), false, 0, 0, 1}), (Names{}));
}

TEST(MigUse, TheAuditFindsDevicesGrantedTwice) {
  ClusterState state;
  const auto bound = [](const APod& pod, std::vector<MigGrant> mig) {
    Placement placement = pod.On("n");
    placement.mig = std::move(mig);
    return PodBound{pod.Request(), placement};
  };
  const std::vector<ClusterEvent> events = {
      NodeUpserted{ANode("n").Mig(DynamicMig(2)).Spec()},
      bound(APod("a").Mig("1g.5gb"), {AGrant(0, "1g.5gb", 4)}),
      bound(APod("b").Mig("1g.5gb"), {AGrant(0, "1g.5gb", 5)}),
      bound(APod("c").Mig("2g.10gb"), {AGrant(0, "2g.10gb", 4)}),  // over a and b
      bound(APod("d").Mig("1g.5gb"), {AGrant(2, "1g.5gb", 0)}),    // no such GPU
      bound(APod("e").Mig("1g.10gb"), {AGrant(0, "1g.10gb", 1)}),  // nor start
      bound(APod("f").Mig("1g.5gb"), {AGrantOf("1g.5gb")}),
  };
  ASSERT_TRUE(state.Apply(events));
  const AuditReport report = Audit(state.Everything(), Instant(), std::chrono::seconds(1));
  EXPECT_EQ(report.double_grants, 1U);
  EXPECT_EQ(report.unknown_devices, 2U);
  EXPECT_EQ(report.differences, 0U);
}

TEST(MigUse, TheAuditSeesPodsThatWereGivenWhatClaimsHold) {
  ClusterState state;
  MigSpec spec = DynamicMig(1);
  spec.gpus[0].uuid = "GPU-a";
  Placement placement = APod("a").On("n");
  placement.mig = {AGrant(0, "1g.5gb", 4)};
  const ClaimedGpu held = {"das/c", "c", "GPU-a", -1, "3g.20gb", 4};
  const std::vector<ClusterEvent> events = {NodeUpserted{ANode("n").Mig(spec).Spec()},
                                            GpusClaimed{"n", {held}, "instaslice"},
                                            PodBound{APod("a").Mig("1g.5gb").Request(), placement}};
  ASSERT_TRUE(state.Apply(events));
  const AuditReport report = Audit(state.Everything(), Instant(), std::chrono::seconds(1));
  EXPECT_EQ(report.double_grants, 1U);
  EXPECT_EQ(report.differences, 0U);
}

TEST(MigSpec, RefusesWhatMakesNoSense) {
  const auto error = [](const MigSpec& spec) {
    const Status status = Validate(ANode("n").Mig(spec).Spec());
    return status ? "" : status.error().message;
  };
  EXPECT_EQ(error(DynamicMig(2)), "");
  MigSpec spec = DynamicMig(2);
  spec.gpus[1].index = 0;
  EXPECT_EQ(error(spec), ".mig.gpus[1].index: want each GPU once and in ascending order, got 0");
  spec = DynamicMig(1);
  spec.product = nullptr;
  EXPECT_EQ(error(spec), ".mig.product: want that of the GPUs, got none");
  spec = DynamicMig(1);
  spec.gpus[0].instances = SetOf(*spec.product, {{"4g.20gb", 0}, {"1g.5gb", 1}});
  EXPECT_TRUE(error(spec).starts_with(".mig.gpus[0].instances: want placements that go together"))
      << error(spec);
}

TEST(MigByContainer, GivesEachContainerWhatItAsksFor) {
  APod pod("p");
  const auto want = [](const std::string& profile, int count) {
    return MigSlices{{{ProfileOf(profile), false, 0, 0, count}}};
  };
  pod.Mig("1g.5gb", 2).Mig("2g.10gb");
  pod.InitContainer("init", want("1g.5gb", 2)).Container("a", want("1g.5gb", 1));
  pod.Container("b", want("2g.10gb", 1)).Container("c", want("1g.5gb", 1));
  Placement placement = pod.On("n");
  placement.mig = {AGrant(0, "1g.5gb", 6), AGrant(0, "2g.10gb", 4), AGrant(1, "1g.5gb", 6)};
  const auto split = MigByContainer(pod.Request(), placement);
  ASSERT_EQ(split.size(), 4U);
  using Grants = std::vector<MigGrant>;
  EXPECT_EQ(split[0].second, (Grants{AGrant(0, "1g.5gb", 6), AGrant(1, "1g.5gb", 6)}));
  EXPECT_EQ(split[1].second, (Grants{AGrant(0, "1g.5gb", 6)}));
  EXPECT_EQ(split[2].second, (Grants{AGrant(0, "2g.10gb", 4)}));
  EXPECT_EQ(split[3].second, (Grants{AGrant(1, "1g.5gb", 6)}));
}

}  // namespace
}  // namespace berth::test::mig_use_test
