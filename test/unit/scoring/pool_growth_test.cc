// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/pool_growth.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "scoring/registry.h"
#include "test/support/builders.h"
#include "test/support/mig_nodes.h"

namespace berth::test::pool_growth_test {
namespace {

// --- pools

Labels Of(const std::string& key, const std::string& pool, const std::string& type = "") {
  Labels labels = {{key, pool}};
  if (!type.empty()) labels.emplace_back("node.kubernetes.io/instance-type", type);
  std::ranges::sort(labels);
  return labels;
}

std::string Described(const std::vector<ANode>& nodes) {
  std::string text;
  for (const NodePool& pool : PoolsOf(*SnapshotOf(nodes))) {
    text += pool.label + "=" + pool.name + " like " + pool.like + " x" +
            std::to_string(pool.nodes) + ";";
  }
  return text;
}

TEST(NodePools, NodesOfOneLabelAreAPool) {
  EXPECT_EQ(Described({ANode("a").Gpus(8).Labelled(Of("cloud.google.com/gke-nodepool", "p")),
                       ANode("b").Gpus(8).Labelled(Of("cloud.google.com/gke-nodepool", "p")),
                       ANode("c").Gpus(8).Labelled(Of("cloud.google.com/gke-nodepool", "q")),
                       ANode("d").Labelled(Of("cloud.google.com/gke-nodepool", "cpu"))}),
            "cloud.google.com/gke-nodepool=p like a x2;cloud.google.com/gke-nodepool=q like c x1;")
      << "a pool without GPUs is none";
}

TEST(NodePools, NodesOfAPoolThatAreOfSeveralTypesAreApart) {
  const auto nodes =
      std::vector<ANode>{ANode("a").Gpus(8).Labelled(Of("karpenter.sh/nodepool", "p", "p5.48x")),
                         ANode("b").Gpus(1).Labelled(Of("karpenter.sh/nodepool", "p", "g6.2x"))};
  const auto pools = PoolsOf(*SnapshotOf(nodes));
  ASSERT_EQ(pools.size(), 2u);
  EXPECT_EQ(pools[0].instance_type, "g6.2x");
  EXPECT_EQ(pools[0].gpus, 1);
  EXPECT_EQ(pools[1].like, "a");
}

TEST(NodePools, WithoutALabelTypeOrModelAndGpusMakeThem) {
  EXPECT_EQ(
      Described({ANode("a").Gpus(8).Model("H100"), ANode("b").Gpus(4).Model("H100"),
                 ANode("c").Gpus(8).Model("H100"),
                 ANode("d").Gpus(8).Labelled(Of("zone", "z", "BM.GPU.H100.8")).Model("H100")}),
      "=BM.GPU.H100.8 like d x1;=H100 x4 like b x1;=H100 x8 like a x2;");
}

TEST(NodePools, ANewNodeIsLikeOneThatIsReady) {
  EXPECT_EQ(Described({ANode("a").Gpus(8).NotReady(), ANode("b").Gpus(8), ANode("c").Gpus(8)}),
            "=GPUs x8 like b x3;");
  EXPECT_EQ(Described({ANode("a").Gpus(8).NotReady(), ANode("b").Gpus(8).NotReady()}),
            "=GPUs x8 like a x2;");
}

TEST(NodePools, ANewNodeIsLikeOneThatLacksNothing) {
  const auto node = [](const char* name, std::int64_t efa) {
    NodeSpec spec = ANode(name).Gpus(8).Spec();
    spec.most_pods = 110;
    spec.others = {{"vpc.amazonaws.com/efa", efa}};
    return std::make_shared<const Node>(std::make_shared<const NodeSpec>(spec));
  };
  const Snapshot snapshot({node("a", 0), node("b", 32), node("c", 32)});
  ASSERT_EQ(PoolsOf(snapshot).size(), 1u);
  EXPECT_EQ(PoolsOf(snapshot)[0].like, "b") << "the plugin of devices is gone from a";
}

TEST(NodePools, WithoutAModelTheResourceNamesThem) {
  std::vector<std::shared_ptr<const Node>> nodes;
  for (const char* name : {"a", "b", "c"}) {
    NodeSpec spec = ANode(name).Gpus(8).Spec();
    spec.gpu_resource = *name == 'a' ? "nvidia.com/gpu" : "amd.com/gpu";
    if (*name == 'c') spec.labels = {{"node.kubernetes.io/instance-type", ""}};
    nodes.push_back(std::make_shared<const Node>(std::make_shared<const NodeSpec>(spec)));
  }
  const auto pools = PoolsOf(Snapshot(nodes));
  ASSERT_EQ(pools.size(), 2u);
  EXPECT_EQ(pools[0].name, "amd.com/gpu x8");
  EXPECT_EQ(pools[0].nodes, 2);
  EXPECT_EQ(pools[1].name, "nvidia.com/gpu x8");
}

TEST(NodePools, ReplicasAreNoGpus) {
  NodeSpec shared = ANode("a").Places(8).Model("L4").Spec();
  shared.places.gpus = 2;
  const auto node = std::make_shared<const Node>(std::make_shared<const NodeSpec>(shared));
  const auto pools = PoolsOf(Snapshot(std::vector{node}));
  ASSERT_EQ(pools.size(), 1u);
  EXPECT_EQ(pools[0].gpus, 2);
  EXPECT_EQ(pools[0].replicas, 8);
}

TEST(NodePools, ThoseOfAksWithMigAreNotAutoscaled) {
  const MigSpec mig = DynamicMig(1);
  for (const char* label : {"kubernetes.azure.com/agentpool", "agentpool"}) {
    const auto pools = PoolsOf(*SnapshotOf({ANode("a").Mig(mig).Labelled(Of(label, "mig")),
                                            ANode("b").Gpus(4).Labelled(Of(label, "whole"))}));
    ASSERT_EQ(pools.size(), 2u);
    EXPECT_NE(pools[0].not_autoscaled, "");
    EXPECT_EQ(pools[0].gpus, 1);
    EXPECT_EQ(pools[1].not_autoscaled, "");
  }
  EXPECT_EQ(PoolsOf(*SnapshotOf(
                {ANode("a").Mig(mig).Labelled(Of("cloud.google.com/gke-nodepool", "mig"))}))[0]
                .not_autoscaled,
            "");
}

// --- what they would take

class PoolGrowthTest : public testing::Test {
 protected:
  void On(const std::vector<ANode>& nodes) { snapshot_ = SnapshotOf(nodes); }

  Result<Growth> Ask(const std::vector<APod>& pods, int nodes, NodeEdits edits = {},
                     std::function<const char*()> stops = {},
                     const std::vector<NodeSpec>& at_zero = {}) {
    std::vector<PodRequest> requests;
    for (const APod& pod : pods) requests.push_back(pod.Request());
    return GrowPools(
        engine_,
        {.snapshot = snapshot_,
         .pods = requests,
         .nodes = std::move(edits),
         .levels = {{"rack", {"rack"}}},
         .starts_whole = [](const PodRequest& pod) { return pod.gang.id.convention == "whole"; },
         .stops = std::move(stops)},
        nodes, at_zero);
  }
  Growth TellAtZero(const std::vector<APod>& pods, int nodes, const std::vector<ANode>& at_zero) {
    std::vector<NodeSpec> specs;
    for (const ANode& node : at_zero) specs.push_back(node.Spec());
    auto told = Ask(pods, nodes, {}, {}, specs);
    EXPECT_TRUE(told) << told.error().message;
    return told ? *std::move(told) : Growth();
  }
  Growth Tell(const std::vector<APod>& pods, int nodes, NodeEdits edits = {}) {
    auto told = Ask(pods, nodes, std::move(edits));
    EXPECT_TRUE(told) << told.error().message;
    return told ? *std::move(told) : Growth();
  }
  // "4x8: 1 2 3" per pool: how many pods the next nodes take.
  static std::string TextOf(const Growth& told) {
    std::string text;
    for (const PoolGrowth& growth : told.pools) {
      text += growth.pool.name + ":";
      for (const Taken& taken : growth.taken) text += " " + std::to_string(taken.pods);
      text += ";";
    }
    return text;
  }
  static std::vector<APod> Waiting(int pods, int gpus) {
    std::vector<APod> all;
    for (int i = 0; i < pods; ++i) all.push_back(APod("p" + std::to_string(i)).Whole(gpus));
    return all;
  }

  Engine engine_{BuildProfile(*FindBuiltinProfile("best-fit"), {}).value()};
  std::shared_ptr<const Snapshot> snapshot_;
};

TEST_F(PoolGrowthTest, EachPoolIsTriedByItself) {
  On({ANode("a").Gpus(8).Model("A").Holding(APod("x").Whole(6), {0, 1, 2, 3, 4, 5}),
      ANode("b").Gpus(4).Model("B").Holding(APod("y").Whole(4), {0, 1, 2, 3})});
  const Growth told = Tell(Waiting(5, 4), 3);
  EXPECT_EQ(TextOf(told), "A x8: 2 4 5;B x4: 1 2 3;");
  EXPECT_EQ(told.pools[0].taken[0].gpu_milli, 8000);
  EXPECT_EQ(told.asked, (Taken{5, 20'000}));
  EXPECT_EQ(told.now, Taken{});
  EXPECT_TRUE(told.nowhere.empty());
}

TEST_F(PoolGrowthTest, WhatFitsNowNeedsNoNode) {
  On({ANode("a").Gpus(8)});
  const Growth told = Tell(Waiting(3, 4), 2);
  EXPECT_EQ(told.now, (Taken{2, 8000}));
  EXPECT_EQ(TextOf(told), "GPUs x8: 1 1;");
}

TEST_F(PoolGrowthTest, PodsThatNoPoolTakesAreNamed) {
  On({ANode("a").Gpus(2).Holding(APod("x").Whole(2), {0, 1})});
  const Growth told = Tell({APod("p").Whole(4), APod("q").Whole(1), APod("r").Share(500)}, 1);
  EXPECT_EQ(TextOf(told), "GPUs x2: 2;");
  EXPECT_EQ(told.pools[0].taken[0].gpu_milli, 1500);
  EXPECT_EQ(told.nowhere, (std::vector<std::size_t>{0}));
}

TEST_F(PoolGrowthTest, PodsForWhichTheNodesDoNotSufficeHaveAPoolAllTheSame) {
  On({ANode("a").Gpus(2).Holding(APod("x").Whole(2), {0, 1})});
  const Growth told = Tell(Waiting(5, 2), 1);
  EXPECT_EQ(TextOf(told), "GPUs x2: 1;");
  EXPECT_TRUE(told.nowhere.empty());
}

TEST_F(PoolGrowthTest, AGangIsTakenWholeOrNotAtAll) {
  On({ANode("a").Gpus(4).Holding(APod("x").Whole(2), {0, 1})});
  std::vector<APod> gang;
  for (int i = 0; i < 5; ++i) {
    gang.push_back(APod("g" + std::to_string(i)).Whole(2).Gang("whole:default/g").GangMinimum(5));
  }
  EXPECT_EQ(TextOf(Tell(gang, 3)), "GPUs x4: 0 5 5;")
      << "one member goes to the node that is there, four to two new ones";
  EXPECT_EQ(Tell(gang, 1).nowhere.size(), 5u);
  EXPECT_TRUE(Tell(gang, 2).nowhere.empty());
}

TEST_F(PoolGrowthTest, APodForWhichOthersLeaveNoRoomIsNotCalledOneThatNoPoolTakes) {
  On({ANode("a").Gpus(4)});
  std::vector<APod> pods = {APod("p").Whole(4).Priority(1)};
  for (int i = 0; i < 2; ++i) {
    pods.push_back(APod("g" + std::to_string(i)).Whole(4).Gang("whole:default/g").GangMinimum(2));
  }
  const Growth told = Tell(pods, 1);
  EXPECT_EQ(told.now.pods, 1);
  EXPECT_EQ(TextOf(told), "GPUs x4: 0;");
  EXPECT_TRUE(told.nowhere.empty()) << "by itself the gang has both nodes";
}

TEST_F(PoolGrowthTest, ANewNodeIsEmptyAndInOrder) {
  On({ANode("a")
          .Gpus(4)
          .Unhealthy(0)
          .NotReady()
          .Tainted("node.kubernetes.io/not-ready")
          .Holding(APod("x").Whole(3), {1, 2, 3})});
  EXPECT_EQ(TextOf(Tell(Waiting(1, 4), 1)), "GPUs x4: 1;");
}

TEST_F(PoolGrowthTest, ANewNodeHasThePodsThatEveryNodeHas) {
  On({ANode("a")
          .Gpus(4)
          .Cpu(64)
          .Holding(APod("agent").Cpu(2), {}, {.comes_back = true})
          .Holding(APod("x").Whole(4).Cpu(60), {0, 1, 2, 3})});
  std::vector<APod> large = Waiting(1, 4), small = Waiting(1, 4);
  large[0].Cpu(63);
  small[0].Cpu(62);
  EXPECT_EQ(TextOf(Tell(large, 1)), "GPUs x4: 0;");
  EXPECT_EQ(TextOf(Tell(small, 1)), "GPUs x4: 1;");
}

TEST_F(PoolGrowthTest, NodesThatComeAndGoAreThoughtOfFirst) {
  On({ANode("a").Gpus(8).Model("A"), ANode("b").Gpus(4).Model("B")});
  const NodeSpec shape = ANode("c").Gpus(1).Model("C").Spec();
  const Growth told = Tell(Waiting(2, 8), 1, {{{"c", 1, shape}}, {"a"}});
  EXPECT_EQ(TextOf(told), "B x4: 0;C x1: 0;");
  EXPECT_EQ(told.nodes.removed, (std::vector<std::string>{"a"}));
}

TEST_F(PoolGrowthTest, APoolWithoutNodesIsTriedAfterTheOthers) {
  On({ANode("a").Gpus(4).Model("A").Holding(APod("x").Whole(4), {0, 1, 2, 3})});
  const auto machine = [](const char* type) {
    return ANode("node").Gpus(8).Labelled({{"node.kubernetes.io/instance-type", type}});
  };
  const Growth told = TellAtZero({APod("p").Whole(4), APod("q").Whole(8), APod("r").Whole(8)}, 2,
                                 {machine("big").Model("B"), machine("also").Model("C")});
  EXPECT_EQ(TextOf(told), "A x4: 1 1;big: 1 2;also: 1 2;");
  EXPECT_EQ(told.pools[1].pool.nodes, 0);
  EXPECT_EQ(told.pools[1].pool.gpus, 8);
  EXPECT_EQ(told.pools[1].pool.instance_type, "big");
  EXPECT_TRUE(told.nowhere.empty());
}

TEST_F(PoolGrowthTest, WhereNoNodeHasGpusAPoolWithoutNodesMay) {
  On({ANode("cpu")});
  const Growth told =
      TellAtZero({APod("p").Whole(8), APod("q").Whole(9)}, 1, {ANode("node").Gpus(8).Model("B")});
  EXPECT_EQ(TextOf(told), "B x8: 1;");
  EXPECT_EQ(told.nowhere, (std::vector<std::size_t>{1}));
}

TEST_F(PoolGrowthTest, TheSnapshotStaysAsItWas) {
  const std::vector<ANode> nodes = {ANode("a").Gpus(4).Holding(APod("x").Whole(1), {2})};
  On(nodes);
  const auto before = snapshot_;
  (void)Tell(Waiting(4, 2), 2);
  EXPECT_EQ(*before, *SnapshotOf(nodes));
}

TEST_F(PoolGrowthTest, WithoutGpusThereIsNoPool) {
  On({ANode("a")});
  const Growth told = Tell(Waiting(1, 1), 2);
  EXPECT_TRUE(told.pools.empty());
  EXPECT_EQ(told.nowhere.size(), 1u);
}

TEST_F(PoolGrowthTest, TooManyNodesAreRefused) {
  std::vector<ANode> nodes;
  for (int i = 10; i < 31; ++i) {
    nodes.push_back(ANode("n" + std::to_string(i)).Gpus(1).Model("M" + std::to_string(i)));
  }
  On(nodes);
  const auto told = Ask(Waiting(1, 1), 50);
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().message,
            "grow: want at most 1000 nodes in all, got 50 of each of 21 pools");
}

TEST_F(PoolGrowthTest, AnAnswerThatNobodyNeedsAnyMoreIsGivenUp) {
  On({ANode("a").Gpus(1)});
  int asked = 0;
  const auto told = Ask(Waiting(3, 2), 2, {}, [&asked] { return ++asked == 5 ? "stop" : nullptr; });
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().message, "stop");
}

}  // namespace
}  // namespace berth::test::pool_growth_test
