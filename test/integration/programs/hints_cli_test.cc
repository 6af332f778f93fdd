// SPDX-License-Identifier: Apache-2.0
//
// What `berth` says on nodes as clouds make them: a capability that does not show up, an order of
// models, pools that are tainted as AKS advises.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/child_process.h"
#include "test/support/running_berth.h"

namespace berth::test::hints_cli_test {
namespace {

using Words = std::map<std::string, std::string>;

Json NodeWith(const std::string& name, const Words& offers, const Words& labels) {
  Json node = {{"kind", "Node"}, {"apiVersion", "v1"}, {"spec", Json::object()}};
  node["metadata"] = {{"name", name}, {"labels", labels}};
  Words all = {{"cpu", "64"}, {"memory", "512Gi"}, {"pods", "110"}};
  all.insert(offers.begin(), offers.end());
  node["status"] = {{"capacity", all}, {"allocatable", all}};
  node["status"]["conditions"][0] = {{"type", "Ready"}, {"status", "True"}};
  return node;
}

Json PodWith(const std::string& name, const std::string& resource, const std::string& amount,
             const Words& annotations = {}) {
  Json pod = {{"kind", "Pod"}, {"apiVersion", "v1"}, {"status", {{"phase", "Pending"}}}};
  pod["metadata"] = {
      {"name", name}, {"namespace", "ml"}, {"uid", name}, {"annotations", annotations}};
  Json& container = pod["spec"]["containers"][0];
  container["name"] = "c";
  container["resources"]["limits"][resource] = amount;
  return pod;
}

class Hints : public testing::Test {
 protected:
  Outcome Ask(const Json& items, std::vector<std::string> words, const std::string& config = "") {
    const Json list = {{"kind", "List"}, {"apiVersion", "v1"}, {"items", items}};
    words.insert(words.end(), {"--cluster", folder_.WriteText("c.json", list.dump())});
    if (!config.empty()) {
      words.insert(words.end(), {"--config", folder_.WriteText("berth.yaml", config)});
    }
    return RunProgram("berth", words);
  }
  const TemporaryFolder folder_;
};

TEST_F(Hints, ACureStandsBehindANodeWhoseMigDevicesDoNotShowUp) {
  const Words capable = {{"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                         {"nvidia.com/gpu.count", "8"},
                         {"nvidia.com/mig.capable", "true"}};
  Words pending = capable, pool = {{"kubernetes.azure.com/gpu-instance-profile", "MIG1g"},
                                   {"node.kubernetes.io/instance-type", "Standard_ND96asr_v4"}};
  pending["nvidia.com/mig.config.state"] = "pending";
  Words azure_linux = pool;
  azure_linux["kubernetes.azure.com/os-sku"] = "AzureLinux";
  const Words whole = {{"nvidia.com/gpu", "8"}}, none = {{"nvidia.com/gpu", "0"}};
  const std::vector<std::pair<Json, std::string>> shapes = {
      {NodeWith("n", whole, capable),
       "had no MIG devices; its GPUs are not partitioned; label it "
       "nvidia.com/mig.config=all-1g.5gb, or another layout"},
      {NodeWith("n", none, capable),
       "had no MIG devices; its device plugin offers nothing; look at label "
       "nvidia.com/mig.config.state and at the plugin's log"},
      {NodeWith("n", none, pending), "had a MIG configuration change in progress"},
      {NodeWith("n", {}, pool),
       "had no MIG devices; its pool has a MIG profile; set MIG_STRATEGY=mixed on its device "
       "plugin"},
      {NodeWith("n", {}, azure_linux),
       "had no MIG devices; AKS has no MIG on Azure Linux; use a node pool with --os-sku Ubuntu"},
      {NodeWith("n", whole, {}), "had no MIG devices"}};
  for (const auto& [node, lack] : shapes) {
    const Json items = {node, PodWith("w", "nvidia.com/mig-1g.5gb", "1")};
    const Json told = Json::parse(Ask(items, {"explain", "pod", "ml/w", "--json"}).out);
    EXPECT_EQ(told["nearest"][0]["lack"], lack);
    EXPECT_NE(Ask(items, {"explain", "pod", "ml/w"}).out.find("\n  n: " + lack + "\n"),
              std::string::npos)
        << lack;
  }
}

TEST_F(Hints, TheDriversOfAModelAreCounted) {
  const auto node = [](const std::string& name, const std::string& model, const char* driver) {
    return NodeWith(name, {{"nvidia.com/gpu", "1"}},
                    {{"nvidia.com/gpu.product", model}, {"nvidia.com/cuda.driver.major", driver}});
  };
  const Json list = {{"kind", "List"},
                     {"apiVersion", "v1"},
                     {"items",
                      {node("a", "A100", "550"), node("b", "A100", "535"), node("c", "A100", "550"),
                       node("t", "T4", "550")}}};
  const Running berth(folder_, list.dump());
  RawClient client = berth.Connect();
  const std::string text = Get(client, "/metrics");
  EXPECT_NE(text.find("berth_gpu_drivers{model=\"A100\"} 2\n"), std::string::npos);
  EXPECT_NE(text.find("berth_gpu_drivers{model=\"T4\"} 1\n"), std::string::npos);
}

TEST_F(Hints, MpsWithoutItsCapabilityIsolatesNobody) {
  Words labels = {{"nvidia.com/gpu.product", "Tesla-T4-SHARED"},
                  {"nvidia.com/gpu.count", "2"},
                  {"nvidia.com/gpu.replicas", "4"},
                  {"nvidia.com/gpu.sharing-strategy", "mps"}};
  const Words offers = {{"nvidia.com/gpu", "8"}};
  Json items = {NodeWith("able", offers, labels),
                PodWith("w", "nvidia.com/gpu", "1", {{"berth.dev/isolation", "memory"}})};
  labels["nvidia.com/mps.capable"] = "false";
  items.push_back(NodeWith("unable", offers, labels));
  const Outcome told = Ask(items, {"explain", "pod", "ml/w", "--json"});
  const Json json = Json::parse(told.out);
  EXPECT_EQ(json["fitting"], 1) << told.out;
  EXPECT_EQ(
      json["reasons"][0]["text"],
      "node(s) had shared GPUs of unknown sharing strategy; the pod requires memory isolation");
  EXPECT_NE(told.err.find("label nvidia.com/mps.capable: want true where MPS shares the GPUs"),
            std::string::npos)
      << told.err;
}

TEST_F(Hints, AnOrderOfModelsIsAWishOfAClass) {
  const auto node = [](const std::string& name, const std::string& model) {
    return NodeWith(name, {{"nvidia.com/gpu", "1"}}, {{"nvidia.com/gpu.product", model}});
  };
  const std::string config =
      "traits:\n- {name: h, labels: [nvidia.com/gpu.product=H100]}\n"
      "- {name: a, labels: [nvidia.com/gpu.product=A100]}\n"
      "workloadClasses:\n- name: first\n"
      "  prefer: [{trait: h, weight: 60}, {trait: a, weight: 30}]\n";
  Json items = {node("a", "A100"), node("b", "B200"), node("h", "H100"),
                PodWith("w", "nvidia.com/gpu", "1", {{"berth.dev/workload-class", "first"}})};
  const Json order =
      Json::parse(Ask(items, {"explain", "pod", "ml/w", "--json"}, config).out)["best"];
  ASSERT_EQ(order.size(), 3U) << order;
  EXPECT_EQ(order[0]["node"], "h");
  EXPECT_EQ(order[1]["node"], "a");
  items.back() = PodWith("x", "nvidia.com/gpu", "1",
                         {{"berth.dev/gpu-model", "A100|H100"}, {"berth.dev/prefer", "h"}});
  const Outcome one = Ask(items, {"explain", "pod", "ml/x"}, config);
  EXPECT_TRUE(one.out.starts_with("ml/x: fits 2 of 3 nodes now, best is h")) << one.out;
}

TEST_F(Hints, TheImageOfANodeIsATrait) {
  const auto node = [](const std::string& name, const std::string& image) {
    return NodeWith(name, {{"nvidia.com/gpu", "1"}},
                    {{"kubernetes.azure.com/node-image-version", image}});
  };
  const Json items = {
      node("a", "AKSUbuntu-202501.12.0"), node("b", "AKSUbuntu-202511.20.0"),
      PodWith("w", "nvidia.com/gpu", "1", {{"berth.dev/prefer", "image=AKSUbuntu-202511.20.0"}})};
  EXPECT_TRUE(Ask(items, {"explain", "pod", "ml/w"})
                  .out.starts_with("ml/w: fits 2 of 2 nodes now, best is b"));
  EXPECT_NE(Ask(items, {"explain", "node", "a"}).out.find("traits image=AKSUbuntu-202501.12.0\n"),
            std::string::npos);
}

// AKS advises the taint sku=gpu:NoSchedule for GPU pools, and taints spot pools itself.
TEST_F(Hints, EveryCommandAnswersOnPoolsWithTheTaintsThatAksAdvises) {
  const Words labels = {{"node.kubernetes.io/instance-type", "Standard_ND96asr_v4"},
                        {"kubernetes.azure.com/agentpool", "gpua100"}};
  const Json tolerations = {{{"key", "sku"}, {"value", "gpu"}, {"effect", "NoSchedule"}}};
  Json items = Json::array();
  for (int i = 0; i < 2; ++i) {
    Json node = NodeWith("gpu-" + std::to_string(i), {{"nvidia.com/gpu", "8"}}, labels);
    node["spec"]["taints"] = {{{"key", "sku"}, {"value", "gpu"}, {"effect", "NoSchedule"}}};
    items.push_back(node);
    Json runs = PodWith("runs-" + std::to_string(i), "nvidia.com/gpu", "2");
    runs["spec"]["nodeName"] = node["metadata"]["name"];
    runs["spec"]["tolerations"] = tolerations;
    runs["metadata"]["ownerReferences"] = {{{"apiVersion", "apps/v1"},
                                            {"kind", "ReplicaSet"},
                                            {"name", "r"},
                                            {"uid", "r"},
                                            {"controller", true}}};
    runs["status"]["phase"] = "Running";
    items.push_back(runs);
  }
  Json waits = PodWith("waits", "nvidia.com/gpu", "8"),
       without = PodWith("no", "nvidia.com/gpu", "1");
  waits["spec"]["tolerations"] = tolerations;
  items.push_back(waits);
  items.push_back(without);
  EXPECT_NE(Ask(items, {"top"}).out.find("16    4          12"), std::string::npos);
  EXPECT_NE(Ask(items, {"explain", "nodes"}).out.find("2 of 2 GPU nodes are fine"),
            std::string::npos);
  EXPECT_NE(Ask(items, {"explain", "node", "gpu-0"}).out.find("taint sku=gpu:NoSchedule"),
            std::string::npos);
  const std::string waiting = Ask(items, {"explain", "waiting"}).out;
  EXPECT_NE(waiting.find("fits with a toleration of sku=gpu:NoSchedule"), std::string::npos)
      << waiting;
  EXPECT_NE(Ask(items, {"explain", "pod", "ml/waits"}).out.find("Room: 1 move would let it in"),
            std::string::npos);
  EXPECT_NE(Ask(items, {"make-room"}).out.find("ml/runs-"), std::string::npos);
  const std::string pods = folder_.WriteText("new.json", waits.dump());
  EXPECT_EQ(Ask(items, {"plan", "-f", pods}).code, 0);
  const std::string grown = Ask(items, {"plan", "--grow", "1"}).out;
  EXPECT_NE(grown.find("gpua100"), std::string::npos) << grown;
}

}  // namespace
}  // namespace berth::test::hints_cli_test
