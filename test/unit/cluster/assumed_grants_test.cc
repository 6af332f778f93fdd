// SPDX-License-Identifier: Apache-2.0
//
// Pods bound past Berth: which GPUs a node takes them to have.
#include "cluster/node/given_grants.h"

#include <gtest/gtest.h>

#include "test/support/builders.h"

namespace berth::test::assumed_grants_test {
namespace {

std::vector<int> FreeMilli(const Node& node) {
  std::vector<int> free;
  for (const GpuFree& gpu : node.gpus()) free.push_back(gpu.milli);
  return free;
}

TEST(AssumedGrants, TakeIdleWholeGpusFromTheHighestIndexDown) {
  const Node node = ANode("n")
                        .Gpus(4)
                        .Holding(APod("known").Share(300), {3})
                        .Holding(APod("past").Whole(2))
                        .Build();
  EXPECT_EQ(FreeMilli(node), (std::vector<int>{1000, 0, 0, 700}));
  EXPECT_EQ(node.unattributed(), 1);
}

TEST(AssumedGrants, TakeTheFreestGpusWhenNoneIsIdle) {
  const Node node = ANode("n")
                        .Gpus(3)
                        .Holding(APod("a").Share(300), {0})
                        .Holding(APod("b").Share(600), {1})
                        .Holding(APod("past").Whole(2))
                        .Build();
  EXPECT_EQ(FreeMilli(node), (std::vector<int>{-300, 400, 0}));
  EXPECT_EQ(FreeMilli(ANode("n").Gpus(1).Holding(APod("past").Whole(8)).Build()),
            std::vector<int>{0});
}

TEST(AssumedGrants, PutAShareOnTheFullestGpuThatFitsElseTheFreest) {
  ANode node =
      ANode("n").Gpus(3).Holding(APod("a").Share(300), {0}).Holding(APod("b").Share(600), {1});
  EXPECT_EQ(FreeMilli(ANode(node).Holding(APod("x").Share(400)).Build()),
            (std::vector<int>{700, 0, 1000}));
  EXPECT_EQ(FreeMilli(ANode(node).Holding(APod("x").Share(500)).Build()),
            (std::vector<int>{200, 400, 1000}));
  node.Holding(APod("c").Share(900), {2});
  EXPECT_EQ(FreeMilli(ANode(node).Holding(APod("x").Share(800)).Build()),
            (std::vector<int>{-100, 400, 100}));
}

TEST(AssumedGrants, TakeAWholeGpuForAShareThatNoGpuCanHold) {
  EXPECT_EQ(FreeMilli(ANode("n").Gpus(2, 0).Holding(APod("x").ShareByMemory(100)).Build()),
            (std::vector<int>{1000, 0}));
}

TEST(AssumedGrants, AreMadeInTheOrderOfTheUidsAfterAllKnownOnes) {
  const auto first = APod("a").Whole(1).BoundOn("n"), second = APod("b").Share(500).BoundOn("n");
  const auto known = APod("z").Whole(1).BoundOn("n", {1});
  const auto spec = std::make_shared<const NodeSpec>(ANode("n").Gpus(2).Spec());
  Node one(spec), other(spec);
  for (const auto& pod : {first, second, known}) one.Put(pod);
  for (const auto& pod : {known, second, first}) other.Put(pod);
  EXPECT_TRUE(one == other);
  EXPECT_EQ(FreeMilli(one), (std::vector<int>{0, -500}));
  one.Remove("uid-z");
  EXPECT_EQ(FreeMilli(one), (std::vector<int>{500, 0}));
  one.Remove("uid-a");
  one.Remove("uid-b");
  EXPECT_TRUE(one == Node(spec));
  EXPECT_EQ(one.unattributed(), 0);
}

TEST(AssumedGrants, AreEmptyOnANodeWithoutGpus) {
  const Node node = ANode("n").Holding(APod("past").Whole(2)).Build();
  EXPECT_TRUE(node.gpus().empty());
  EXPECT_EQ(node.unattributed(), 1);
}

TEST(NodePods, AreListedByUidWithTheLowestPriorityOfThoseThatAreBound) {
  Node node = ANode("n")
                  .Gpus(4)
                  .Holding(APod("b").Whole(1).Priority(7), {0})
                  .Holding(APod("a").Whole(1).Priority(9), {1})
                  .HoldingReserved(APod("c").Whole(1).Priority(1), {2})
                  .Build();
  ASSERT_EQ(node.pods().size(), 3u);
  EXPECT_EQ(node.pods()[0]->pod.id.uid, "uid-a");
  EXPECT_EQ(node.FindPod("uid-b")->pod.priority, 7);
  EXPECT_EQ(node.FindPod("uid-d"), nullptr);
  EXPECT_EQ(node.lowest_priority(), 7);
  node.Put(APod("c").Whole(1).Priority(1).BoundOn("n", {2}));
  EXPECT_EQ(node.lowest_priority(), 1);
  EXPECT_EQ(node.free_gpu_milli(), 1000) << "a pod that is put again is there once";
  node.Remove("uid-c");
  EXPECT_EQ(node.lowest_priority(), 7);
  EXPECT_EQ(ANode("m").Build().lowest_priority(), Node::kNoPriority);
  const Node without = node.Without([](const PodRecord& pod) { return pod.pod.priority < 9; });
  EXPECT_EQ(without.pods().size(), 1u);
  EXPECT_EQ(without.free_gpu_milli(), 3000);
}

}  // namespace
}  // namespace berth::test::assumed_grants_test
