// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/gpu_use.h"

#include <gtest/gtest.h>

#include "test/support/builders.h"

namespace berth::test::gpu_use_test {
namespace {

std::shared_ptr<const Snapshot> Cluster() {
  return SnapshotOf({ANode("n1")
                         .Gpus(4)
                         .Holding(APod("a").Whole(2).Namespace("ml"), {0, 1})
                         .Holding(APod("b").Share(250).Namespace("web"), {2}),
                     ANode("n2")
                         .Gpus(2)
                         .Holding(APod("c").Whole(1).Namespace("ml"), {0})
                         .Holding(APod("d").Whole(1).Namespace("ml"), {1}),
                     ANode("n3").Gpus(2)});
}

TEST(GpuUse, NamespacesComeWithTheMostGpusFirst) {
  const std::vector<OwnerUse> uses = UseByOwner(*Cluster(), Owner::kNamespace);
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].name, "ml");
  EXPECT_EQ(uses[0].use.gpus, 4);
  EXPECT_EQ(uses[0].use.pods, 3);
  EXPECT_EQ(uses[0].nodes, 2) << "two of its pods are on one node";
  EXPECT_EQ(uses[1].name, "web");
  EXPECT_EQ(uses[1].use.gpus, .25);
  EXPECT_EQ(uses[1].nodes, 1);
}

TEST(GpuUse, NodesOfOneNamespaceSayWhatItHoldsThere) {
  const std::vector<NodeUse> nodes = UseByNode(*Cluster(), Owner::kNamespace, "ml");
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].node, "n1");
  EXPECT_EQ(nodes[0].use.gpus, 2);
  EXPECT_EQ(nodes[1].node, "n2");
  EXPECT_EQ(nodes[1].use.pods, 2);
  EXPECT_TRUE(UseByNode(*Cluster(), Owner::kNamespace, "none").empty());
}

TEST(GpuUse, PodsWithoutAClassAreOfNoClass) {
  EXPECT_TRUE(UseByOwner(*Cluster(), Owner::kWorkloadClass).empty());
  EXPECT_TRUE(UseByNode(*Cluster(), Owner::kWorkloadClass, "").empty());
}

}  // namespace
}  // namespace berth::test::gpu_use_test
