// SPDX-License-Identifier: Apache-2.0
#include "scoring/groups/group_domains.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/state/snapshot.h"
#include "scoring/devices/device_picker.h"
#include "test/support/builders.h"
#include "test/support/wirings.h"

namespace berth::test::group_rails_test {
namespace {

const TopologyLevels kLevels = {{"rack", {"rack"}}};

ANode InRack(const std::string& name, const std::string& rack) {
  return ANode(name).Gpus(8).Labelled({{"rack", rack}});
}

APod Member(const std::string& name) { return APod(name).Whole(2).Gang("ns/g").GangSize(4); }

GpuMask RailsOn(const std::vector<ANode>& nodes, const APod& pod, NodeIndex node) {
  const auto snapshot = SnapshotOf(nodes);
  const DomainTree tree = DomainsOf(*snapshot, kLevels);
  std::vector<std::string> names;
  for (NodeIndex i = 0; i < snapshot->size(); ++i) names.emplace_back(snapshot->names().name(i));
  const PodRequest& request = pod.Request();
  return RailsFor(*snapshot, tree, request, MembersOn(*snapshot, request, names), node);
}

TEST(RailsFor, AMemberAreThoseOfTheMembersOnOtherNodes) {
  const std::vector<ANode> nodes = {InRack("n1", "a").Holding(Member("1"), {4, 5}),
                                    InRack("n2", "a").Holding(Member("2"), {5, 6}),
                                    InRack("n3", "a"),
                                    InRack("n4", "a").Holding(APod("x").Whole(1), {0})};
  EXPECT_EQ(RailsOn(nodes, Member("3"), 2), 0b0111'0000U);
  EXPECT_EQ(RailsOn(nodes, Member("3"), 0), 0b0110'0000U);
}

TEST(RailsFor, TheFirstMemberAreFreeOnMostNodesOfItsDomain) {
  const APod other = APod("x").Whole(1);
  const std::vector<ANode> nodes = {InRack("n1", "a").Holding(other, {0}), InRack("n2", "a"),
                                    InRack("n3", "a").Holding(other, {1}), InRack("n4", "b")};
  EXPECT_EQ(RailsOn(nodes, Member("1"), 1), 0b0000'1100U);
  EXPECT_EQ(RailsOn(nodes, Member("1"), 3), 0b0000'0011U);  // in rack b all are free
  EXPECT_EQ(RailsOn(nodes, Member("1").Prefers(0), 1), 0b0000'1100U);
}

TEST(RailsFor, APodWithNothingToAlignWithAreNone) {
  const std::vector<ANode> nodes = {InRack("n1", "a").Holding(Member("1"), {4, 5}),
                                    InRack("n2", "a")};
  EXPECT_EQ(RailsOn(nodes, APod("alone").Whole(2), 1), 0U);
  EXPECT_EQ(RailsOn(nodes, Member("2").Share(500), 1), 0U);
  EXPECT_EQ(RailsOn(nodes, Member("2").GangSize(1), 1), 0U);
}

TEST(AlignedWith, WhereNothingIsKnownOfLinksTheRailsAreTaken) {
  const GpuLinks unknown;
  EXPECT_EQ(AlignedWith(unknown, 0b1100, 0xff, 0b0011, {}), 0b1100U);
  EXPECT_EQ(AlignedWith(unknown, 0b1100, 0b1111'0111, 0b0011, {}), 0b0101U);  // 3 is not free
  EXPECT_EQ(AlignedWith(unknown, 0b1'0000, 0b1111, 0b0011, {}), 0b0011U);
}

// Of these cards 0-1, 2-3 and 6-7 are pairs with a bridge, 4 and 5 are without.
TEST(AlignedWith, NoLinkIsGivenUpForARail) {
  const GpuLinks cards = LinksOf(BridgedCards());
  EXPECT_EQ(AlignedWith(cards, 0b1100'0000, 0xff, 0b0011, {}), 0b1100'0000U);
  EXPECT_EQ(AlignedWith(cards, 0b0001'1000, 0xff, 0b0011, {}), 0b0000'1100U);  // 3 is a rail
  EXPECT_EQ(AlignedWith(cards, 0b0001'1000, 0b1111'1011, 0b0011, {}), 0b0011U);
  EXPECT_EQ(AlignedWith(cards, 0b0011'0000, 0xff, 0b0011, {}), 0b0011U);
}

TEST(AlignedWith, NoPairIsBrokenForARail) {
  const GpuLinks cards = LinksOf(BridgedCards());
  EXPECT_EQ(AlignedWith(cards, 0b0000'0100, 0b0011'1100, 0b0001'0000, {}), 0b0001'0000U);
  EXPECT_EQ(AlignedWith(cards, 0b0010'0000, 0b0011'1100, 0b0001'0000, {}), 0b0010'0000U);
}

TEST(AlignedWith, APatternStaysAsItWasChosen) {
  const GpuLinks cards = LinksOf(BridgedCards());
  const LinkAsk ring = {.pattern = LinkPattern::kRing};
  EXPECT_EQ(AlignedWith(cards, 0b1100'0000, 0xff, 0b0011, ring), 0b0011U);
}

TEST(OnRails, TheGrantsAreThoseOfTheRails) {
  const auto snapshot = SnapshotOf({ANode("n1").Gpus(4).GpuMemory(3, 24'000)});
  const Node& node = snapshot->node(0);
  const RequestShape shape = Member("1").Request().shape;
  const Placement usual = PlacementFor(node, shape, {0b0011, kMilliPerGpu, 0});
  EXPECT_EQ(OnRails(node, shape, usual, 0), usual);
  const Placement aligned = OnRails(node, shape, usual, 0b1100);
  ASSERT_EQ(aligned.grants.size(), 2u);
  EXPECT_EQ(aligned.grants[0], (DeviceGrant{2, kMilliPerGpu, 16'000}));
  EXPECT_EQ(aligned.grants[1], (DeviceGrant{3, kMilliPerGpu, 24'000}));
  EXPECT_EQ(aligned.node, "n1");
}

}  // namespace
}  // namespace berth::test::group_rails_test
