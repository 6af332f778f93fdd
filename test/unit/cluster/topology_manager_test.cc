// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/topology_manager.h"

#include <gtest/gtest.h>

#include <vector>

#include "cluster/node/gpu_division.h"
#include "test/support/builders.h"
#include "test/support/wirings.h"

namespace berth::test::topology_manager_test {
namespace {

using enum TopologyPolicy;
using Masks = std::vector<GpuMask>;

// Four GPUs on each of two NUMA nodes.
const Masks kHalves = {0x0f, 0xf0};
// Two on each of four.
const Masks kPairs = {0x03, 0x0c, 0x30, 0xc0};

struct Case {
  const Masks& nodes;
  GpuMask free;
  int count;
  TopologyPolicy policy;
  bool admits;
  GpuMask offered;
};

TEST(TopologyManager, OffersTheSmallestSetOfNumaNodesAndOfEqualOnesTheLowest) {
  for (const Case& c : std::vector<Case>{
           {kHalves, 0xff, 2, kBestEffort, true, 0x0f},
           {kHalves, 0xf1, 2, kBestEffort, true, 0xf0},
           {kHalves, 0x31, 3, kBestEffort, true, 0x31},
           {kHalves, 0xff, 6, kBestEffort, true, 0xff},
           {kHalves, 0x31, 3, kRestricted, false, 0},
           {kHalves, 0xff, 6, kRestricted, true, 0xff},
           {kHalves, 0xff, 6, kSingleNumaNode, false, 0},
           {kHalves, 0xf3, 4, kSingleNumaNode, true, 0xf0},
           {kHalves, 0x73, 4, kSingleNumaNode, false, 0},
           {kPairs, 0xff, 3, kRestricted, true, 0x0f},
           {kPairs, 0x5f, 3, kRestricted, true, 0x0f},
           {kPairs, 0xcd, 3, kRestricted, true, 0x0d},
           {kPairs, 0x55, 3, kRestricted, false, 0},
           {kPairs, 0x55, 3, kBestEffort, true, 0x15},
           {kPairs, 0xd1, 3, kBestEffort, true, 0xc1},
           {kPairs, 0x03, 3, kBestEffort, false, 0},
       }) {
    SCOPED_TRACE(std::to_string(c.free) + " " + std::to_string(c.count) + " " +
                 std::string(NameOf(c.policy)));
    const auto offer = TopologyManager{c.policy}.OfferTo(c.nodes, c.free, 0, c.count);
    EXPECT_EQ(offer.admits, c.admits);
    EXPECT_EQ(offer.gpus, c.offered);
  }
}

TEST(TopologyManager, GoesOnWhereTheGpusAreThatInitContainersLeave) {
  const TopologyManager single{kSingleNumaNode};
  EXPECT_EQ(single.OfferTo(kHalves, 0x0f, 0x10, 2).admits, false) << "it stays on the second";
  EXPECT_EQ(single.OfferTo(kHalves, 0x2f, 0x10, 2).gpus, 0x20u);
  EXPECT_TRUE(single.OfferTo(kHalves, 0x0f, 0x30, 2).admits) << "none is needed";
  EXPECT_EQ(TopologyManager{kBestEffort}.OfferTo(kHalves, 0x0f, 0x10, 2).gpus, 0x0fu);
}

TEST(TopologyManager, NamesItsPoliciesAsTheKubeletDoes) {
  for (const auto policy : {kNone, kBestEffort, kRestricted, kSingleNumaNode}) {
    EXPECT_EQ(ParseTopologyPolicy(NameOf(policy)), policy);
  }
  EXPECT_EQ(ParseTopologyPolicy("Restricted"), std::nullopt);
}

ANode Halves(TopologyPolicy policy, bool by_pod = false) {
  return ANode("n").Gpus(8).Linked(LinksOf(BridgedCards())).Kubelet(policy, by_pod);
}

TEST(GpuDivision, IsByNumaNodeWhereTheKubeletLimitsIt) {
  const APod pod = APod("p").InSteps(3, {{2}, {1}});
  const NodeSpec node = Halves(kSingleNumaNode).Spec();
  ASSERT_TRUE(KubeletLimits(node, pod.Shape()));
  EXPECT_EQ(DivideGpus(node, pod.Shape(), 0x31), (Masks{0x30, 0x01}));
  EXPECT_EQ(DivideGpus(node, pod.Shape(), 0x13), (Masks{0x03, 0x10}));
  EXPECT_EQ(DivideGpus(Halves(kSingleNumaNode, true).Spec(), pod.Shape(), 0x0d),
            (Masks{0x05, 0x08}))
      << "of the pod as a whole";
  EXPECT_EQ(DivideGpus(node, APod("p").Whole(2).Shape(), 0x11), std::nullopt);
}

TEST(GpuDivision, GivesTheGpusOfAnInitContainerAgain) {
  const NodeSpec node = Halves(kSingleNumaNode).Spec();
  EXPECT_EQ(DivideGpus(node, APod("p").InSteps(2, {{2, true}, {1}, {1}}).Shape(), 0x30),
            (Masks{0x30, 0x10, 0x20}));
  EXPECT_EQ(DivideGpus(node, APod("p").InSteps(3, {{1}, {1, true}, {2}}).Shape(), 0x70),
            (Masks{0x10, 0x20, 0x60}))
      << "a sidecar keeps its own";
  EXPECT_EQ(DivideGpus(node, APod("p").InSteps(2, {{1, true}, {2}}).Shape(), 0x30),
            (Masks{0x10, 0x30}));
}

TEST(GpuDivision, IsTheKubeletsOnlyWithAPolicyAndKnownNumaNodes) {
  const APod two = APod("p").Whole(2);
  EXPECT_FALSE(KubeletLimits(Halves(kNone).Spec(), two.Shape()));
  EXPECT_FALSE(KubeletLimits(ANode("n").Gpus(8).Kubelet(kRestricted).Spec(), two.Shape()));
  EXPECT_FALSE(KubeletLimits(Halves(kRestricted).Named().Spec(), two.Shape()))
      << "an agent hands them out";
  EXPECT_FALSE(KubeletLimits(Halves(kRestricted).Spec(), APod("p").Share(300).Shape()));
  WiringTables tables;
  const GpuLinks known(BridgedCards(), SpeedsFor(BridgedCards()), {LinkSource::kCatalogue, "A"},
                       tables);
  EXPECT_FALSE(KubeletLimits(Halves(kRestricted).Linked(known).Spec(), two.Shape()))
      << "another machine of the product may be set up otherwise";
  EXPECT_TRUE(KubeletLimits(Halves(kRestricted).Spec(), two.Shape()));
}

TEST(GpuDivision, StepsThatDoNotAddUpAreOneStep) {
  RequestShape shape = APod("p").InSteps(3, {{2}, {1}}).Shape();
  EXPECT_EQ(StepsOf(shape).size(), 2U);
  shape.gpus = WholeGpus{2};  // as for an explanation: with fewer GPUs
  EXPECT_EQ(StepsOf(shape), (std::vector<GpuStep>{{2, false}}));
}

}  // namespace
}  // namespace berth::test::topology_manager_test
