// SPDX-License-Identifier: Apache-2.0
//
// Situations in which people ask why a pod waits or why it is where it is. Each answer is compared
// with what is true of the nodes that the test builds.
#include "scoring/explain/explain_pod.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/replay/time/sim_clock.h"
#include "cluster/state/snapshot.h"
#include "scoring/registry.h"
#include "test/support/builders.h"
#include "test/support/mig_nodes.h"
#include "test/support/wirings.h"

namespace berth::test::explain_pod_test {
namespace {

// BridgedCards: bridges join 0-1, 2-3 and 6-7; 0 to 3 are of one NUMA group, 4 to 7 of the other.
ANode Cards(const std::string& name) { return ANode(name).Gpus(8).Linked(LinksOf(BridgedCards())); }

class ExplainPodTest : public testing::Test {
 protected:
  PodExplanation Explain(const std::vector<ANode>& nodes, const PodRequest& pod) {
    return ExplainOn(SnapshotOf(nodes), pod);
  }
  PodExplanation ExplainOn(std::shared_ptr<const Snapshot> snapshot, const PodRequest& pod) {
    snapshot_ = std::move(snapshot);
    PodToExplain ask{.snapshot = snapshot_, .pod = pod};
    if (pod.domain.required) {
      tree_ = std::make_shared<const DomainTree>(DomainsOf(*snapshot_, {{"rack", {"rack"}}}));
      ask.group.tree = tree_;
    }
    ask.said = said_;
    ask.limits.budgets = budgets_;
    ask.limits.now = now_;
    ask.limits.gang_size = [](const GangId&) { return std::size_t{4}; };
    return ExplainPod(engine_, ask);
  }
  PodExplanation Explain(const std::vector<ANode>& nodes, const APod& pod) {
    return Explain(nodes, pod.Request());
  }
  // The nearest node and what would let the pod in.
  std::string Nearest(const std::vector<ANode>& nodes, const APod& pod) {
    const PodExplanation told = Explain(nodes, pod);
    return told.nearest.empty() ? "" : TextOfNearest(told);
  }
  [[nodiscard]] std::string TextOfNearest(const PodExplanation& told) const {
    const NearNode& near = told.nearest.at(0).near;
    std::string text = snapshot_->node(near.node).spec().name + ": " + near.lack;
    for (std::size_t i = 0; i < std::min<std::size_t>(near.ways.size(), 2); ++i) {
      text += (i == 0 ? "; fits " : ", or ") + near.ways[i].text;
    }
    return text;
  }

  Engine engine_{BuildProfile(*FindBuiltinProfile("best-fit"), {}).value()};
  std::shared_ptr<const Snapshot> snapshot_;
  std::shared_ptr<const DomainTree> tree_;
  PodSaid said_;
  std::vector<PodDisruptionBudget> budgets_;
  WallTime now_ = SimClock().Wall();
};

// --- GPUs that others have

TEST_F(ExplainPodTest, AGpuThatOnePodHasIsFreeWhenItEnds) {
  EXPECT_EQ(Nearest({ANode("n1").Gpus(2).Holding(APod("a").Whole(2), {0, 1})}, APod("p").Whole(1)),
            "n1: 0 of 2 GPUs idle, needs 1; fits when default/a ends");
}

TEST_F(ExplainPodTest, GpusThatThePodNamesAreCountedApart) {
  const ANode node = ANode("n1").Gpus(2).Named().Holding(APod("a").Whole(1), {0});
  EXPECT_EQ(Nearest({node}, APod("p").Whole(1).OnGpus({"GPU-0"})),
            "n1: 1 of 2 GPUs idle, 0 of them accepted by UUID, needs 1; fits when default/a ends, "
            "or if it accepts any GPU of the node");
  EXPECT_EQ(Nearest({node}, APod("p").Share(100).OnGpus({"GPU-x"})),
            "n1: 0 of 2 GPUs accepted by UUID, needs 1; fits if it accepts any GPU of the node");
  EXPECT_EQ(Nearest({ANode("n1").Gpus(2)}, APod("p").Whole(1).NotOnGpus({"GPU-0"})),
            "n1: 0 of 2 GPUs accepted by UUID, needs 1 (2 UUIDs unknown); fits if it accepts any "
            "GPU of the node");
  EXPECT_EQ(
      Nearest({ANode("n1").Gpus(2).Named("")}, APod("p").Whole(1).NotOnGpus({"GPU-0"})),
      "n1: 1 of 2 GPUs accepted by UUID, needs 1 (the device plugin picks the GPU itself); fits "
      "if it accepts any GPU of the node");
}

TEST_F(ExplainPodTest, SharesOfSeveralGpusAreToldWithTheirNumber) {
  const ANode node =
      ANode("n1").Gpus(3).Holding(APod("a").Share(600), {0}).Holding(APod("b").Share(700), {1});
  const APod two = APod("p").Shares(2, 500);
  EXPECT_EQ(Nearest({node}, two),
            "n1: largest free part of a GPU 1000 thousandths, needs 500; 1 GPU with so much free, "
            "needs 2; fits when default/a ends, or with shares of 1 GPU instead of 2");
  EXPECT_EQ(AskText(two.Shape().gpus), "a share of 500 thousandths of each of 2 GPUs");
  EXPECT_EQ(AskText(GpuShare{.milli = 500, .memory_milli = 250}),
            "a share of 500 thousandths and 250 thousandths of the memory of a GPU");
}

TEST_F(ExplainPodTest, MemoryInUnitsOfTheAgentIsNotSaidToBeMiB) {
  PodRequest pod = APod("p").ShareByMemory(4000).Request();
  pod.shape.share_agent = "koordinator";
  const auto asks = [&](const ANode& node) {
    const PodExplanation told = Explain({node}, pod);
    return AskText(told.shape, told.in_units);
  };
  EXPECT_EQ(asks(ANode("n1").Gpus(1).Named()), "a share of 4000 MiB of a GPU");
  EXPECT_EQ(asks(ANode("n1").Gpus(1, 81'920).Named().MemoryUnit(10)),
            "a share of 4000 units of memory of a GPU");
}

TEST_F(ExplainPodTest, NamesTheSmallestPodThatWouldFreeEnough) {
  const ANode node = ANode("n1")
                         .Gpus(4)
                         .Holding(APod("big").Whole(3), {0, 1, 2})
                         .Holding(APod("small").Whole(1), {3});
  EXPECT_EQ(Nearest({node}, APod("p").Whole(1)),
            "n1: 0 of 4 GPUs idle, needs 1; fits when default/small ends");
}

TEST_F(ExplainPodTest, WhereOneIsNotEnoughTheFewestAreNamed) {
  const ANode node = ANode("n1")
                         .Gpus(4)
                         .Holding(APod("a").Whole(1), {0})
                         .Holding(APod("b").Whole(1), {1})
                         .Holding(APod("c").Whole(2), {2, 3});
  EXPECT_EQ(Nearest({node}, APod("p").Whole(3)),
            "n1: 0 of 4 GPUs idle, needs 3; fits when default/b and default/c end");
}

TEST_F(ExplainPodTest, TheNodeThatLacksLeastIsNearest) {
  const PodExplanation told =
      Explain({ANode("n1").Gpus(8).Holding(APod("a").Whole(8), {0, 1, 2, 3, 4, 5, 6, 7}),
               ANode("n2").Gpus(8).Holding(APod("b").Whole(5), {0, 1, 2, 3, 4}), ANode("n3")},
              APod("p").Whole(4));
  ASSERT_EQ(told.nearest.size(), 3u);
  EXPECT_EQ(told.nearest[0].facts.name, "n2");
  EXPECT_EQ(told.nearest[0].near.ways[0].text, "when default/b ends");
  EXPECT_EQ(told.nearest[0].near.ways[1].text, "with 3 GPUs instead of 4");
  EXPECT_EQ(told.nearest[2].facts.name, "n3") << "it has no GPU";
}

TEST_F(ExplainPodTest, SaysWhoHoldsWhichGpu) {
  const PodExplanation told = Explain(
      {ANode("n1").Gpus(3).Holding(APod("a").Whole(1), {1}).Claimed({2})}, APod("p").Whole(2));
  const NodeReport& facts = told.nearest.at(0).facts;
  EXPECT_TRUE(facts.gpus[0].held_by.empty());
  EXPECT_EQ(facts.gpus[1].held_by, std::vector<std::string>{"default/a"});
  EXPECT_EQ(facts.gpus[2].held_by, std::vector<std::string>{"claim ns/claim"});
  EXPECT_EQ(facts.idle_gpus, 1);
}

TEST_F(ExplainPodTest, ANodeThatIsTooSmallCouldTakeLess) {
  EXPECT_EQ(Nearest({ANode("n1").Gpus(4)}, APod("p").Whole(8)),
            "n1: 4 of 4 GPUs idle, needs 8; fits with 4 GPUs instead of 8");
}

TEST_F(ExplainPodTest, AGpuThatIsOutOfOrderIsSaid) {
  EXPECT_EQ(Nearest({ANode("n1").Gpus(2).Unhealthy(1)}, APod("p").Whole(2)),
            "n1: 1 of 2 GPUs idle (1 unhealthy), needs 2; fits once 1 GPU of it is healthy again, "
            "or with 1 GPU instead of 2");
}

TEST_F(ExplainPodTest, AGpuThatIsMissingIsSaid) {
  EXPECT_EQ(Nearest({ANode("n1").Gpus(2).Missing(1)}, APod("p").Whole(2)),
            "n1: 1 of 2 GPUs idle (1 unhealthy), needs 2; fits once 1 GPU of it is healthy again, "
            "or with 1 GPU instead of 2");
  EXPECT_EQ(
      Nearest({ANode("n1").Gpus(2).Missing(2)}, APod("p").Whole(1)),
      "n1: its device plugin is gone, or offers no GPU; fits once its device plugin offers its "
      "2 GPUs again");
}

// --- Links and NUMA groups

TEST_F(ExplainPodTest, IdleGpusThatAreNotLinkedFitIfLinksArePreferred) {
  const ANode node =
      Cards("n17").Holding(APod("train-7").Whole(4), {1, 3, 6, 0}).Holding(APod("x").Share(1), {4});
  EXPECT_EQ(Nearest({node}, APod("p").Whole(2).Links({.link = LinkWish::kRequired})),
            "n17: 3 of 8 GPUs idle, needs 2 linked (largest linked set 1); fits with "
            "berth.dev/link: preferred, or when default/train-7 ends");
}

TEST_F(ExplainPodTest, GpusOfTwoNumaGroupsFitIfOneIsPreferred) {
  const ANode node = Cards("n1").Holding(APod("a").Whole(4), {0, 1, 4, 5});
  EXPECT_EQ(Nearest({node}, APod("p").Whole(3).Links({.numa = NumaWish::kRequired})),
            "n1: 4 of 8 GPUs idle, needs 3 of one NUMA group (at most 2 of one); fits with "
            "berth.dev/numa: preferred, or when default/a ends");
}

TEST_F(ExplainPodTest, ABandwidthThatNoSetHasIsSaid) {
  const PodExplanation told =
      Explain({Cards("n1")}, APod("p").Whole(8).Links({.min_megabytes_per_s = 100'000}));
  ASSERT_FALSE(told.nearest.empty());
  EXPECT_EQ(told.nearest[0].near.ways[0].text, "without berth.dev/min-bandwidth-gbps");
  EXPECT_NE(told.nearest[0].near.lack.find("needs a ring of 100 GB/s through 8 GPUs"),
            std::string::npos)
      << told.nearest[0].near.lack;
}

TEST_F(ExplainPodTest, WhereTwoRequirementsAreTooMuchBothAreNamedTogether) {
  const ANode node = Cards("n1").Holding(APod("a").Whole(5), {0, 1, 3, 6, 7});
  const APod pod =
      APod("p").Whole(3).Links({.link = LinkWish::kRequired, .numa = NumaWish::kRequired});
  const PodExplanation told = Explain({node}, pod);
  EXPECT_EQ(told.nearest.at(0).near.ways.at(0).text,
            "without requirements on links and NUMA nodes");
}

TEST_F(ExplainPodTest, SaysThatTheLinksAreUnknown) {
  EXPECT_EQ(Nearest({ANode("n1").Gpus(4)}, APod("p").Whole(2).Links({.link = LinkWish::kRequired})),
            "n1: did not publish the GPU links or NUMA nodes that the pod requires; fits with "
            "berth.dev/link: preferred, or with 1 GPU instead of 2");
}

// --- Shares

TEST_F(ExplainPodTest, TheLargestFreePartOfAGpuIsSaid) {
  const ANode node =
      ANode("n1").Gpus(2).Holding(APod("a").Share(700), {0}).Holding(APod("b").Share(800), {1});
  EXPECT_EQ(Nearest({node}, APod("p").Share(500)),
            "n1: largest free part of a GPU 300 thousandths, needs 500; fits when default/a ends, "
            "or with 300 thousandths of a GPU instead of 500");
}

TEST_F(ExplainPodTest, AShareByMemoryIsTold) {
  const ANode node = ANode("n1").Gpus(1, 16'000).Holding(APod("a").ShareByMemory(12'000), {0});
  const PodExplanation told = Explain({node}, APod("p").ShareByMemory(24'000));
  EXPECT_NE(told.nearest.at(0).near.lack.find("needs 24000"), std::string::npos);
  EXPECT_EQ(told.counts.at(0).reason, Reason::kShareNeverFits);
}

TEST_F(ExplainPodTest, PlacesOnSharedGpusAreCounted) {
  const ANode node = ANode("n1").Places(4);
  EXPECT_EQ(Nearest({node}, APod("p").Whole(2)).substr(0, 4), "n1: ");
  EXPECT_EQ(Explain({node}, APod("p").Whole(2)).counts.at(0).reason, Reason::kOnePlaceEach);
  const PodExplanation told = Explain({node}, APod("p").Whole(1).Isolated(Isolation::kHardware));
  EXPECT_EQ(told.nearest.at(0).near.ways.at(0).text, "without berth.dev/isolation");
}

TEST_F(ExplainPodTest, MemoryThatNoGpuHasIsSaidWithWhatThereIs) {
  PodRequest pod = APod("p").Whole(1).Request();
  pod.shape.min_gpu_memory_mib = 80 * 1024;
  const PodExplanation told = Explain({ANode("n1").Gpus(1, 24 * 1024)}, pod);
  EXPECT_EQ(told.nearest.at(0).near.ways.at(0).text, "with berth.dev/min-gpu-memory-gib: 24");
}

// --- MIG

TEST_F(ExplainPodTest, AProfileThatIsTakenIsToldWithWhatIsFree) {
  const ANode node = ANode("n1")
                         .Mig(StaticMig(1, kBalanced))
                         .HoldingMig(APod("a").Mig("3g.20gb"), {AGrantOf("3g.20gb")});
  EXPECT_EQ(
      Nearest({node}, APod("p").Mig("3g.20gb")),
      "n1: 2 1g.5gb, 1 2g.10gb free on 1 partitioned GPU, needs 1 MIG device 3g.20gb; fits when "
      "default/a ends, or with 2g.10gb instead of 3g.20gb");
}

TEST_F(ExplainPodTest, AnIdleNodeThatIsCutOtherwiseIsAdvisedToBeCutAnew) {
  const PodExplanation told =
      Explain({ANode("n1").Mig(StaticMig(2, kSevenSmall))}, APod("p").Mig("3g.20gb"));
  ASSERT_EQ(told.recuts.size(), 1u);
  EXPECT_EQ(told.recuts[0].node, "n1");
  EXPECT_EQ(told.recuts[0].advice.config, "all-3g.20gb");
  EXPECT_NE(told.sentence.find("idle node n1 would take it if repartitioned to all-3g.20gb"),
            std::string::npos)
      << told.sentence;
}

TEST_F(ExplainPodTest, WithoutPartitionedGpusThereIsNoMigDevice) {
  EXPECT_EQ(Explain({ANode("n1").Gpus(1)}, APod("p").Mig("1g.5gb")).counts.at(0).reason,
            Reason::kNoMig);
}

// --- What kube-scheduler decides by itself

TEST_F(ExplainPodTest, ATaintIsNamedWithTheTolerationThatIsMissing) {
  const PodExplanation told =
      Explain({ANode("n1").Gpus(1).Tainted("nvidia.com/gpu", "present")}, APod("p").Whole(1));
  EXPECT_EQ(told.scheduler.by_check[1], 1);
  EXPECT_EQ(
      told.sentence,
      "does not fit the only node; nearest is n1: has taint nvidia.com/gpu=present:NoSchedule; "
      "fits with a toleration of nvidia.com/gpu=present:NoSchedule");
}

TEST_F(ExplainPodTest, TaintsThatAreTooLongForTheLineAreCutShort) {
  const ANode node =
      ANode("n1")
          .Gpus(1)
          .NotReady()
          .Tainted("node.kubernetes.io/not-ready")
          .Tainted("startup-taint.cluster-autoscaler.kubernetes.io/gpu-driver-installation");
  const PodExplanation told = Explain({node}, APod("p").Whole(1));
  EXPECT_NE(told.sentence.find("nearest is n1: has taint"), std::string::npos) << told.sentence;
  EXPECT_NE(told.closed.text.find("1 node has taint startup-taint."), std::string::npos)
      << told.closed.text;
}

TEST_F(ExplainPodTest, ANodeThatOneChangeOpensIsNearerThanOneThatNeedsTwo) {
  NodeConstraints gone;
  gone.selector = {{"kubernetes.io/hostname", LabelOperator::kIn, {"gone"}}};
  const PodExplanation told =
      Explain({ANode("n1").Gpus(1).Tainted("maintenance"), ANode("n2").Gpus(1)},
              APod("p").Whole(1).Constrained(gone));
  EXPECT_TRUE(told.sentence.starts_with("fits none of 2 nodes; nearest is n2")) << told.sentence;
  EXPECT_TRUE(told.sentence.ends_with("fits without the node selector kubernetes.io/hostname"))
      << told.sentence;
}

TEST_F(ExplainPodTest, ANodeThatIsCordonedHasToBeUncordoned) {
  EXPECT_EQ(
      Explain({ANode("n1").Gpus(1).Tainted("node.kubernetes.io/unschedulable")}, APod("p").Whole(1))
          .nearest.at(0)
          .near.ways.at(0)
          .text,
      "once the node is uncordoned");
}

TEST_F(ExplainPodTest, TheNodeSelectorThatDoesNotHoldIsNamed) {
  const APod pod = APod("p").Whole(1).Constrained({{{"pool", LabelOperator::kIn, {"b"}}}, {}, {}});
  const PodExplanation told = Explain({ANode("n1").Gpus(1).Labelled({{"pool", "a"}})}, pod);
  EXPECT_EQ(told.scheduler.by_check[2], 1);
  EXPECT_EQ(told.nearest.at(0).near.ways.at(0).text, "without the node selector pool");
}

TEST_F(ExplainPodTest, ANodeThatIsNotReadyIsWaitedFor) {
  const PodExplanation told = Explain({ANode("n1").Gpus(1).NotReady()}, APod("p").Whole(1));
  EXPECT_EQ(told.scheduler.by_check[0], 1);
  EXPECT_EQ(told.nearest.at(0).near.ways.at(0).text, "once the node is ready");
}

TEST_F(ExplainPodTest, CpuThatIsTakenIsToldBesideTheIdleGpu) {
  const ANode node = ANode("n1").Gpus(2).Cpu(64).Holding(APod("a").Cpu(60));
  const PodExplanation told = Explain({node}, APod("p").Whole(1).Cpu(8));
  EXPECT_EQ(told.scheduler.by_check[3], 1);
  EXPECT_EQ(
      Nearest({node}, APod("p").Whole(1).Cpu(8)),
      "n1: 4 of 64 CPUs free, needs 8; fits when default/a ends, or with 4 CPUs instead of 8");
}

TEST_F(ExplainPodTest, SaysHowMuchMemoryIsFree) {
  const ANode node = ANode("n1").Gpus(2).MemoryGib(256).Holding(APod("a").MemoryGib(200));
  EXPECT_EQ(Nearest({node}, APod("p").Whole(1).MemoryGib(64)),
            "n1: 56 GiB of 256 GiB of memory free, needs 64 GiB; fits when default/a ends, or with "
            "56 GiB of memory instead of 64 GiB");
}

// --- Nodes that the pod may use, and the others

// `count` nodes of a pool, each with all of its GPUs held by a pod of its own.
std::vector<ANode> HeldPool(const std::string& pool, int count) {
  std::vector<ANode> nodes;
  for (int i = 0; i < count; ++i) {
    const std::string name = pool + std::to_string(100 + i);
    nodes.push_back(ANode(name)
                        .Gpus(2)
                        .Labelled({{"pool", pool}})
                        .Holding(APod("job-" + name).Whole(2), {0, 1}));
  }
  return nodes;
}

NodeConstraints InPool(const std::string& pool) {
  NodeConstraints constraints;
  constraints.selector = {{"pool", LabelOperator::kIn, {pool}}};
  return constraints;
}

TEST_F(ExplainPodTest, TheNearestNodeIsOfThePodsPoolAndTheOthersAreOneNumber) {
  std::vector<ANode> nodes = HeldPool("a", 40);
  for (const ANode& node : HeldPool("z", 4)) nodes.push_back(node);
  const PodExplanation told = Explain(nodes, APod("p").Whole(2).Constrained(InPool("z")));
  EXPECT_EQ(told.sentence,
            "fits none of 44 nodes; nearest is z100: 0 of 2 GPUs idle, needs 2; fits when "
            "default/job-z100 ends; 40 nodes are not in pool=z");
  EXPECT_EQ(told.closed.nodes, 40);
  EXPECT_EQ(told.closed.would_take, 0);
  ASSERT_EQ(told.nearest.size(), 4u) << "no node of the other pool is among them";
  EXPECT_EQ(told.counts.at(0).reason, Reason::kNodeNotSelected);
}

TEST_F(ExplainPodTest, AllNodesThatThePodMayUseAreCompared) {
  std::vector<ANode> nodes;
  for (int i = 0; i < 50; ++i) {  // two pods have to end on each
    const std::string name = "n" + std::to_string(100 + i);
    nodes.push_back(ANode(name)
                        .Gpus(4)
                        .Holding(APod("a-" + name).Whole(2), {0, 1})
                        .Holding(APod("b-" + name).Whole(2), {2, 3}));
  }
  nodes.push_back(ANode("n999").Gpus(4).Holding(APod("one").Whole(4), {0, 1, 2, 3}));
  const PodExplanation told = Explain(nodes, APod("p").Whole(4));
  EXPECT_EQ(told.nearest.at(0).facts.name, "n999");
  EXPECT_EQ(told.nearest.at(1).facts.name, "n100");
}

TEST_F(ExplainPodTest, ClosedNodesWithRoomAreCounted) {
  std::vector<ANode> nodes = HeldPool("a", 1);
  nodes.push_back(ANode("b1").Gpus(2).Labelled({{"pool", "b"}}));
  nodes.push_back(ANode("c1").Gpus(2).Labelled({{"pool", "a"}}).Tainted("dedicated", "x"));
  nodes.push_back(ANode("d1").Gpus(2).Labelled({{"pool", "b"}}).Tainted("dedicated", "x"));
  const PodExplanation told = Explain(nodes, APod("p").Whole(1).Constrained(InPool("a")));
  EXPECT_EQ(told.closed.text, "3 nodes are closed to it (node selector or affinity, taints)");
  EXPECT_EQ(told.closed.would_take, 3);
  EXPECT_EQ(told.closed.taker, "b1");
  nodes.push_back(ANode("z1").Gpus(2).Tainted("node.kubernetes.io/unschedulable"));
  EXPECT_EQ(Explain(nodes, APod("p").Whole(1)).closed.taker, "z1, which is cordoned");
  const PodExplanation other = Explain(nodes, APod("p").Whole(1).Constrained(InPool("a")));
  EXPECT_EQ(other.closed.taker, "b1") << "to uncordon z1 helps no pod of pool a";
  EXPECT_EQ(told.nearest.at(0).facts.name, "a100");
}

TEST_F(ExplainPodTest, WhatClosesNodesIsNamed) {
  const auto text = [this](const ANode& other, const APod& pod) {
    std::vector<ANode> nodes = HeldPool("a", 1);
    nodes.push_back(other);
    return Explain(nodes, pod).closed.text;
  };
  const APod pod = APod("p").Whole(1);
  EXPECT_EQ(text(ANode("n2").Gpus(1).Tainted("dedicated", "x"), pod),
            "1 node has taint dedicated=x:NoSchedule");
  EXPECT_EQ(text(ANode("n2").Gpus(1).Tainted("node.kubernetes.io/unschedulable"), pod),
            "1 node is cordoned");
  NodeConstraints gone = InPool("a");
  gone.selector[0].op = LabelOperator::kExists;
  gone.selector[0].values.clear();
  EXPECT_EQ(text(ANode("n2").Gpus(1), APod("p").Whole(1).Constrained(gone)),
            "1 node did not match the pod's node selector or affinity");
  PodRequest of_class = pod.Request();
  of_class.shape.nodes.forbidden = {"spot"};
  std::vector<ANode> nodes = HeldPool("a", 1);
  nodes.push_back(ANode("n2").Gpus(1).Traits({"spot"}));
  EXPECT_EQ(Explain(nodes, of_class).closed.text,
            "1 node had a trait that the pod's workload class forbids");
}

TEST_F(ExplainPodTest, WhereNothingHelpsOnOpenNodesAClosedOneIsNearest) {
  const PodExplanation told =
      Explain({ANode("cpu-1"), ANode("gpu-1").Gpus(1).Tainted("sku", "gpu")}, APod("p").Whole(1));
  EXPECT_EQ(TextOfNearest(told),
            "gpu-1: has taint sku=gpu:NoSchedule; fits with a toleration of sku=gpu:NoSchedule");
}

TEST_F(ExplainPodTest, ANodeThatIsNotReadyIsWaitedForWithItsTaints) {
  const ANode away = ANode("n1").Gpus(1).NotReady().Tainted("node.kubernetes.io/not-ready");
  const PodExplanation told = Explain({away}, APod("p").Whole(1));
  EXPECT_EQ(told.nearest.at(0).near.ways.at(0).text, "once the node is ready");
  EXPECT_EQ(told.counts.at(0).reason, Reason::kNodeNotReady);
  EXPECT_EQ(told.closed.nodes, 0);
  ANode cordoned = away;
  cordoned.Tainted("node.kubernetes.io/unschedulable");
  EXPECT_TRUE(Explain({cordoned}, APod("p").Whole(1)).nearest.at(0).near.ways.empty());
  const ANode full = ANode("n1").Gpus(1).Tainted("node.kubernetes.io/disk-pressure");
  EXPECT_EQ(Nearest({full}, APod("p").Whole(1)),
            "n1: has taint node.kubernetes.io/disk-pressure:NoSchedule; fits once its taint "
            "node.kubernetes.io/disk-pressure is gone");
}

TEST_F(ExplainPodTest, ATaintThatANodeJoinsWithIsWaitedForAndNotTolerated) {
  for (const std::string key :
       {"karpenter.sh/unregistered", "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cilium.io/agent-not-ready"}) {
    const PodExplanation told = Explain({ANode("n1").Gpus(1).Tainted(key)}, APod("p").Whole(1));
    EXPECT_EQ(told.nearest.at(0).near.ways.at(0).text, "once its taint " + key + " is gone");
    EXPECT_EQ(told.closed.nodes, 0);
  }
}

TEST_F(ExplainPodTest, OnANodeThatAnAutoscalerTakesAwayNothingHelps) {
  for (const char* key : {"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"}) {
    const PodExplanation told = Explain({ANode("n1").Gpus(1).Tainted(key)}, APod("p").Whole(1));
    EXPECT_TRUE(told.nearest.at(0).near.ways.empty()) << told.sentence;
  }
}

TEST_F(ExplainPodTest, AllLabelsThatFailAreNamedTogether) {
  NodeConstraints both = InPool("b");
  both.selector.push_back({"zone", LabelOperator::kIn, {"z"}});
  EXPECT_EQ(
      Explain({ANode("n1").Gpus(1).Labelled({{"pool", "a"}})}, APod("p").Whole(1).Constrained(both))
          .nearest.at(0)
          .near.ways.at(0)
          .text,
      "without the node selector pool and zone");
  NodeConstraints affinity = InPool("b");
  affinity.either = {{{{"zone", LabelOperator::kIn, {"z"}}}, {}}};
  EXPECT_EQ(Explain({ANode("n1").Gpus(1).Labelled({{"pool", "a"}})},
                    APod("p").Whole(1).Constrained(affinity))
                .nearest.at(0)
                .near.ways.at(0)
                .text,
            "without the node selector pool and the required node affinity");
}

TEST_F(ExplainPodTest, WhereCpuIsShortThePodsThatHoldCpuEnd) {
  ANode node = ANode("n1").Gpus(8).Cpu(64);
  for (int i = 0; i < 6; ++i) node.Holding(APod("train-" + std::to_string(i)).Whole(1).Cpu(4), {i});
  node.Holding(APod("web-0").Cpu(20)).Holding(APod("web-1").Cpu(20));
  EXPECT_EQ(Explain({node}, APod("p").Whole(1).Cpu(32)).nearest.at(0).near.ways.at(0).text,
            "when default/web-0 and default/web-1 end");
}

TEST_F(ExplainPodTest, WhatIsBackAtOnceIsNotToldToEnd) {
  const PodLife daemon{.comes_back = true};
  ANode node = ANode("n1").Gpus(2).Cpu(64);
  node.Holding(APod("agent").Cpu(40), {}, daemon).Holding(APod("web").Cpu(20));
  EXPECT_EQ(
      Nearest({node}, APod("p").Whole(1).Cpu(8)),
      "n1: 4 of 64 CPUs free, needs 8; fits when default/web ends, or with 4 CPUs instead of 8");
  EXPECT_EQ(Nearest({node}, APod("p").Whole(1).Cpu(32)),
            "n1: 4 of 64 CPUs free, needs 32; fits with 4 CPUs instead of 32");
}

TEST_F(ExplainPodTest, APodThatEndsByItselfIsNamedBeforeAService) {
  const PodLife job{.completes = true};
  ANode node = ANode("n1").Gpus(2);
  node.Holding(APod("a-web").Whole(1), {0}).Holding(APod("job").Whole(1), {1}, job);
  EXPECT_EQ(Nearest({node}, APod("p").Whole(1)),
            "n1: 0 of 2 GPUs idle, needs 1; fits when default/job ends");
}

TEST_F(ExplainPodTest, APodOfADeploymentDoesNotEndByItself) {
  const PodLife web{.replica_set = "web-5d4f"};
  ANode node = ANode("n1").Gpus(2);
  node.Holding(APod("a").Whole(1), {0}, web).Holding(APod("b").Whole(1), {1}, web);
  EXPECT_EQ(Nearest({node}, APod("p").Whole(1)),
            "n1: 0 of 2 GPUs idle, needs 1; fits when default/a is scaled down");
  EXPECT_EQ(Nearest({node}, APod("p").Whole(2)),
            "n1: 0 of 2 GPUs idle, needs 2; fits when default/a and default/b are scaled down");
}

TEST_F(ExplainPodTest, ACordonedNodeIsSaidToBeCordoned) {
  const APod pod = APod("p").Whole(1);
  EXPECT_EQ(Nearest({ANode("n1").Gpus(1).Tainted(std::string(kCordonTaint))}, pod),
            "n1: is cordoned; fits once the node is uncordoned");
  EXPECT_EQ(Nearest({ANode("n1").Gpus(1).Tainted(std::string(kCordonTaint)).Tainted("a")}, pod),
            "n1: is cordoned, has taint a:NoSchedule; fits with a toleration of a:NoSchedule and "
            "once the node is uncordoned");
}

TEST_F(ExplainPodTest, WhereLinksAreWhyFewerGpusFitTheyAreNamed) {
  const ANode node = Cards("n1").Holding(APod("x").Whole(2), {0, 2});
  EXPECT_EQ(Nearest({node}, APod("p").Whole(16).Links({.link = LinkWish::kRequired})),
            "n1: 6 of 8 GPUs idle, needs 16; fits with 2 linked GPUs instead of 16");
}

// A cure that is cut off in the middle is pasted as it is.
TEST_F(ExplainPodTest, ACureThatDoesNotFitTheLineIsNotCutInTheMiddle) {
  const std::string key = "example.com/" + std::string(63, 'k');
  PodRequest pod = APod("p").Whole(1).Request();
  pod.id.name = std::string(60, 'p');
  const auto told = Explain({ANode("n1").Gpus(1).Tainted(key, std::string(63, 'v'))}, pod);
  EXPECT_EQ(told.sentence.find("..."), std::string::npos) << told.sentence;
  EXPECT_NE(told.sentence.find("fits if the pod is changed"), std::string::npos) << told.sentence;
}

// The nodes of its own pool will never take it: one of another pool would not either.
TEST_F(ExplainPodTest, WhereItsPoolHasTooLittleInAllTheLineSaysSoAndPointsAtNoOtherPool) {
  const auto in = [](const char* name, const char* pool) {
    return ANode(name).Gpus(4).MemoryGib(64).Labelled({{"pool", pool}});
  };
  const std::vector<ANode> nodes = {in("g1", "g").Holding(APod("a").Whole(4), {0, 1, 2, 3}),
                                    in("g2", "g").Holding(APod("b").Whole(4), {0, 1, 2, 3}),
                                    in("a1", "a")};
  const auto told = Explain(nodes, APod("p").Whole(2).MemoryGib(200).Constrained(InPool("g")));
  EXPECT_EQ(
      told.sentence,
      "fits none of 3 nodes; its 2 nodes in pool=g have at most 64 GiB of memory, it needs 200 "
      "GiB; 1 node is not in pool=g");
  for (const NearNodeFacts& nearest : told.nearest) EXPECT_NE(nearest.facts.name, "a1");
  const auto fits_there = Explain(nodes, APod("p").Whole(5).Constrained(InPool("a")));
  EXPECT_EQ(fits_there.nearest.at(0).facts.name, "a1");
}

TEST_F(ExplainPodTest, WhereNoNodeOfItsPoolEverTakesItTheLineSaysWhatTheyLack) {
  const auto in = [](const char* name, const char* model, int gpus) {
    return ANode(name).Gpus(gpus).Model(model).MemoryGib(64).Labelled({{"pool", "g"}});
  };
  const std::vector<ANode> nodes = {in("g1", "T4", 4).NotReady(), in("g2", "T4", 4),
                                    in("g3", "A100", 1), ANode("a1").Gpus(1).Model("A100")};
  const APod pod = APod("p").Whole(2).Models({"A100"}).MemoryGib(200).Constrained(InPool("g"));
  const std::string told = Explain(nodes, pod).sentence;
  EXPECT_TRUE(
      told.starts_with("fits none of 4 nodes; none of its 3 nodes in pool=g ever takes it: "
                       "2 had no GPU model that the pod accepts, 1 had "))
      << told;
  EXPECT_EQ(told.find(" had no GPU model", told.find("ever takes it")),
            told.rfind(" had no GPU model"))
      << "no count is said twice: " << told;
}

TEST_F(ExplainPodTest, WhereTheNodeHasToGetWellAndPodsHaveToEndBothAreSaid) {
  const auto told = Explain({ANode("n1").Gpus(2).NotReady().Holding(APod("a").Whole(2), {0, 1})},
                            APod("p").Whole(1));
  ASSERT_FALSE(told.nearest.at(0).near.ways.empty());
  EXPECT_EQ(told.nearest[0].near.ways[0].code, "node_and_pods");
  EXPECT_EQ(told.nearest[0].near.ways[0].text, "once the node is ready and default/a ends");
}

TEST_F(ExplainPodTest, OfManyPodsThatHaveToEndAFewAreNamed) {
  ANode node = ANode("n1").Gpus(6);
  for (int i = 0; i < 6; ++i) node.Holding(APod("a" + std::to_string(i)).Whole(1), {i});
  const auto told = Explain({node}, APod("p").Whole(6));
  const WayIn& way = told.nearest.at(0).near.ways.at(0);
  EXPECT_EQ(way.text, "when default/a0, default/a1, default/a2 and 3 more of its pods end");
  EXPECT_EQ(way.pods.size(), 6U);
}

// --- What kube-scheduler counts beside

TEST_F(ExplainPodTest, ANodeThatLacksAnotherResourceDoesNotFit) {
  const OtherResources one = {{"rdma/hca", 1}};
  const APod pod = APod("p").Whole(1).Others(one);
  const auto told = Explain({ANode("n1").Gpus(8).Counts(110, {})}, pod);
  EXPECT_EQ(told.fitting, 0U);
  EXPECT_EQ(told.sentence,
            "has the GPUs, CPU and memory that it needs on 1 node, but 1 lacks rdma/hca");
  ANode taken = ANode("n1").Gpus(8).Counts(110, one);
  taken.Holding(APod("nic").Others(one));
  EXPECT_EQ(Explain({taken}, pod).fitting, 0U);
  EXPECT_EQ(Explain({taken, ANode("n2").Gpus(8).Counts(110, one)}, pod).fitting, 1U);
  EXPECT_EQ(
      Explain({ANode("n1").Gpus(8).Counts(1, {}).Holding(APod("x"))}, APod("p").Whole(1)).sentence,
      "has the GPUs, CPU and memory that it needs on 1 node, but 1 takes no more pods: end "
      "one there, or raise maxPods");
}

TEST_F(ExplainPodTest, NoPodIsToldToEndWhereTheNodeLacksAnotherResourceThen) {
  ANode node = ANode("n1").Gpus(1).Counts(110, {});
  node.Holding(APod("x").Whole(1), {0});
  EXPECT_EQ(Nearest({node}, APod("p").Whole(1).Others({{"rdma/hca", 1}})),
            "n1: 0 of 1 GPU idle, needs 1");
}

TEST_F(ExplainPodTest, WhatOnlyKubeSchedulerJudgesIsNamedWhereItFits) {
  EXPECT_TRUE(Explain({ANode("n1").Gpus(1)},
                      APod("p").Whole(1).LeftToScheduler({.host_ports = true, .volumes = true}))
                  .sentence.ends_with("; Berth does not judge: host ports, volumes"));
}

TEST_F(ExplainPodTest, APodThatIsEndingIsNamedFirst) {
  const PodLife ending{.ends = now_};
  ANode node = ANode("n1").Gpus(4);
  node.Holding(APod("a").Whole(1), {0}).Holding(APod("z").Whole(3), {1, 2, 3}, ending);
  EXPECT_EQ(Nearest({node}, APod("p").Whole(1)),
            "n1: 0 of 4 GPUs idle, needs 1; fits when default/z ends (it is ending now)");
  EXPECT_EQ(Nearest({node}, APod("p").Whole(4)),
            "n1: 0 of 4 GPUs idle, needs 4; fits when default/a and default/z end (1 is ending "
            "now)");
}

TEST_F(ExplainPodTest, TaintAndSelectorThatFailTogetherAreToldTogether) {
  ANode node = ANode("n1").Gpus(1).Labelled({{"pool", "a"}, {"zone", "x"}}).Tainted("sku", "gpu");
  NodeConstraints constraints;
  constraints.selector = {{"pool", LabelOperator::kIn, {"b"}}, {"zone", LabelOperator::kIn, {"y"}}};
  const auto told = Explain({node}, APod("p").Whole(1).Constrained(constraints));
  EXPECT_EQ(told.nearest.at(0).near.ways.at(0).code, "access");
  EXPECT_EQ(told.nearest.at(0).near.ways.at(0).text,
            "without the node selector pool and zone and with a toleration of sku=gpu:NoSchedule");
}

TEST_F(ExplainPodTest, OfMigNodesTheOneWithTheLargestDeviceIsNearest) {
  const auto told = Explain({ANode("a").Mig(StaticMig(1, kSevenSmall)),
                             ANode("z").Mig(StaticMig(1, {{"3g.20gb", 0}, {"3g.20gb", 4}}))},
                            APod("p").Mig("7g.40gb"));
  EXPECT_EQ(told.nearest.at(0).facts.name, "z");
}

TEST_F(ExplainPodTest, ANodeThatShouldHaveGpusSaysWhatIsMissing) {
  NodeSpec spec = ANode("z1").Spec();
  spec.gpus_to_come = true;
  const auto snapshot = std::make_shared<const Snapshot>(std::vector<std::shared_ptr<const Node>>{
      std::make_shared<const Node>(ANode("cpu-1").Build()),
      std::make_shared<const Node>(std::make_shared<const NodeSpec>(spec))});
  const auto told = ExplainOn(snapshot, APod("p").Whole(1).Request());
  EXPECT_EQ(TextOfNearest(told),
            "z1: should have GPUs, and no device plugin yet: start it, or ask by a claim");
  spec.gpu_model = "NVIDIA-L40S";
  const auto labelled = std::make_shared<const Snapshot>(std::vector<std::shared_ptr<const Node>>{
      std::make_shared<const Node>(std::make_shared<const NodeSpec>(spec))});
  EXPECT_EQ(TextOfNearest(ExplainOn(labelled, APod("p").Whole(1).Request())),
            "z1: has NVIDIA-L40S by its labels, and no device plugin yet: start it, or ask by a "
            "claim");
}

// It has a cure; what is against the pod beside it has to be cured too, and is said.
TEST_F(ExplainPodTest, OfANodeThatLacksItsDevicePluginAloneNothingIsSaidToBeForever) {
  NodeSpec spec = ANode("z1").Cpu(8).Spec();
  spec.gpus_to_come = true;
  spec.gpu_model = "NVIDIA-L40S";
  const auto snapshot = std::make_shared<const Snapshot>(std::vector<std::shared_ptr<const Node>>{
      std::make_shared<const Node>(ANode("cpu-1").Build()),
      std::make_shared<const Node>(std::make_shared<const NodeSpec>(spec))});
  const std::string told = ExplainOn(snapshot, APod("p").Whole(1).Request()).sentence;
  EXPECT_EQ(told.find("never take"), std::string::npos) << told;
  EXPECT_EQ(told.find("ever takes"), std::string::npos) << told;
  EXPECT_NE(told.find("nearest is z1: has NVIDIA-L40S by its labels, and no device plugin yet"),
            std::string::npos)
      << told;
  PodRequest amds = APod("p").Whole(1).Request();
  amds.shape.gpu_resource = "amd.com/gpu";
  const std::pair<PodRequest, const char*> others[] = {
      {APod("p").Whole(1).Cpu(9).Request(), "8 of 8 CPUs free, needs 9"},
      {APod("p").Whole(1).Models({"A100"}).Request(), "has NVIDIA-L40S, the pod accepts A100"},
      {amds, "had no GPUs of the resource that the pod asks for"}};
  for (const auto& [pod, lack] : others) {
    const PodExplanation explained = ExplainOn(snapshot, pod);
    EXPECT_NE(TextOfNearest(explained).find(lack), std::string::npos) << TextOfNearest(explained);
    EXPECT_EQ(explained.sentence.find("device plugin"), std::string::npos) << explained.sentence;
  }
}

TEST_F(ExplainPodTest, OfAPluginThatIsGoneItIsSaidWhatItHasToOffer) {
  const auto told = Nearest({ANode("n1").Gpus(8).Missing(8)}, APod("p").Whole(1));
  EXPECT_TRUE(told.ends_with("; fits once its device plugin offers its 8 GPUs again")) << told;
  EXPECT_TRUE(Nearest({ANode("n1").Gpus(8).Missing(8)}, APod("p").Whole(9))
                  .starts_with("n1: 0 of 8 GPUs idle (8 not offered), needs 9"));
  NodeSpec shared = ANode("n1").Places(8).Spec();  // two GPUs with four users each
  shared.places.gpus = 2;
  shared.places.several = true;
  for (const auto& [missing, way] : {std::pair(8, "its device plugin offers its 2 GPUs again"),
                                     {1, "1 GPU of it is healthy again"}}) {
    shared.missing = missing;
    const auto node = std::make_shared<const Node>(std::make_shared<const NodeSpec>(shared));
    const PodRequest pod = APod("p").Whole(8).Request();
    const auto told_of = ExplainOn(
        std::make_shared<const Snapshot>(std::vector<std::shared_ptr<const Node>>{node}), pod);
    EXPECT_NE(TextOfNearest(told_of).find(std::string("; fits once ") + way), std::string::npos)
        << TextOfNearest(told_of);
  }
}

// --- Rolling updates

TEST_F(ExplainPodTest, ANewPodAndTheOldOneThatWaitForEachOtherAreTold) {
  const ANode node = ANode("n1").Gpus(8).Holding(
      APod("train-aaa-1").Whole(8), {0, 1, 2, 3, 4, 5, 6, 7}, {.replica_set = "train-aaa"});
  said_.replica_set = "train-bbb";
  const auto told = Explain({node}, APod("train-bbb-1").Whole(8));
  ASSERT_TRUE(told.rollout);
  EXPECT_EQ(told.rollout->deployment, "train");
  EXPECT_TRUE(told.sentence.starts_with(
      "does not fit the only node; its Deployment keeps default/train-aaa-1 on n1 until it runs: "
      "set maxSurge: 0"))
      << told.sentence;
  for (const char* other : {"", "train-aaa", "other-bbb"}) {
    said_.replica_set = other;
    EXPECT_FALSE(Explain({node}, APod("p").Whole(8)).rollout) << other;
  }
  said_.replica_set = "train-bbb";
  EXPECT_FALSE(Explain({node}, APod("p").Whole(8).Namespace("other")).rollout);
  EXPECT_FALSE(Explain({node}, APod("p").Whole(9)).rollout) << "the old one has not enough";
}

// --- Models, groups, the pod itself

TEST_F(ExplainPodTest, AnAbsentModelIsNamedWithTheAvailableOnes) {
  const PodExplanation told =
      Explain({ANode("n1").Gpus(2).Model("T4")}, APod("p").Whole(1).Models({"A100", "H100"}));
  EXPECT_EQ(TextOfNearest(told),
            "n1: has T4, the pod accepts A100 or H100; fits if it accepts GPU model T4");
  ASSERT_EQ(told.models.size(), 1u);
  EXPECT_EQ(told.models[0].model, "T4");
}

TEST_F(ExplainPodTest, ADomainThatIsTooSmallForTheGroupIsTold) {
  const APod pod = APod("p").Whole(1).Gang("ns/g").GangSize(4).Requires(0);
  const PodExplanation told = Explain({ANode("n1").Gpus(2).Labelled({{"rack", "r1"}}),
                                       ANode("n2").Gpus(2).Labelled({{"rack", "r2"}})},
                                      pod);
  EXPECT_EQ(told.counts.at(0).reason, Reason::kNoDomainHasRoom);
  EXPECT_EQ(told.nearest.at(0).near.ways.at(0).text,
            "with a preferred topology domain instead of a required one");
}

TEST_F(ExplainPodTest, SaysWhatIsWrongWithThePod) {
  PodRequest pod = APod("p").Whole(1).Request();
  pod.refusal = "annotation berth.dev/link: want required, preferred or none, got \"yes\"";
  const PodExplanation told = Explain({ANode("n1").Gpus(1)}, pod);
  EXPECT_EQ(told.sentence, "the pod must be changed: " + pod.refusal);
  EXPECT_TRUE(told.nearest.empty());
}

TEST_F(ExplainPodTest, WithoutNodesThereIsNothingToCompare) {
  EXPECT_EQ(Explain({}, APod("p").Whole(1)).sentence, "no node is known");
}

// --- Preemption

TEST_F(ExplainPodTest, WhoCouldBeEvictedIsNamed) {
  const ANode node = ANode("n1").Gpus(1).Holding(APod("low").Whole(1).Priority(1), {0});
  const PodExplanation told = Explain({node}, APod("p").Whole(1).Priority(5));
  ASSERT_TRUE(told.preemption);
  EXPECT_TRUE(told.preemption->helps);
  EXPECT_EQ(told.preemption->node, "n1");
  EXPECT_EQ(told.preemption->victims, std::vector<std::string>{"default/low"});
}

TEST_F(ExplainPodTest, SaysThatNoPodHasALowerPriority) {
  const ANode node = ANode("n1").Gpus(1).Holding(APod("same").Whole(1).Priority(5), {0});
  const PodExplanation told = Explain({node}, APod("p").Whole(1).Priority(5));
  EXPECT_FALSE(told.preemption->helps);
  EXPECT_EQ(told.preemption->text, "no pod has a priority below 5");
  PodRequest meek = APod("p").Whole(1).Priority(9).Request();
  meek.may_preempt = false;
  EXPECT_EQ(Explain({node}, meek).preemption->text, "the pod's preemptionPolicy is Never");
}

TEST_F(ExplainPodTest, EvictionsAreFoundInAnyPoolOfALargeCluster) {
  std::vector<ANode> nodes = HeldPool("a", 40);
  nodes.push_back(
      ANode("z1").Gpus(2).Labelled({{"pool", "z"}}).Holding(APod("low").Whole(2), {0, 1}));
  const PodExplanation told =
      Explain(nodes, APod("p").Whole(2).Priority(5).Constrained(InPool("z")));
  EXPECT_TRUE(told.preemption->helps);
  EXPECT_EQ(told.preemption->node, "z1");
  EXPECT_EQ(told.sentence,
            "fits none of 41 nodes; kube-scheduler can evict default/low on z1 for it; nearest is "
            "z1: 0 of 2 GPUs idle, needs 2; fits when default/low ends");
}

TEST_F(ExplainPodTest, APodWithoutGpusIsEvictedForItsCpu) {
  const ANode node = ANode("n1").Gpus(2).Cpu(64).Holding(APod("web").Cpu(60));
  const auto told = Explain({node}, APod("p").Whole(1).Cpu(8).Priority(5));
  EXPECT_EQ(told.preemption->victims, std::vector<std::string>{"default/web"});
}

TEST_F(ExplainPodTest, ABudgetKeepsNobodyFromKubeScheduler) {
  const ANode node =
      ANode("n1").Gpus(1).Holding(APod("low").Whole(1).Labelled({{"app", "web"}}), {0});
  budgets_ = {{"default", "b", LabelSelector{{"app", LabelOperator::kIn, {"web"}}}, 0}};
  const auto told = Explain({node}, APod("p").Whole(1).Priority(5));
  EXPECT_TRUE(told.preemption->helps);
  EXPECT_TRUE(told.preemption->text.ends_with("1 of them beyond a PodDisruptionBudget"))
      << told.preemption->text;
}

TEST_F(ExplainPodTest, WhereItsOwnCountHasRoomKubeSchedulerEvictsNobody) {
  const ANode node = ANode("n1").Gpus(1).Holding(APod("low").Share(600), {0});
  const auto told = Explain({node}, APod("p").Share(500).Priority(5));
  EXPECT_FALSE(told.preemption->helps);
  EXPECT_EQ(told.preemption->text,
            "kube-scheduler evicts nobody where its own count has room, before version 1.38: the "
            "pod would fit n1 without default/low");
}

TEST_F(ExplainPodTest, NoCauseIsToldThatWasNotFound) {
  const ANode node = ANode("n1")
                         .Gpus(2)
                         .Holding(APod("low").Whole(1), {0})
                         .Holding(APod("high").Whole(1).Priority(9), {1});
  EXPECT_EQ(Explain({node}, APod("p").Whole(2).Priority(5)).preemption->text,
            "no node was found where evicting pods of lower priority would do");
}

TEST_F(ExplainPodTest, EvictionsThatAreUnderWayAreToldWithTheTimeThatIsLeft) {
  const WallTime now = SimClock().Wall();
  const PodLife ending{.ends = now + std::chrono::seconds(35)};
  const ANode node = ANode("n1").Gpus(2).Holding(APod("low").Whole(2), {0, 1}, ending);
  said_.nominated = "n1";
  now_ = now;
  const auto told = Explain({node}, APod("p").Whole(2).Priority(5));
  EXPECT_TRUE(told.preemption->under_way);
  EXPECT_EQ(told.preemption->text, "under way: default/low on n1 has 35 s to end");
  EXPECT_TRUE(
      told.sentence.starts_with("does not fit the only node; preemption is under way: "
                                "default/low on n1 has 35 s to end"))
      << told.sentence;
  now_ = now + std::chrono::minutes(1);
  EXPECT_EQ(Explain({node}, APod("p").Whole(2).Priority(5)).preemption->text,
            "under way: default/low on n1 is ending");
  said_.nominated = "gone";
  EXPECT_FALSE(Explain({node}, APod("p").Whole(2).Priority(5)).preemption->under_way);
}

TEST_F(ExplainPodTest, EvictionsOnANodeThatDiedMeanwhileAreNotUnderWay) {
  const PodLife ending{.ends = SimClock().Wall()};
  said_.nominated = "n1";
  ANode dead = ANode("n1").Gpus(2).NotReady().Holding(APod("low").Whole(2), {0, 1}, ending);
  const ANode other = ANode("n2").Gpus(2).Holding(APod("low2").Whole(2), {0, 1});
  const auto told = Explain({dead, other}, APod("p").Whole(2).Priority(5));
  EXPECT_FALSE(told.preemption->under_way);
  EXPECT_EQ(told.preemption->node, "n2") << "kube-scheduler preempts anew";
}

// --- Pods that are somewhere, or could be

TEST_F(ExplainPodTest, NamesTheBestNodesOfAPodThatFits) {
  const PodExplanation told =
      Explain({ANode("n1").Gpus(8), ANode("n2").Gpus(2)}, APod("p").Whole(2));
  EXPECT_EQ(told.sentence, "fits 2 of 2 nodes now, best is n2");
  ASSERT_EQ(told.best.size(), 2u);
  EXPECT_EQ(told.best[0].parts.at(0).scorer, "best-fit");
  EXPECT_GT(told.best[0].parts[0].score, told.best[1].parts.at(0).score);
  EXPECT_TRUE(told.nearest.empty());
  EXPECT_FALSE(told.preemption);
}

TEST_F(ExplainPodTest, SaysThatAPodIsDrawnBackToItsPredecessorsNode) {
  Engine engine(BuildProfile(*FindBuiltinProfile("expected-waste"), {}).value());
  const auto snapshot = SnapshotOf({ANode("n1").Gpus(8), ANode("n2").Gpus(2)});
  const PodRequest pod = APod("p").Whole(2).Request();
  PodToExplain ask{.snapshot = snapshot, .pod = pod};
  EXPECT_EQ(ExplainPod(engine, ask).sentence, "fits 2 of 2 nodes now, best is n2");
  ask.group.former = {0};
  EXPECT_EQ(ExplainPod(engine, ask).sentence,
            "fits 2 of 2 nodes now, best is n1, where its predecessor ran");
}

TEST_F(ExplainPodTest, APodThatIsBoundIsJudgedAgainWithoutItself) {
  const APod pod = APod("p").Whole(2);
  const PodExplanation told =
      Explain({ANode("n1").Gpus(8), ANode("n2").Gpus(2).Holding(pod, {0, 1})}, pod);
  ASSERT_TRUE(told.placed);
  EXPECT_EQ(told.placed->placement.node, "n2");
  EXPECT_EQ(told.fitting, 2u);
  EXPECT_TRUE(
      told.sentence.starts_with("is on n2 with GPU 0, GPU 1; scored now, it ranks "
                                "1 of 2 fitting nodes, before n1 (best-fit "))
      << told.sentence;
}

TEST_F(ExplainPodTest, NamesTheBestNodeOfAPlacedPod) {
  const APod pod = APod("p").Whole(2);
  const PodExplanation told =
      Explain({ANode("n1").Gpus(8).Holding(pod, {0, 1}), ANode("n2").Gpus(2)}, pod);
  EXPECT_NE(told.sentence.find("it ranks 2 of 2 fitting nodes, behind n2"), std::string::npos)
      << told.sentence;
}

TEST_F(ExplainPodTest, GpusOfAPodBoundPastBerthAreUnknown) {
  const APod pod = APod("p").Whole(1);
  const PodExplanation told = Explain({ANode("n1").Gpus(2).Holding(pod)}, pod);
  EXPECT_TRUE(told.sentence.starts_with("is on n1 with 1 GPU, devices unknown")) << told.sentence;
}

// --- Every other class of reason: its code, and the change that is named first

struct Situation {
  const char* name;
  Node node;
  PodRequest pod;
  Reason reason;
  const char* change;  // "" = none helps
};

Node SharingItsGpus(GpuSharing sharing) {
  NodeSpec spec = ANode("n1").Places(8).Spec();
  spec.places.gpus = 2;
  spec.places.sharing = sharing;
  return Node(std::make_shared<const NodeSpec>(spec));
}

Node OfVendor(const std::string& resource, bool shares_need_uuids = false) {
  NodeSpec spec = ANode("n1").Gpus(2).Spec();
  spec.gpu_resource = resource;
  spec.shares_need_uuids = shares_need_uuids;
  return Node(std::make_shared<const NodeSpec>(spec));
}

Node Cut(MigTrouble trouble = MigTrouble::kNone, bool foreign = false) {
  MigSpec spec = StaticMig(1, kSevenSmall);
  spec.trouble = trouble;
  spec.foreign = foreign;
  return ANode("n1").Mig(std::move(spec)).Build();
}

Node HeldBy(const APod& pod, const std::vector<int>& gpus) {
  return ANode("n1").Gpus(1).Holding(APod(pod).Priority(9), gpus).Build();
}

std::vector<Situation> Situations() {
  const PodRequest one = APod("p").Whole(1).Request(), share = APod("p").Share(500).Request();
  const PodRequest small = APod("p").Mig("1g.5gb").Request();
  const PodRequest guarded = APod("p").Whole(1).Isolated(Isolation::kMemory).Request();
  PodRequest nvidia = one, large = one;
  nvidia.shape.gpu_resource = "nvidia.com/gpu";
  large.shape.min_gpu_memory_mib = 1024;
  using enum Reason;
  return {
      {"no GPU", ANode("n1").Build(), one, kNoGpu, ""},
      {"another vendor", OfVendor("amd.com/gpu"), nvidia, kOtherResource, "resource"},
      {"foreign GPUs", ANode("n1").Places(4, true).Build(), one, kGpusForeign, ""},
      {"a share of places", ANode("n1").Places(4).Build(), share, kPlacesOnly, ""},
      {"time slicing", SharingItsGpus(GpuSharing::kTimeSlicing), guarded, kTimeSliced, "isolation"},
      {"unknown sharing", SharingItsGpus(GpuSharing::kUnknown), guarded, kSharedSomehow,
       "isolation"},
      {"a GPU of its own", SharingItsGpus(GpuSharing::kMps),
       APod("p").Whole(1).Isolated(Isolation::kHardware).Request(), kNotItsOwn, "isolation"},
      {"shares unguarded", ANode("n1").Gpus(1).Build(),
       APod("p").Share(500).Isolated(Isolation::kMemory).Request(), kSharesUnguarded, "isolation"},
      {"shares without UUIDs", OfVendor("", true), share, kSharesNotCarriedOut, ""},
      {"unknown GPU memory", ANode("n1").Gpus(1, 0).Build(), large, kGpuMemoryUnknown,
       "gpu_memory"},
      {"too few CPUs", ANode("n1").Gpus(1).Cpu(4).Build(), APod("p").Whole(1).Cpu(8).Request(),
       kTooFewCpus, "cpu"},
      {"too little memory", ANode("n1").Gpus(1).MemoryGib(4).Build(),
       APod("p").Whole(1).MemoryGib(8).Request(), kTooLittleMemory, "memory"},
      {"too little disk", ANode("n1").Gpus(1).DiskGib(4).Build(),
       APod("p").Whole(1).DiskGib(8).Request(), kTooLittleDisk, "disk"},
      {"no such profile", Cut(), APod("p").Mig("3g.20gb").Request(), kNoMigProfile, "size"},
      {"too few devices", Cut(), APod("p").Mig("1g.5gb", 8).Request(), kTooFewMig, "size"},
      {"by name only", Cut(), APod("p").MigNeeding(1, 1000).Request(), kMigByNameOnly, ""},
      {"changing", Cut(MigTrouble::kChanging), small, kMigChanging, ""},
      {"foreign devices", Cut(MigTrouble::kNone, true), small, kMigForeign, ""},
      {"held for good", HeldBy(APod("a").Whole(1), {0}), one, kGpusHeld, "pods_end"},
      {"a share held", HeldBy(APod("a").Share(800), {0}), share, kShareHeld, "pods_end"},
      {"CPU held", HeldBy(APod("a").Cpu(60), {}), APod("p").Whole(1).Cpu(8).Request(), kCpuHeld,
       "pods_end"},
  };
}

TEST_F(ExplainPodTest, EachClassOfReasonIsCountedWithItsCure) {
  for (const Situation& situation : Situations()) {
    SCOPED_TRACE(situation.name);
    const std::vector<std::shared_ptr<const Node>> nodes = {
        std::make_shared<const Node>(situation.node)};
    const PodExplanation told = ExplainOn(std::make_shared<const Snapshot>(nodes), situation.pod);
    ASSERT_EQ(told.counts.size(), 1u);
    EXPECT_EQ(CodeOf(told.counts[0].reason), CodeOf(situation.reason));
    ASSERT_EQ(told.nearest.size(), 1u);
    EXPECT_FALSE(told.nearest[0].near.lack.empty());
    const std::vector<WayIn>& ways = told.nearest[0].near.ways;
    EXPECT_EQ(ways.empty() ? "" : ways[0].code, situation.change);
  }
}

// --- The question leaves no trace

TEST_F(ExplainPodTest, TheEngineAnswersAsBefore) {
  const std::vector<ANode> nodes = {ANode("n1").Gpus(2), ANode("n2").Gpus(4)};
  const auto snapshot = SnapshotOf(nodes);
  const RequestShape shape = APod("x").Whole(1).Shape();
  const auto before = engine_.Best(snapshot, shape);
  Explain(nodes, APod("p").Whole(8));
  Explain(nodes, APod("p").Whole(1));
  EXPECT_EQ(engine_.Best(snapshot, shape), before);
}

}  // namespace
}  // namespace berth::test::explain_pod_test
