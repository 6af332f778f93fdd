// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scoring/devices/device_picker.h"
#include "scoring/explain/node_report.h"
#include "scoring/groups/group_domains.h"
#include "scoring/registry.h"
#include "scoring/victims.h"
#include "test/support/builders.h"
#include "test/support/wirings.h"

namespace berth::test::aligned_gpus_test {
namespace {

using enum TopologyPolicy;

// Four GPUs on each of two NUMA nodes; bridges join 0-1, 2-3 and 6-7.
ANode Halves(TopologyPolicy policy = kSingleNumaNode, bool by_pod = false) {
  return ANode("n").Gpus(8).Linked(LinksOf(BridgedCards())).Kubelet(policy, by_pod);
}
ANode Holding(ANode node, const std::vector<int>& gpus, int priority = 0) {
  for (const int gpu : gpus) {
    node.Holding(APod("held-" + std::to_string(gpu)).Whole(1).Priority(priority), {gpu});
  }
  return node;
}

GpuMask WholeOn(const ANode& node, const APod& pod) {
  const auto choices = DeviceChoices(node.Build(), pod.Shape(), DeviceRule::kTightest);
  return choices.empty() ? 0 : choices.front().gpus;
}
Reason Objection(const ANode& node, const APod& pod) {
  return FirstObjection(node.Build(), pod.Shape());
}

TEST(AlignedGpus, AreOfTheLowestNumaNodeThatHasEnough) {
  const ANode node = Holding(Halves(kBestEffort), {0, 2, 3});
  EXPECT_EQ(WholeOn(node, APod("p").Whole(2)), 0b11000000u) << "GPU 1 is alone on the first";
  EXPECT_EQ(WholeOn(node, APod("p").Whole(1)), 0b10u);
  const ANode first = Holding(Halves(kBestEffort), {0, 3});
  EXPECT_EQ(WholeOn(first, APod("p").Whole(2)), 0b110u) << "though 6 and 7 have a bridge";
  EXPECT_EQ(WholeOn(Holding(Halves(kNone), {0, 3}), APod("p").Whole(2)), 0b11000000u);
}

TEST(AlignedGpus, ARefusalOfTheKubeletIsForeseenWithItsReason) {
  EXPECT_EQ(Objection(Halves(), APod("p").Whole(6)), Reason::kNumaNever);
  EXPECT_EQ(Objection(Halves(), APod("p").Whole(4)), Reason::kFits);
  EXPECT_EQ(Objection(Halves(kRestricted), APod("p").Whole(6)), Reason::kFits);
  const ANode split = Holding(Halves(), {0, 1, 4, 5});
  EXPECT_EQ(Objection(split, APod("p").Whole(4)), Reason::kNumaBusy);
  EXPECT_EQ(Objection(split, APod("p").Whole(5)), Reason::kNumaNever);
  EXPECT_EQ(Objection(split, APod("p").Whole(2)), Reason::kFits);
  EXPECT_EQ(Objection(Holding(Halves(kRestricted), {0, 1, 4, 5}), APod("p").Whole(4)),
            Reason::kNumaBusy);
  EXPECT_EQ(Objection(Holding(Halves(kBestEffort), {0, 1, 4, 5}), APod("p").Whole(4)),
            Reason::kFits);
  EXPECT_EQ(Objection(Holding(Halves(), {0, 1, 2, 3, 4, 5}), APod("p").Whole(4)),
            Reason::kGpusBusy);
  EXPECT_EQ(Objection(Halves().Unhealthy(0).Unhealthy(4), APod("p").Whole(4)), Reason::kNumaNever);
}

TEST(AlignedGpus, EachContainerIsAlignedByItselfOrThePodAsAWhole) {
  const APod halves = APod("p").InSteps(8, {{4}, {4}});
  EXPECT_EQ(WholeOn(Halves(), halves), 0xffu);
  EXPECT_EQ(Objection(Halves(kSingleNumaNode, true), halves), Reason::kNumaNever);
  EXPECT_EQ(Objection(Halves(), APod("p").InSteps(8, {{3}, {5}})), Reason::kNumaNever);
  EXPECT_EQ(Objection(Halves(), APod("p").InSteps(8, {{3}, {2}, {3}})), Reason::kNumaBusy)
      << "one and two are left for three";
  const ANode used = Holding(Halves(), {0, 1, 2});
  EXPECT_EQ(WholeOn(used, APod("p").InSteps(3, {{2}, {1}})) & 0xf, 0b1000u)
      << "the first container goes to the second NUMA node, the other one to the first";
}

TEST(AlignedGpus, LinksAreSoughtAmongThoseThatAreOffered) {
  const APod linked = APod("p").Whole(2).Links({.link = LinkWish::kRequired});
  EXPECT_EQ(WholeOn(Holding(Halves(), {1}), linked), 0b1100u);
  EXPECT_EQ(Objection(Holding(Halves(), {1, 3}), linked), Reason::kLinkedBusy)
      << "the kubelet offers 0 and 2";
  EXPECT_EQ(WholeOn(Holding(Halves(), {1, 2, 3}), linked), 0b11000000u);
  const APod two = APod("p").InSteps(2, {{1}, {1}}).Links({.link = LinkWish::kRequired});
  EXPECT_EQ(WholeOn(Holding(Halves(), {1}), two), 0b1100u) << "all sets are examined";
}

TEST(AlignedGpus, AcceptedByUuidAreSoughtAmongThoseThatAreOffered) {
  const ANode node = Halves().Named("").CarriesOut();
  EXPECT_EQ(WholeOn(node, APod("p").Whole(2).OnGpus({"GPU-1", "GPU-3"})), 0b1010u);
  EXPECT_EQ(Objection(node, APod("p").Whole(2).OnGpus({"GPU-5", "GPU-6"})), Reason::kNumaBusy);
  EXPECT_EQ(WholeOn(Holding(node, {0, 1, 2}), APod("p").Whole(2).OnGpus({"GPU-5", "GPU-6"})),
            0b1100000u);
}

TEST(AlignedGpus, WithoutAnAgentNoPodNamesGpusAndWithOneItMay) {
  const APod pod = APod("p").Whole(1).OnGpus({"GPU-1"});
  const ANode node = ANode("n").Gpus(8).Named("");
  EXPECT_EQ(Objection(node, pod), Reason::kGpuMismatch);
  EXPECT_EQ(WholeOn(ANode(node).CarriesOut(), pod), 0b10u);
}

TEST(AlignedGpus, PodsInTurnAreCountedAsTheKubeletAdmitsThem) {
  EXPECT_EQ(PodsThatFit(Halves().Build(), APod("p").Whole(3).Shape()), 2);
  EXPECT_EQ(PodsThatFit(Holding(Halves(), {0, 1, 4, 5}).Build(), APod("p").Whole(2).Shape()), 2);
  EXPECT_EQ(PodsThatFit(Holding(Halves(), {0, 1, 4}).Build(), APod("p").Whole(3).Shape()), 1);
  EXPECT_EQ(PodsThatFit(Halves().Build(), APod("p").InSteps(2, {{1}, {1}}).Shape()), 4);
  EXPECT_EQ(PodsThatFit(Halves().Build(), APod("p").InSteps(5, {{3}, {2}}).Shape()), 1);
}

TEST(AlignedGpus, VictimsLeaveGpusThatTheKubeletGives) {
  const EvictionLimits no_limits{{}, [](const GangId&) { return std::size_t{0}; }};
  const auto victims = [&](const ANode& from, const APod& pod) {
    return AddedVictims(from.Build(), pod.Request(), {}, no_limits);
  };
  using Uids = std::vector<std::string>;
  const APod pod = APod("p").Whole(4).Priority(100);
  // Six are idle, three of each NUMA node: one pod more than a count would take.
  EXPECT_EQ(victims(Holding(Halves(), {3, 7}), pod), Uids{"uid-held-3"});
  EXPECT_EQ(victims(Holding(Halves(), {0, 1, 4}), pod), Uids{"uid-held-4"});
  const ANode in_the_way = Holding(Holding(Halves(), {0, 4}, 200), {1, 5});
  EXPECT_EQ(victims(in_the_way, pod), std::nullopt);
  EXPECT_EQ(AfterEvictions(in_the_way.Build(), pod.Request(), Reason::kNumaBusy),
            Reason::kNumaHeld);
}

TEST(AlignedGpus, StayWithTheKubeletWhereAGroupHasRails) {
  const APod pod = APod("p").Whole(2);
  const Node node = Holding(Halves(), {0}).Build();
  const Placement placement =
      PlacementFor(node, pod.Shape(), DeviceChoices(node, pod.Shape(), DeviceRule::kFirst).front());
  const Placement moved = OnRails(node, pod.Shape(), placement, 0b110000);
  EXPECT_EQ(GpusAmong(moved.grants, 8) & 0xf0, 0u) << "the kubelet offers the first NUMA node";
}

TEST(AlignedGpus, AreExplainedInNumbers) {
  const auto text = [](const ANode& node, const APod& pod) {
    return LackText(node.Build(), pod.Request(), FirstObjection(node.Build(), pod.Shape()));
  };
  EXPECT_EQ(text(Halves(), APod("p").Whole(6)),
            "8 of 8 GPUs idle, needs 6 in one NUMA node (Topology Manager policy single-numa-node; "
            "at most 4 idle in one)");
  EXPECT_EQ(text(Holding(Halves(kRestricted), {0, 1, 4, 5}), APod("p").Whole(3)),
            "4 of 8 GPUs idle, needs 3 in one NUMA node (Topology Manager policy restricted; at "
            "most 2 idle in one)");
  EXPECT_EQ(text(Halves(), APod("p").InSteps(8, {{3}, {5}})),
            "8 of 8 GPUs idle, needs 5 in one NUMA node for one container (Topology Manager policy "
            "single-numa-node; at most 4 idle in one)");
}

TEST(IsPlanOnly, IsAChoiceThatMattersAndThatTheDevicePluginMakes) {
  const APod linked = APod("p").Whole(2).Links({.link = LinkWish::kRequired});
  const NodeSpec plain = Halves(kNone).Spec();
  EXPECT_TRUE(IsPlanOnly(plain, linked.Shape()));
  EXPECT_TRUE(IsPlanOnly(plain, APod("p").Whole(1).Far("app", "loader").Shape()));
  EXPECT_FALSE(IsPlanOnly(plain, APod("p").Whole(2).Shape())) << "any two will do";
  EXPECT_FALSE(IsPlanOnly(plain, APod("p").Share(300).Far("app", "loader").Shape()));
  EXPECT_FALSE(IsPlanOnly(plain, APod("p").Whole(8).Links({.link = LinkWish::kRequired}).Shape()))
      << "it takes all of them";
  EXPECT_FALSE(IsPlanOnly(Halves(kNone).CarriesOut().Spec(), linked.Shape()));
  EXPECT_FALSE(IsPlanOnly(Halves(kNone).Named().Spec(), linked.Shape()));
}

}  // namespace
}  // namespace berth::test::aligned_gpus_test
