// SPDX-License-Identifier: Apache-2.0
#include "scoring/devices/neighbours.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "scoring/devices/device_picker.h"
#include "scoring/engine/engine.h"
#include "scoring/groups/group_domains.h"
#include "scoring/judgement.h"
#include "scoring/registry.h"
#include "test/support/builders.h"
#include "test/support/wirings.h"

namespace berth::test::neighbours_test {
namespace {

ANode SwitchedNode(const std::string& name) {
  return ANode(name).Gpus(8).Linked(LinksOf(SwitchedPairs()));
}
ANode NicCards() { return ANode("n").Gpus(4).Linked(LinksOf(CardsWithOneNic())); }
APod RoleOf(const std::string& role, const std::string& name) {
  return APod(name).Labelled({{"role", role}}).Whole(1);
}

GpuMask ChosenOn(const ANode& node, const APod& pod, DeviceRule rule = DeviceRule::kTightest) {
  const auto choices = DeviceChoices(node.Build(), pod.Shape(), rule);
  return choices.empty() ? 0 : choices.front().gpus;
}
int PenaltyOn(const ANode& node, const APod& pod) {
  return NeighbourPenalty(node.Build(), pod.Shape());
}

TEST(Neighbours, FarIsAnotherSocketThenAnotherPcieRootThenAnyGpu) {
  ANode node = SwitchedNode("n").Holding(RoleOf("prefill", "a"), {0});
  const APod next = RoleOf("prefill", "p").Far("role", "prefill");
  EXPECT_NE(ChosenOn(node, next) & 0b11110000, 0u) << "the other socket";
  node.Holding(RoleOf("prefill", "b"), {6});
  EXPECT_NE(ChosenOn(node, next) & 0b00111100, 0u) << "neither of the two roots";
  node.Holding(RoleOf("prefill", "c"), {2}).Holding(RoleOf("prefill", "d"), {4});
  EXPECT_NE(ChosenOn(node, next), 0u) << "it is no condition";
  EXPECT_EQ(ChosenOn(node, next) & 0b01010101, 0u);
}

TEST(Neighbours, NearIsTheFabricThenThePcieRootThenTheSocket) {
  const ANode switched = SwitchedNode("n").Holding(RoleOf("prefill", "a"), {5});
  const APod decode = RoleOf("decode", "p").Near("role", "prefill");
  EXPECT_EQ(PenaltyOn(switched, decode), 0) << "every GPU has a link to every other one";
  EXPECT_EQ(ChosenOn(NicCards().Holding(RoleOf("prefill", "a"), {2}), decode), 0b1000u);
  const ANode taken =
      NicCards().Holding(RoleOf("prefill", "a"), {2}).Holding(RoleOf("x", "b"), {3});
  EXPECT_NE(ChosenOn(taken, decode), 0u) << "it is no condition";
}

TEST(Neighbours, OfSeveralGpusAllAreFarOrNear) {
  const ANode node = SwitchedNode("n").Holding(RoleOf("prefill", "a"), {0});
  EXPECT_EQ(ChosenOn(node, APod("p").Whole(4).Far("role", "prefill")), 0b11110000u);
  EXPECT_EQ(std::popcount(ChosenOn(node, APod("p").Whole(5).Far("role", "prefill"))), 5);
  const ANode cards = NicCards().Holding(RoleOf("prefill", "a").Share(100), {0});
  EXPECT_EQ(ChosenOn(cards, APod("p").Shares(2, 300).Near("role", "prefill")), 0b0011u);
  EXPECT_EQ(ChosenOn(cards, APod("p").Shares(2, 300).Far("role", "prefill")), 0b1100u);
}

TEST(Neighbours, PodsHaveGpusByTheirOwnClaimsToo) {
  const auto claiming = [](const std::string& role) {
    return APod("a").Labelled({{"role", role}}).Claims({"c"});
  };
  const APod far = APod("p").Whole(1).Far("role", "prefill");
  ANode node = SwitchedNode("n").Holding(claiming("prefill"), {});
  EXPECT_FALSE(HasNeighbours(node.Build(), far.Shape())) << "the claim may be one for a NIC";
  node.Claimed({0}, "default/c").Claimed({6}, "other/c");
  EXPECT_TRUE(HasNeighbours(node.Build(), far.Shape()));
  EXPECT_NE(ChosenOn(node, far) & 0b11110000, 0u) << "the other socket";
  EXPECT_FALSE(HasNeighbours(SwitchedNode("n").Holding(claiming("x"), {}).Build(), far.Shape()));
  const APod near = APod("p").Whole(1).Near("role", "prefill");
  const ANode cards = NicCards().Holding(claiming("prefill"), {}).Claimed({2}, "default/c");
  EXPECT_EQ(ChosenOn(cards, near), 0b1000u);
}

TEST(Neighbours, FarTakesPrecedenceOverNear) {
  const ANode node =
      SwitchedNode("n").Holding(RoleOf("prefill", "a"), {0}).Holding(RoleOf("store", "b"), {1});
  const APod next = RoleOf("prefill", "p").Far("role", "prefill").Near("role", "store");
  EXPECT_NE(ChosenOn(node, next) & 0b11110000, 0u);
}

TEST(Neighbours, AShareKeepsOffTheGpuAndGoesToIt) {
  for (const DeviceRule rule :
       {DeviceRule::kFirst, DeviceRule::kTightest, DeviceRule::kBestScore, DeviceRule::kRandom}) {
    const ANode node = NicCards().Holding(RoleOf("prefill", "a").Share(100), {1});
    EXPECT_NE(ChosenOn(node, APod("p").Share(300).Far("role", "prefill"), rule) & 0b1100, 0u);
    const GpuMask near = ChosenOn(node, APod("p").Share(300).Near("role", "prefill"), rule);
    EXPECT_EQ(near, 0b0010u);
  }
  // Nothing is known of the links: the GPU itself is still known.
  const ANode unknown = ANode("n").Gpus(2).Holding(RoleOf("prefill", "a").Share(100), {0});
  EXPECT_EQ(ChosenOn(unknown, APod("p").Share(300).Far("role", "prefill")), 0b10u);
  EXPECT_EQ(ChosenOn(unknown, APod("p").Share(300).Near("role", "prefill")), 0b01u);
}

TEST(Neighbours, AreThoseOfTheNamespaceThatAreNotToldToEnd) {
  const APod next = APod("p").Whole(1).Far("role", "prefill");
  EXPECT_GT(PenaltyOn(ANode("n").Gpus(2).Holding(RoleOf("prefill", "a"), {0}), next), 0);
  const APod elsewhere = RoleOf("prefill", "a").Namespace("other");
  EXPECT_EQ(PenaltyOn(ANode("n").Gpus(2).Holding(elsewhere, {0}), next), 0);
  EXPECT_EQ(PenaltyOn(ANode("n").Gpus(2).Holding(RoleOf("decode", "a"), {0}), next), 0);
  EXPECT_EQ(PenaltyOn(ANode("n").Gpus(2).Holding(APod("a").Whole(1), {0}), next), 0) << "no labels";
  EXPECT_EQ(PenaltyOn(ANode("n").Gpus(2).Holding(APod("a").Labelled({{"role", "prefill"}})), next),
            0)
      << "it has no GPU";
  Node node = ANode("n").Gpus(2).Build();
  PodRecord leaving = *RoleOf("prefill", "a").BoundOn("n", {0});
  leaving.leaving = true;
  node.Put(std::make_shared<const PodRecord>(std::move(leaving)));
  EXPECT_EQ(NeighbourPenalty(node, next.Shape()), 0);
}

TEST(Neighbours, WhoseGpusAreUnknownMayBeOnAny) {
  const ANode node = SwitchedNode("n").Holding(RoleOf("prefill", "a"));  // bound past Berth
  EXPECT_EQ(PenaltyOn(node, APod("p").Whole(1).Near("role", "prefill")), 0);
  EXPECT_GT(PenaltyOn(node, APod("p").Whole(1).Far("role", "prefill")), 0);
  const ANode places = ANode("n").Places(4).Holding(RoleOf("prefill", "a"));
  EXPECT_GT(PenaltyOn(places, APod("p").Whole(1).Far("role", "prefill")), 0);
  EXPECT_LT(PenaltyOn(places, APod("p").Whole(1).Near("role", "prefill")),
            PenaltyOn(ANode("n").Places(4), APod("p").Whole(1).Near("role", "prefill")));
}

TEST(Neighbours, GpusBesideNicsAreForWhoAsksForRdma) {
  EXPECT_EQ(ChosenOn(NicCards(), APod("p").Whole(1).BesideNic()), 0b0100u);
  EXPECT_EQ(ChosenOn(NicCards(), APod("p").Whole(2).BesideNic()), 0b1100u);
  EXPECT_EQ(ChosenOn(NicCards(), APod("p").Share(300).BesideNic()), 0b0100u);
  EXPECT_EQ(ChosenOn(NicCards().Holding(APod("a").Whole(1), {2}), APod("p").Whole(1).BesideNic()),
            0b1000u)
      << "the socket of the NIC";
  EXPECT_EQ(std::popcount(ChosenOn(NicCards(), APod("p").Whole(3).BesideNic())), 3);
  EXPECT_EQ(ChosenOn(ANode("n").Gpus(4), APod("p").Whole(1).BesideNic()), 0b0001u)
      << "nothing is known of NICs";
  EXPECT_EQ(PenaltyOn(NicCards(), APod("p").Whole(1).BesideNic()), 0)
      << "it does not choose the node";
}

TEST(Neighbours, RequiredLinksGoBeforeThem) {
  const ANode node = ANode("n").Gpus(8).Linked(LinksOf(BridgedCards()));
  const ANode used =
      ANode(node).Holding(RoleOf("prefill", "a"), {7}).Holding(APod("b").Whole(2), {0, 1});
  const APod next = APod("p").Whole(2).Links({.link = LinkWish::kRequired}).Near("role", "prefill");
  EXPECT_EQ(ChosenOn(used, next), 0b1100u) << "the last pair with a bridge, on the other socket";
  EXPECT_EQ(PenaltyOn(used, next), 3);
}

TEST(Neighbours, RailsOfAGroupAreAmongTheGpusThatSuit) {
  const Node node = NicCards().Build();
  const APod pod = APod("p").Whole(1).BesideNic();
  const Placement placement = OnRails(node, pod.Shape(), pod.On("n", {2}), 0b0001);
  ASSERT_EQ(placement.grants.size(), 1u);
  EXPECT_EQ(placement.grants.front().gpu, 2) << "not GPU 0, which the others of the group have";
}

// Where a cluster puts pods one after the other.
class Deployment {
 public:
  explicit Deployment(std::vector<ANode> nodes) : nodes_(std::move(nodes)) {}

  // The node and the lowest GPU.
  std::pair<std::string, int> Add(const APod& pod) {
    const auto snapshot = SnapshotOf(nodes_);
    const auto best = engine_.Best(snapshot, pod.Shape());
    if (best.empty()) return {"", -1};
    const auto placement = engine_.PlaceOn(snapshot, pod.Shape(), best.front());
    std::vector<int> gpus;
    for (const DeviceGrant& grant : placement->grants) gpus.push_back(grant.gpu);
    nodes_[best.front()].Holding(pod, gpus);
    return {placement->node, gpus.front()};
  }

 private:
  std::vector<ANode> nodes_;
  const RequestMix mix_ = {{APod("m").Whole(1).Cpu(8).Shape(), 1.0}};
  Engine engine_{BuildProfile(*FindBuiltinProfile("expected-waste"), mix_).value()};
};

TEST(Neighbours, ExplainSaysWhatPutsANodeBehind) {
  const auto snapshot =
      SnapshotOf({SwitchedNode("n1"), SwitchedNode("n2")
                                          .Holding(RoleOf("prefill", "a"), {0})
                                          .Holding(RoleOf("prefill", "b"), {2})
                                          .Holding(APod("c").Whole(4), {4, 5, 6, 7})});
  Engine engine(BuildProfile(*FindBuiltinProfile("best-fit"), {}).value());
  const auto report = [&](const APod& pod) {
    return ReportScores(engine, snapshot, snapshot, pod.Request(), std::vector<NodeIndex>{0, 1}, 5);
  };
  const auto far = report(RoleOf("prefill", "p").Far("role", "prefill"));
  ASSERT_EQ(far.size(), 2u);
  EXPECT_EQ(far[0].placement.node, "n1");
  EXPECT_EQ(far[0].behind, "");
  EXPECT_EQ(far[1].behind, "shares a PCIe root with pods that it should be far from");
  const auto near = report(APod("p").Whole(1).Near("role", "prefill"));
  EXPECT_EQ(near[0].placement.node, "n2");
  EXPECT_EQ(near[1].behind, "has none of the pods that it should be near");
}

// The case of ai-dynamo/dynamo issue 10171: prefill workers that share a PCIe root halve each
// other's throughput.
TEST(Neighbours, PrefillPodsOfOneServiceHaveAPcieRootEach) {
  Deployment cluster({SwitchedNode("n1"), SwitchedNode("n2")});
  std::vector<std::pair<std::string, int>> roots;
  for (int i = 0; i < 8; ++i) {
    const auto [node, gpu] =
        cluster.Add(RoleOf("prefill", "p" + std::to_string(i)).Far("role", "prefill"));
    const std::pair root(node, gpu / 2);
    EXPECT_EQ(std::ranges::find(roots, root), roots.end()) << node << " GPU " << gpu;
    roots.push_back(root);
  }
  EXPECT_EQ(cluster.Add(RoleOf("prefill", "last").Far("role", "prefill")).second >= 0, true)
      << "where every root has one, they share";
}

TEST(Neighbours, DecodePodsGoToTheNodeOfTheirPrefillPods) {
  Deployment cluster({SwitchedNode("n1"), SwitchedNode("n2"), SwitchedNode("n3")});
  const auto [first, gpu] = cluster.Add(RoleOf("prefill", "p").Whole(2));
  EXPECT_EQ(gpu % 2, 0);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(cluster.Add(RoleOf("decode", "d" + std::to_string(i)).Near("role", "prefill")).first,
              first);
  }
  EXPECT_NE(cluster.Add(RoleOf("decode", "last").Near("role", "prefill")).first, "")
      << "the node is full: any other";
}

// A plain cluster, whose nodes publish no links.
TEST(Neighbours, WithoutLinksFarIsAnotherNodeAsLongAsThereIsOne) {
  std::vector<ANode> nodes;
  for (int n = 1; n <= 8; ++n) nodes.push_back(ANode("n" + std::to_string(n)).Gpus(2));
  Deployment cluster(nodes);
  std::vector<std::string> used;
  for (int i = 0; i < 8; ++i) {
    const std::string node =
        cluster.Add(RoleOf("prefill", "p" + std::to_string(i)).Far("role", "prefill")).first;
    EXPECT_EQ(std::ranges::find(used, node), used.end()) << node;
    used.push_back(node);
  }
  EXPECT_NE(cluster.Add(RoleOf("prefill", "last").Far("role", "prefill")).first, "");
}

}  // namespace
}  // namespace berth::test::neighbours_test
