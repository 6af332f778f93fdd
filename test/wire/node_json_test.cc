// SPDX-License-Identifier: Apache-2.0
#include "server/wire/node/node_json.h"

#include <gtest/gtest.h>

#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::node_json_test {
namespace {

using test::Json;

constexpr const char* kModelLabel = "nvidia.com/gpu.product";
constexpr const char* kMemoryLabel = "nvidia.com/gpu.memory";

Json KubeNode(const std::string& name, const Json& labels, const Json& allocatable) {
  return {{"metadata", {{"name", name}, {"labels", labels}}},
          {"status", {{"allocatable", allocatable}}}};
}

Json GpuKubeNode() {
  return KubeNode("n1", {{kModelLabel, "Tesla-T4"}, {kMemoryLabel, "15360"}},
                  {{"cpu", "64"}, {"memory", "256Gi"}, {"nvidia.com/gpu", "2"}, {"pods", "110"}});
}

Result<std::vector<DecodedNode>> DecodeText(const std::string& text) {
  return DecodeNodeList(test::Padded(text), NodeRules(DefaultConfig(), test::AllDialects()));
}

Result<std::vector<DecodedNode>> Decode(const Json& items) {
  return DecodeText(Json{{"kind", "NodeList"}, {"items", items}}.dump());
}

NodeSpec DecodeOne(const Json& node) {
  auto nodes = Decode(Json::array({node}));
  EXPECT_TRUE(nodes.has_value()) << nodes.error().message;
  return nodes ? nodes->at(0).spec : NodeSpec();
}

std::string ErrorOf(const Json& items) {
  const auto nodes = Decode(items);
  // What cannot be read costs the node that fact, and is said with its place.
  for (std::size_t i = 0; nodes && i < nodes->size(); ++i) {
    const DecodedNode& node = nodes->at(i);
    if (node.unread.empty()) continue;
    EXPECT_TRUE(node.problem.starts_with(node.unread)) << node.problem;
    return "items[" + std::to_string(i) + "]" + node.unread;
  }
  EXPECT_FALSE(nodes.has_value());
  if (nodes) return "";
  EXPECT_EQ(nodes.error().code, Errc::kInvalidArgument);
  return nodes.error().message;
}

TEST(NodeJson, ReadsNameLabelsAndAllocatable) {
  NodeSpec expected;
  expected.name = "n1";
  expected.gpu_model = "Tesla-T4";
  expected.cpu_milli = 64'000;
  expected.memory_bytes = std::int64_t{256} << 30;
  expected.gpus.assign(2, GpuSpec{"", 15'360, true});
  expected.labels = {{kMemoryLabel, "15360"}, {kModelLabel, "Tesla-T4"}};
  expected.gpu_resource = "nvidia.com/gpu";
  expected.shares_need_uuids = true;
  expected.most_pods = 110;
  EXPECT_EQ(DecodeOne(GpuKubeNode()), expected);
}

TEST(NodeJson, WhatKubeSchedulerCountsBesideIsKept) {
  Json node = GpuKubeNode();
  Json& allocatable = node["status"]["allocatable"];
  allocatable["rdma/hca"] = "8";
  allocatable["hugepages-2Mi"] = "4Mi";
  allocatable["hugepages-1Gi"] = "0";
  allocatable["attachable-volumes-csi-x"] = "25";
  EXPECT_EQ(DecodeOne(node).others, (OtherResources{{"hugepages-2Mi", 4 << 20}, {"rdma/hca", 8}}));
  for (int i = 0; i < 100; ++i) allocatable["example.com/d" + std::to_string(i)] = "1";
  EXPECT_EQ(DecodeOne(node).others.size(), kMostOtherResources);
  allocatable.erase("pods");
  EXPECT_EQ(DecodeOne(node).most_pods, -1);
}

TEST(NodeJson, DiskIsWhatIsAllocatableAndWithoutItNotTracked) {
  Json node = GpuKubeNode();
  EXPECT_EQ(DecodeOne(node).ephemeral_bytes, std::nullopt);
  node["status"]["capacity"] = {{"ephemeral-storage", "100Gi"}};
  EXPECT_EQ(DecodeOne(node).ephemeral_bytes, std::nullopt) << "how much of it may pods have?";
  node["status"]["allocatable"]["ephemeral-storage"] = "94477937300";  // the kubelet writes bytes
  EXPECT_EQ(DecodeOne(node).ephemeral_bytes, 94'477'937'300);
  node["status"]["allocatable"]["ephemeral-storage"] = "0";
  EXPECT_EQ(DecodeOne(node).ephemeral_bytes, 0);
  node["status"]["allocatable"]["ephemeral-storage"] = "lots";
  EXPECT_TRUE(
      ErrorOf(Json::array({node})).starts_with("items[0].status.allocatable.ephemeral-storage: "))
      << ErrorOf(Json::array({node}));
}

TEST(NodeJson, CapacityThatIsNotAllocatableIsMissing) {
  Json node = GpuKubeNode();
  node["status"]["capacity"] = {{"cpu", "96"}, {"nvidia.com/gpu", "8"}};
  EXPECT_EQ(DecodeOne(node).gpus.size(), 8u);
  EXPECT_EQ(DecodeOne(node).missing, 6);
  EXPECT_EQ(DecodeOne(node).cpu_milli, 64'000);
  node["status"].erase("allocatable");
  EXPECT_EQ(DecodeOne(node).gpus.size(), 8u);
  EXPECT_EQ(DecodeOne(node).missing, 8);
  EXPECT_EQ(DecodeOne(node).cpu_milli, 0);
  node["status"]["capacity"]["nvidia.com/gpu"] = "lots";
  EXPECT_TRUE(ErrorOf(Json::array({node})).starts_with("items[0].status.capacity.nvidia.com/gpu: "))
      << ErrorOf(Json::array({node}));
}

TEST(NodeJson, WithoutTheLabelGpuMemoryComesFromTheCatalogue) {
  Json node = GpuKubeNode();
  node["metadata"]["labels"] = {{kModelLabel, "T4"}};
  EXPECT_EQ(DecodeOne(node).gpus.at(0).memory_mib, 15'109);
  node["metadata"]["labels"][kModelLabel] = "not-in-any-catalogue";
  EXPECT_EQ(DecodeOne(node).gpus.at(0).memory_mib, 0);
  node["metadata"]["labels"][kMemoryLabel] = "1";
  EXPECT_EQ(DecodeOne(node).gpus.at(0).memory_mib, 1);
}

TEST(NodeJson, LabelKeysAreTakenFromTheConfiguration) {
  Config config = DefaultConfig();
  config.node_labels = {"my/model", "my/memory"};
  config.resources = {{"my/gpu", ResourceMeaning::kWholeGpus, "gpu"},
                      {"my/share", ResourceMeaning::kShareCompute, "milli"}};
  const Json list = {{"items",
                      {KubeNode("n1", {{"my/model", "M"}, {"my/memory", "7"}, {kModelLabel, "x"}},
                                {{"my/gpu", "3"}, {"my/share", "9"}, {"nvidia.com/gpu", "8"}})}}};
  const auto nodes =
      DecodeNodeList(test::Padded(list.dump()), NodeRules(config, dialects::AllDialects(config)));
  ASSERT_TRUE(nodes);
  EXPECT_EQ(nodes->at(0).spec.gpu_model, "M");
  EXPECT_EQ(nodes->at(0).spec.gpus, std::vector<GpuSpec>(3, GpuSpec{"", 7, true}));
}

TEST(NodeJson, ANodeIsReadyUnlessItsReadyConditionSaysOtherwise) {
  Json node = GpuKubeNode();
  EXPECT_TRUE(DecodeOne(node).ready);
  for (const auto& [status, ready] :
       {std::pair("True", true), {"False", false}, {"Unknown", false}, {"", false}}) {
    node["status"]["conditions"] = {{{"type", "DiskPressure"}, {"status", "False"}},
                                    {{"type", "Ready"}, {"status", status}},
                                    {{"type", "Other"}, {"status", "True"}}};
    EXPECT_EQ(DecodeOne(node).ready, ready) << status;
  }
  node["status"]["conditions"] = {{{"type", "Ready"}, {"status", true}}};
  EXPECT_TRUE(DecodeOne(node).ready) << "no text: nothing is said";
}

TEST(NodeJson, SinceWhenItIsReadyIsRead) {
  Json node = GpuKubeNode();
  EXPECT_EQ(DecodeOne(node).ready_since, 0);
  const auto since = [&node](const Json& time) {
    node["status"]["conditions"] = {
        {{"type", "Other"}, {"status", "True"}, {"lastTransitionTime", "1970-01-01T00:00:07Z"}},
        {{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", time}}};
    return DecodeOne(node).ready_since;
  };
  EXPECT_EQ(since("1970-01-02T00:00:05Z"), 86'405);
  EXPECT_EQ(since("soon"), 0) << "the node does not fail for it";
  EXPECT_EQ(since(7), 0);
}

TEST(NodeJson, BadQuantitiesNameTheirPlace) {
  for (const char* resource : {"cpu", "memory", "nvidia.com/gpu"}) {
    Json bad = GpuKubeNode();
    bad["status"]["allocatable"][resource] = "lots";
    const std::string message = ErrorOf({GpuKubeNode(), bad});
    EXPECT_TRUE(message.starts_with("items[1].status.allocatable." + std::string(resource) + ": "))
        << message;
    EXPECT_NE(message.find("\"lots\""), std::string::npos) << message;
  }
}

TEST(NodeJson, BadAmountsNameTheirPlace) {
  struct Case {
    const char* description;
    const char* pointer;
    Json value;
    const char* start;
  };
  const Case cases[] = {
      {"-1 GPUs", "/status/allocatable/nvidia.com~1gpu", "-1",
       "items[0].status.allocatable.nvidia.com/gpu: want 0 or more, got -1"},
      {"negative cpu", "/status/allocatable/cpu", "-1",
       "items[0].status.allocatable.cpu: want 0 or more"},
      {"negative memory", "/status/allocatable/memory", "-1Ki",
       "items[0].status.allocatable.memory: want 0 or more"},
      {"no name", "/metadata/name", "", "items[0].name: want a DNS-1123 name, got \"\""},
      {"a name that is none", "/metadata/name", "N\"1", "items[0].name: want a DNS-1123 name"},
      {"another kind", "/kind", "Pod", "items[0].kind: want Node, got \"Pod\""}};
  for (const Case& c : cases) {
    Json node = GpuKubeNode();
    node[Json::json_pointer(c.pointer)] = c.value;
    EXPECT_TRUE(ErrorOf(Json::array({node})).starts_with(c.start))
        << c.description << ": " << ErrorOf(Json::array({node}));
  }
}

// Each fact of a node, spoiled: the node, its GPUs and the other nodes of the list are there.
TEST(NodeJson, OneFactThatCannotBeReadCostsThatFact) {
  for (const char* pointer :
       {"/metadata/labels/nvidia.com~1gpu.memory", "/status/allocatable/cpu",
        "/status/allocatable/memory", "/status/allocatable/pods", "/status/capacity/rdma~1hca",
        "/metadata/annotations/berth.dev~1topology", "/metadata/labels/a",
        "/metadata/annotations/hami.io~1device-cordon", "/spec/taints", "/spec/unschedulable",
        "/status/conditions", "/metadata/annotations"}) {
    for (const Json& value :
         {Json("[N/A]"), Json(7), Json::array({7}), Json{{"a", 1}}, Json(true)}) {
      Json node = GpuKubeNode();
      node["metadata"]["name"] = "n2";
      node["spec"] = Json::object();
      node["metadata"]["annotations"] = Json::object();
      node["status"]["capacity"] = Json::object();
      node[Json::json_pointer(pointer)] = value;
      const auto nodes = Decode({GpuKubeNode(), node, GpuKubeNode()});
      ASSERT_TRUE(nodes) << pointer << " " << value << ": " << nodes.error().message;
      ASSERT_EQ(nodes->size(), 3U);
      EXPECT_EQ(nodes->at(1).spec.gpus.size(), 2U) << pointer << " " << value;
      EXPECT_EQ(nodes->at(1).spec.gpu_model, "Tesla-T4") << pointer << " " << value;
    }
  }
  Json node = GpuKubeNode();
  node["metadata"]["labels"][kMemoryLabel] = "[N/A]";
  const auto nodes = Decode(Json::array({node}));
  ASSERT_TRUE(nodes);
  EXPECT_NE(nodes->at(0).problem.find("label nvidia.com/gpu.memory: want"), std::string::npos)
      << nodes->at(0).problem;
  node["status"]["allocatable"]["nvidia.com/gpu"] = 2;  // as people write it
  EXPECT_EQ(DecodeOne(node).gpus.size(), 2U);
}

TEST(NodeJson, WrongTypesNameTheItem) {
  EXPECT_TRUE(ErrorOf({GpuKubeNode(), 7}).starts_with("items[1]: "));
  Json node = GpuKubeNode();
  node["metadata"]["name"] = 7;
  EXPECT_TRUE(ErrorOf(Json::array({node})).starts_with("items[0]: "));
}

TEST(NodeJson, TaintsThatKeepPodsAwayAreReadAndACordonIsOne) {
  Json node = GpuKubeNode();
  node["spec"]["taints"] = {{{"key", "gpu"}, {"value", "yes"}, {"effect", "NoSchedule"}},
                            {{"key", "soft"}, {"effect", "PreferNoSchedule"}},
                            {{"key", "out"}, {"effect", "NoExecute"}, {"timeAdded", "2026"}}};
  const Taint gpu{"gpu", "yes", TaintEffect::kNoSchedule}, out{"out", "", TaintEffect::kNoExecute};
  const Taint cordon{"node.kubernetes.io/unschedulable", "", TaintEffect::kNoSchedule};
  EXPECT_EQ(DecodeOne(node).taints, (std::vector<Taint>{gpu, out}));
  node["spec"]["unschedulable"] = true;
  EXPECT_EQ(DecodeOne(node).taints, (std::vector<Taint>{gpu, out, cordon}));
  node["spec"]["taints"] = {{{"key", cordon.key}, {"effect", "NoSchedule"}}};
  EXPECT_EQ(DecodeOne(node).taints, std::vector<Taint>{cordon});
}

TEST(NodeJson, OneNodeOfAWatchIsReadAndItsErrorsNameIt) {
  const NodeRules rules(DefaultConfig(), test::AllDialects());
  const auto node = DecodeNode(test::Padded(GpuKubeNode().dump()), rules);
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->spec, DecodeOne(GpuKubeNode()));
  Json bad = GpuKubeNode();
  bad["status"]["allocatable"]["nvidia.com/gpu"] = "-1";
  EXPECT_EQ(DecodeNode(test::Padded(bad.dump()), rules)->unread,
            ".status.allocatable.nvidia.com/gpu: want 0 or more, got -1");
  bad["status"]["allocatable"] = 7;
  EXPECT_TRUE(
      DecodeNode(test::Padded(bad.dump()), rules)->unread.starts_with(".status.allocatable: "));
  bad["metadata"]["name"] = "N";
  EXPECT_TRUE(DecodeNode(test::Padded(bad.dump()), rules).error().message.starts_with("node N: "));
  EXPECT_FALSE(DecodeNode(test::Padded("{"), rules));
}

TEST(NodeJson, KeysInAnyCaseAndNullsAreFine) {
  const auto nodes =
      DecodeText(R"({"Items":[{"Kind":"Node","METADATA":{"Name":"n1","Labels":null},)"
                 R"("Status":{"Allocatable":{"cpu":"1"},"Conditions":null}}]})");
  ASSERT_TRUE(nodes) << nodes.error().message;
  EXPECT_EQ(nodes->at(0).spec.cpu_milli, 1000);
  EXPECT_EQ(DecodeText(R"({"items":null})")->size(), 0u);
  EXPECT_EQ(DecodeText("{}")->size(), 0u);
}

TEST(NodeJson, WhatIsNotJsonIsAnError) {
  for (const char* text : {"", "[]", "null", "{\"items\":[", "{\"items\":{}}", "x"}) {
    const auto nodes = DecodeText(text);
    ASSERT_FALSE(nodes) << text;
    EXPECT_FALSE(nodes.error().message.empty());
  }
}

}  // namespace
}  // namespace berth::wire::node_json_test
