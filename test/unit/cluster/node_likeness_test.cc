// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/node_likeness.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "test/support/builders.h"
#include "test/support/wirings.h"

namespace berth::test::node_likeness_test {
namespace {

NodeLikeness Of(const ANode& node) { return node.Build().likeness(); }

TEST(NodeLikeness, IsTheSameUnderOtherNames) {
  const NodeLikeness one = Of(ANode("a").Gpus(2).Holding(APod("x").Whole(1), {0}));
  EXPECT_NE(one, kLikeNoOther);
  EXPECT_EQ(one, Of(ANode("b").Gpus(2).Holding(APod("y").Whole(1), {0})));
  EXPECT_EQ(one, Of(ANode("c").Gpus(2).Tainted("t").Holding(APod("z").Whole(1), {0})));
  EXPECT_EQ(Of(ANode("a").Gpus(2).Named()), Of(ANode("b").Gpus(2).Named())) << "other UUIDs";
}

TEST(NodeLikeness, TellsApartWhatIsFree) {
  const std::vector<ANode> nodes = {ANode("a").Gpus(2),
                                    ANode("a").Gpus(2).Named(),
                                    ANode("a").Gpus(2).Holding(APod("x").Whole(1), {0}),
                                    ANode("a").Gpus(2).Holding(APod("x").Whole(1), {1}),
                                    ANode("a").Gpus(2).Holding(APod("x").Share(500), {0}),
                                    ANode("a").Gpus(2).Holding(APod("x").Cpu(1), {}),
                                    ANode("a").Gpus(2).Holding(APod("x").MemoryGib(1), {}),
                                    ANode("a").Gpus(2).Cpu(3),
                                    ANode("a").Gpus(2).MemoryGib(3),
                                    ANode("a").Gpus(2).DiskGib(3),
                                    ANode("a").Gpus(2).Model("T4"),
                                    ANode("a").Gpus(2).Unhealthy(0),
                                    ANode("a").Gpus(2).Unhealthy(1),
                                    ANode("a").Gpus(2).Missing(1),
                                    ANode("a").Gpus(2).NotReady(),
                                    ANode("a").Gpus(2).CarriesOut(),
                                    ANode("a").Gpus(2).Traits({"spot"}),
                                    ANode("a").Gpus(2).GpuMemory(1, 1000),
                                    ANode("a").Gpus(3),
                                    ANode("a").Gpus(2).Kubelet(TopologyPolicy::kRestricted)};
  std::set<NodeLikeness> seen;
  for (const ANode& node : nodes) EXPECT_TRUE(seen.insert(Of(node)).second) << seen.size();
}

TEST(NodeLikeness, TellsApartHowSharesUseCompute) {
  const auto with = [](ShareMode mode, int gpu) {
    PodRequest pod = APod("x").ShareByMemory(4000).Request();
    pod.shape.share_mode = mode;
    Node node = ANode("a").Gpus(2).Build();
    Placement placement = WithoutDevices("a", pod.shape);
    placement.grants = {{gpu, 250, 4000}};
    node.Put(std::make_shared<const PodRecord>(PodRecord{pod, placement, PodState::kBound, {}}));
    return node.likeness();
  };
  EXPECT_EQ(with(ShareMode::kSmSharing, 0), with(ShareMode::kSmSharing, 0));
  EXPECT_NE(with(ShareMode::kSmSharing, 0), with(ShareMode::kTimeSlicing, 0));
  EXPECT_NE(with(ShareMode::kSmSharing, 0), with(ShareMode::kUnsaid, 0));
}

TEST(NodeLikeness, TellsApartWhoLeavesTogetherWhereLinksAreKnown) {
  const GpuLinks links = LinksOf(SwitchedPairs());
  const auto with = [&links](const ANode& node) { return Of(ANode(node).Linked(links)); };
  const ANode four = ANode("a").Gpus(4);
  const auto together = ANode(four).Holding(APod("x").Whole(2), {0, 1});
  const auto apart = ANode(four).Holding(APod("x").Whole(1), {0}).Holding(APod("y").Whole(1), {1});
  EXPECT_EQ(with(together), with(ANode("b").Gpus(4).Holding(APod("z").Whole(2), {0, 1})));
  EXPECT_NE(with(together), with(apart));
}

TEST(NodeLikeness, FollowsTheNode) {
  Node node = ANode("a").Gpus(2).Build();
  const NodeLikeness empty = node.likeness();
  const auto pod = ANode("a").Gpus(2).Holding(APod("x").Whole(1), {0}).Build().pods().front();
  node.Put(pod);
  EXPECT_NE(node.likeness(), empty);
  const Node with_pod = node;
  node.Remove(pod->pod.id.uid);
  EXPECT_EQ(node.likeness(), empty);
  EXPECT_NE(with_pod.likeness(), empty);
}

TEST(NodeLikeness, OfPlacesAndClaimsIsNone) {
  EXPECT_EQ(Of(ANode("a").Places(4)), kLikeNoOther);
  EXPECT_EQ(Of(ANode("a").Gpus(2).Claimed({0})), kLikeNoOther);
}

}  // namespace
}  // namespace berth::test::node_likeness_test
