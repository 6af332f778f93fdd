// SPDX-License-Identifier: Apache-2.0
#include "server/pages/metrics_parts.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/builders.h"
#include "test/support/metrics_lines.h"
#include "test/support/mig_nodes.h"

namespace berth::test::usage_metrics_test {
namespace {

std::shared_ptr<const Snapshot> Cluster() {
  return SnapshotOf(
      {ANode("n1")
           .Gpus(4)
           .Model("A100")
           .Holding(APod("a").Whole(2).Namespace("ml"), {0, 1})
           .Holding(APod("b").Share(250).Namespace("web"), {2}),
       ANode("n2").Gpus(2).Model("T4").Holding(APod("c").Whole(1).Namespace("ml"), {0})});
}

std::string UsageText(const Snapshot& snapshot, const std::vector<WaitingPod>& waiting,
                      const MetricsConfig& wanted) {
  return Written(AddUsageMetrics, snapshot, waiting, wanted);
}

TEST(UsageMetrics, AreThereWhereTheyAreWanted) {
  EXPECT_EQ(UsageText(*Cluster(), {}, {}), "");
  const std::string text = UsageText(*Cluster(), {}, {.by_namespace = true});
  EXPECT_EQ(text.find("berth_gpu_allocated_ratio"), std::string::npos);
}

TEST(UsageMetrics, CountWhatPodsOfANamespaceHold) {
  const std::vector<WaitingPod> waiting = {
      {.pod = std::make_shared<PodRequest>(APod("w").Whole(8).Namespace("ml").Request())},
      {.pod = std::make_shared<PodRequest>(APod("g").Whole(8).Namespace("ml").Request()),
       .held_back = "scheduling gates hold it back"}};
  ExpectLines(UsageText(*Cluster(), waiting, {.by_namespace = true}),
              {"berth_namespace_gpus{pod_namespace=\"ml\",model=\"A100\"} 2",
               "berth_namespace_gpus{pod_namespace=\"ml\",model=\"T4\"} 1",
               "berth_namespace_gpus{pod_namespace=\"web\",model=\"A100\"} 0.25",
               "berth_namespace_waiting_gpu_pods{pod_namespace=\"ml\"} 1"});
}

TEST(UsageMetrics, CountClassesWhereThereAreSome) {
  const auto of_class = [](const char* name, int gpus) {
    PodRequest pod = APod(name).Whole(gpus).Request();
    pod.classes = {"training", "batch"};
    pod.shape.nodes.wishes = {{"rdma", 40}, {"spot", -60}};
    return std::make_shared<PodRecord>(
        PodRecord{.pod = pod, .placement = {}, .state = PodState::kBound, .settle_after = {}});
  };
  NodeSpec spot = ANode("n1").Gpus(8).Model("T4").Spec(), rdma = ANode("n2").Gpus(8).Spec();
  spot.traits = {"spot"};
  rdma.traits = {"rdma"};
  const std::vector<std::shared_ptr<const Node>> nodes = {
      std::make_shared<const Node>(std::make_shared<const NodeSpec>(spot),
                                   PodRecords{of_class("a", 2)}),
      std::make_shared<const Node>(std::make_shared<const NodeSpec>(rdma),
                                   PodRecords{of_class("b", 4), of_class("c", 1)})};
  const std::vector<WaitingPod> waiting = {
      {.pod = std::make_shared<PodRequest>(of_class("w", 8)->pod)},
      {.pod = std::make_shared<PodRequest>(APod("x").Whole(1).Request())}};
  ExpectLines(UsageText(Snapshot(nodes), waiting, {}),
              {"berth_workload_class_gpus{workload_class=\"training\",model=\"T4\"} 2",
               "berth_workload_class_gpus{workload_class=\"training\",model=\"\"} 5",
               "berth_workload_class_avoided_gpus{workload_class=\"training\"} 2",
               "berth_workload_class_waiting_pods{workload_class=\"training\"} 1"});
}

TEST(UsageMetrics, CountMigDevicesByThemselves) {
  const auto node = ANode("n1")
                        .Mig(StaticMig(1, kSevenSmall))
                        .HoldingMig(APod("a").Mig("1g.5gb").Namespace("ml"), {AGrantOf("1g.5gb")});
  const std::string text = UsageText(*SnapshotOf({node}), {}, {.by_namespace = true});
  ExpectLines(text, {"berth_namespace_mig_devices{pod_namespace=\"ml\",profile=\"1g.5gb\"} 1"});
  EXPECT_EQ(text.find("berth_namespace_gpus{"), std::string::npos) << text;
}

TEST(UsageMetrics, SayHowMuchOfEachGpuIsAllocatedWhoseUuidIsKnown) {
  NodeSpec spec = ANode("n1").Gpus(2).Spec();
  spec.gpus[1].uuid = "GPU-b";
  const auto node = std::make_shared<const Node>(
      std::make_shared<const NodeSpec>(spec), PodRecords{APod("a").Share(250).BoundOn("n1", {1})});
  const std::vector<std::shared_ptr<const Node>> nodes = {node};
  const std::string text = UsageText(Snapshot(nodes), {}, {.by_gpu = true});
  ExpectLines(text, {"berth_gpu_allocated_ratio{node=\"n1\",gpu=\"1\",uuid=\"GPU-b\"} 0.25"});
  EXPECT_EQ(text.find("gpu=\"0\""), std::string::npos) << text;
}

}  // namespace
}  // namespace berth::test::usage_metrics_test
