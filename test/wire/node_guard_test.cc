// SPDX-License-Identifier: Apache-2.0
//
// The guard of GPU nodes: where pods without GPUs go behind kube-scheduler, and taints of effect
// PreferNoSchedule.
#include <string>

#include <gtest/gtest.h>

#include "scoring/reason.h"
#include "server/wire/node/node_json.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::test::node_guard_test {
namespace {

// The score of each node for the pod.
Json ScoresOf(const TestService& service, const Json& pod, const Json& names) {
  Json scores;
  for (const Json& score : service.Ask("prioritize", ArgsWithNames(pod, names))) {
    scores[score["Host"].get<std::string>()] = score["Score"];
  }
  return scores;
}

NodeSpec PlacesOf(const std::string& name) {
  NodeSpec node = MachineWith(name, 0);
  node.places.count = 4;
  return node;
}

class NodeGuardTest : public ::testing::Test {
 protected:
  void Guard(NodeGuard guard) {
    Extender::Policy policy = *service_.extender().policy();
    policy.guard = guard;
    service_.extender().Use(policy);
  }
  Json Scores(const Json& pod, const Json& names) { return ScoresOf(service_, pod, names); }
  Json Fitting(const Json& pod, const Json& names = {"cpu-a", "gpu", "places"}) {
    return service_.Ask("filter", ArgsWithNames(pod, names))["NodeNames"];
  }
  static Json Plain(const std::string& uid) { return PodAsking(uid, {{"cpu", "1"}}); }

  TestService service_{
      {MachineWith("cpu-a", 0), MachineWith("cpu-b", 0), MachineWith("gpu", 8), PlacesOf("places")},
      nullptr,
      "expected-waste",
      true};
};

TEST_F(NodeGuardTest, ByScoreGpuNodesGetNothingWhileAnotherNodeFits) {
  Guard(NodeGuard::kScore);
  EXPECT_EQ(Scores(Plain("a"), {"cpu-a", "gpu", "cpu-b", "places"}),
            (Json{{"cpu-a", 10}, {"gpu", 0}, {"cpu-b", 10}, {"places", 0}}));
  EXPECT_EQ(Fitting(Plain("a")), (Json{"cpu-a", "gpu", "places"})) << "it refuses nothing";
  // Where kube-scheduler has no other node left, the policy says which GPU node is the least loss.
  const Json left = Scores(Plain("a"), {"gpu", "places"});
  EXPECT_EQ(std::max(left["gpu"].get<int>(), left["places"].get<int>()), 10);
}

TEST_F(NodeGuardTest, OfPodsWithGpusThereIsNone) {
  Guard(NodeGuard::kRefuse);
  EXPECT_EQ(Fitting(PodWithGpus("a", 1)), (Json{"gpu", "places"}));
  EXPECT_EQ(Scores(PodWithGpus("a", 1), {"gpu"}), (Json{{"gpu", 10}}));
}

TEST_F(NodeGuardTest, ByRefusalPodsWithoutGpusWait) {
  Guard(NodeGuard::kRefuse);
  EXPECT_EQ(Fitting(Plain("a")), Json{"cpu-a"});
  const Json answer = service_.Ask("filter", ArgsWithNames(Plain("b"), {"gpu", "joining"}));
  EXPECT_EQ(answer["FailedAndUnresolvableNodes"], (Json{{"gpu", TextOf(Reason::kKeptForGpuPods)}}))
      << "no eviction helps";
  EXPECT_EQ(answer["NodeNames"], Json{"joining"}) << "nobody knows yet what it has";
}

TEST_F(NodeGuardTest, ByRefusalThoseThatBelongOnAnyNodePass) {
  Guard(NodeGuard::kRefuse);
  const Json all = {"cpu-a", "gpu", "places"};
  Json daemon = Plain("a");
  daemon["metadata"]["ownerReferences"] = {
      {{"kind", "DaemonSet"}, {"uid", "ds"}, {"controller", true}}};
  EXPECT_EQ(Fitting(daemon), all);
  Json replica = Plain("b");
  replica["metadata"]["ownerReferences"] = {
      {{"kind", "ReplicaSet"}, {"uid", "rs"}, {"controller", true}}};
  EXPECT_EQ(Fitting(replica), Json{"cpu-a"});
  Json system = Plain("c");
  system["metadata"]["namespace"] = "kube-system";
  EXPECT_EQ(Fitting(system), all);
  Json critical = Plain("d");
  critical["spec"]["priority"] = 2'000'001'000;
  EXPECT_EQ(Fitting(critical), all);
  EXPECT_EQ(Fitting(PodAsking("e", {{"example.com/fpga", "1"}})), all) << "it may be there alone";
  EXPECT_EQ(Fitting(PodAsking("f", {{"ephemeral-storage", "1Gi"}})), Json{"cpu-a"});
  Json claims = Plain("g");
  claims["spec"]["resourceClaims"] = {{{"name", "gpu"}, {"resourceClaimName", "c"}}};
  EXPECT_EQ(Fitting(claims), all) << "its GPU is what the claim is for";
}

TEST_F(NodeGuardTest, IsWhatTheConfigurationSays) {
  Guard(NodeGuard::kOff);
  EXPECT_EQ(Fitting(Plain("a")), (Json{"cpu-a", "gpu", "places"}));
  EXPECT_NE(Scores(Plain("a"), {"cpu-a", "cpu-b", "gpu"})["gpu"], 0);
}

// The operator of a plain cluster adds a GPU node: until its device plugin has registered it looks
// like the emptiest node without GPUs that there is.
TEST(JoiningGpuNodes, AreKeptForGpuPodsBeforeTheyOfferAny) {
  const std::pair<const char*, const char*> labels[] = {
      {"node.kubernetes.io/instance-type", "Standard_NC24ads_A100_v4"},
      {"cloud.google.com/gke-accelerator", "nvidia-l4"},
      {"feature.node.kubernetes.io/pci-10de.present", "true"},
      {"nvidia.com/gpu.count", "8"},
      {"nvidia.com/gpu.product", "NVIDIA-L40S"},
      {"nvidia.com/gpu", "true"},
      {"nvidia.com/gpu.present", "true"}};
  for (const auto& [key, value] : labels) {
    Json node = {{"metadata", {{"name", "joining"}, {"labels", {{key, value}}}}}};
    node["status"]["allocatable"] = {{"cpu", "64"}, {"memory", "256Gi"}};
    const NodeSpec joining = ReadNode(node).spec;
    EXPECT_TRUE(joining.gpus_to_come) << key;
    TestService service({joining, MachineWith("cpu", 0)}, nullptr, "expected-waste", true);
    Extender::Policy policy = *service.extender().policy();
    policy.guard = NodeGuard::kScore;
    service.extender().Use(policy);
    EXPECT_EQ(ScoresOf(service, PodAsking("a", {{"cpu", "1"}}), {"cpu", "joining"}),
              (Json{{"cpu", 10}, {"joining", 0}}))
        << key;
    node["status"]["allocatable"]["nvidia.com/gpu"] = "1";
    EXPECT_FALSE(ReadNode(node).spec.gpus_to_come) << "they have come";
  }
  Json plain = {{"metadata",
                 {{"name", "cpu"},
                  {"labels",
                   {{"node.kubernetes.io/instance-type", "Standard_D4s_v5"},
                    {"feature.node.kubernetes.io/pci-10de.present", "false"}}}}}};
  plain["status"]["allocatable"] = {{"cpu", "64"}, {"memory", "256Gi"}};
  EXPECT_FALSE(ReadNode(plain).spec.gpus_to_come);
  plain["status"]["capacity"]["nvidia.com/gpu"] = "0";
  EXPECT_TRUE(ReadNode(plain).spec.gpus_to_come)
      << "its plugin is gone: the kubelet keeps the name";
}

// --- Taints of effect PreferNoSchedule

NodeSpec WithTaint(const std::string& name, const char* effect) {
  Json node = {{"metadata", {{"name", name}}},
               {"spec", {{"taints", {{{"key", "spot"}, {"value", "yes"}, {"effect", effect}}}}}}};
  for (const char* list : {"capacity", "allocatable"}) {
    node["status"][list] = {{"cpu", "64"}, {"memory", "256Gi"}, {"nvidia.com/gpu", "4"}};
  }
  return ReadNode(node).spec;
}

TEST(SoftTaints, PutANodeBehindTheOthersOfPodsThatDoNotTolerateThem) {
  const TestService service({WithTaint("a", "PreferNoSchedule"), MachineWith("b", 8)}, nullptr,
                            "expected-waste", true);
  const auto scores = [&](const Json& pod, const Json& names) {
    return ScoresOf(service, pod, names);
  };
  const Json plain = PodWithGpus("p", 4);
  EXPECT_EQ(scores(plain, {"a", "b"}), (Json{{"a", 0}, {"b", 10}}));
  EXPECT_EQ(scores(plain, {"a"}), (Json{{"a", 10}})) << "nothing else is left";
  EXPECT_EQ(service.Ask("filter", ArgsWithNames(plain, {"a", "b"}))["NodeNames"], (Json{"a", "b"}));
  Json tolerant = PodWithGpus("t", 4);
  tolerant["spec"]["tolerations"] = {
      {{"key", "spot"}, {"operator", "Exists"}, {"effect", "PreferNoSchedule"}}};
  EXPECT_GT(scores(tolerant, {"a", "b"})["a"], 0);
}

}  // namespace
}  // namespace berth::test::node_guard_test
