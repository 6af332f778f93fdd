// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/gpu_use.h"

#include <gtest/gtest.h>

#include "test/support/builders.h"
#include "test/support/mig_nodes.h"

namespace berth::test::model_summary_test {
namespace {

TEST(ModelSummary, CountsWhatIsAllocatedIdleAndInOnePiece) {
  const auto models = SummarizeModels(*SnapshotOf(
      {ANode("n1").Gpus(8).Model("A100").Holding(APod("a").Whole(5), {0, 1, 2, 3, 4}),
       ANode("n2").Gpus(8).Model("A100").Holding(APod("b").Share(250), {0}).Unhealthy(7),
       ANode("n3").Gpus(4).Model("T4"), ANode("n4")}));
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].model, "A100");
  EXPECT_EQ(models[0].nodes, 2);
  EXPECT_EQ(models[0].gpus, 16);
  EXPECT_EQ(models[0].out_of_order, 1);
  EXPECT_EQ(models[0].allocated_milli, 5250);
  EXPECT_EQ(models[0].idle, 9);  // 3 and 6
  EXPECT_EQ(models[0].largest_hole, 6);
  EXPECT_EQ(models[0].hole_node, "n2");
  EXPECT_EQ(models[0].fit, (std::array<std::int64_t, 4>{9, 4, 1, 0}));
  EXPECT_EQ(models[1].model, "T4");
  EXPECT_EQ(models[1].fit, (std::array<std::int64_t, 4>{4, 2, 1, 0}));
}

TEST(ModelSummary, CountsTheDriversOfItsNodes) {
  const auto node = [](const char* name, const char* major) {
    return ANode(name).Gpus(1).Labelled({{"nvidia.com/cuda.driver-version.major", major},
                                         {"nvidia.com/cuda.driver-version.minor", "54"}});
  };
  const auto models = SummarizeModels(
      *SnapshotOf({node("n1", "535"), node("n2", "550"), node("n3", "535"), ANode("n4").Gpus(1)}));
  ASSERT_EQ(models.size(), 1u);
  const std::vector<std::pair<Version, int>> newest_first = {{{550, 54, 0}, 1}, {{535, 54, 0}, 2}};
  EXPECT_EQ(models[0].drivers, newest_first);
}

TEST(ModelSummary, GpusOfNodesThatTakeNoPodAreThereAndNotIdle) {
  const auto models = SummarizeModels(*SnapshotOf(
      {ANode("n1").Gpus(2).NotReady(),
       ANode("n2").Gpus(2).Tainted("node.kubernetes.io/unschedulable"), ANode("n3").Places(4)}));
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].gpus, 4);
  EXPECT_EQ(models[0].idle, 0);
  EXPECT_EQ(models[0].hole_node, "");
  EXPECT_EQ(models[0].free_places, 4);
  EXPECT_EQ(models[0].fit[0], 4) << "a place is as good as a GPU";
}

TEST(ModelSummary, GpusOfClosedNodesAreCountedAsWhatTheyAre) {
  ANode broken = ANode("n1").Gpus(8);
  NodeSpec spec = broken.Spec();
  spec.gpu_condition = "XIDErrors";
  NodeSpec shared = ANode("n4").Places(16).Spec();
  shared.places.gpus = 4;
  std::vector<std::shared_ptr<const Node>> nodes = {
      std::make_shared<const Node>(std::make_shared<const NodeSpec>(spec)),
      std::make_shared<const Node>(ANode("n2").Gpus(2).NotReady().Build()),
      std::make_shared<const Node>(
          ANode("n3").Gpus(4).Unhealthy(0).Tainted("node.kubernetes.io/unschedulable").Build()),
      std::make_shared<const Node>(std::make_shared<const NodeSpec>(shared))};
  const auto models = SummarizeModels(Snapshot(nodes));
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].gpus, 14);
  EXPECT_EQ(models[0].out_of_order, 9) << "all of n1, one of n3";
  EXPECT_EQ(models[0].closed, 5) << "of n2 and n3";
  EXPECT_EQ(models[0].shared_gpus, 4);
  EXPECT_EQ(models[0].fit[0], 16);
}

TEST(ModelSummary, PartitionedGpusAreCountedApart) {
  const auto models = SummarizeModels(*SnapshotOf({ANode("n1").Mig(StaticMig(2, kSevenSmall))}));
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].gpus, 0);
  EXPECT_EQ(models[0].mig_gpus, 2);
}

TEST(ModelSummary, ReplicasOfMigDevicesAreReplicas) {
  MigSpec mig;
  mig.shared = {{*ParseMigResource("nvidia.com/mig-1g.5gb.shared"), 28}};
  const auto models =
      SummarizeModels(*SnapshotOf({ANode("n1").Mig(mig), ANode("n2").Mig(mig).NotReady()}));
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].places, 56);
  EXPECT_EQ(models[0].free_places, 28);
}

}  // namespace
}  // namespace berth::test::model_summary_test
