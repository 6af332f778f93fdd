// SPDX-License-Identifier: Apache-2.0
//
// Nodes and pods of every vendor that the catalogue knows, as their device plugins and labellers
// write them (test/scenarios/vendors.yaml), read with the default configuration.
#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "scoring/registry.h"
#include "server/wire/file/cluster_file.h"
#include "server/wire/node/node_json.h"
#include "server/wire/pod/pod_object.h"
#include "test/support/dialects.h"
#include "test/support/scenarios.h"
#include "test/support/wire_fixture.h"
#include "topology/gpu_vendor.h"

namespace berth::wire::vendors_test {
namespace {

using test::Json;
using test::PodAsking;
using test::ReadNode;

Json NodeHaving(const Json& devices, const Json& labels = Json::object()) {
  Json node = {{"kind", "Node"}, {"metadata", {{"name", "n"}}}};
  node["metadata"]["labels"] = labels;
  Json amounts = {{"cpu", "96"}, {"ephemeral-storage", "1Ti"}, {"memory", "900Gi"}};
  for (const auto& [name, count] : devices.items()) {
    amounts[name] = std::to_string(count.get<int>());
  }
  node["status"] = {{"capacity", amounts}, {"allocatable", amounts}};
  return node;
}

PodRequest ReadPodOf(const Json& requests, const Config& config = DefaultConfig()) {
  const PodRules rules(dialects::AllDialects(config), config.resources);
  auto pod = DecodeObservedPod(test::Padded(PodAsking("p", requests).dump()), rules);
  EXPECT_TRUE(pod) << pod.error().message;
  return pod ? std::move(pod->pod) : PodRequest();
}

Reason Verdict(const Json& node, const Json& requests, const Config& config = DefaultConfig()) {
  const Node there(std::make_shared<const NodeSpec>(ReadNode(node, config).spec));
  const PodRequest pod = ReadPodOf(requests, config);
  return pod.refusal.empty() ? FirstObjection(there, pod.shape) : Reason::kPodRefused;
}

Json NodeOf(const Json& golden) {
  return NodeHaving(golden["devices"], golden.value("labels", Json::object()));
}

TEST(Vendors, EveryNodeIsReadAsItsVendorsDocumentsSay) {
  const std::vector<Json> nodes = test::Scenarios("vendors");
  EXPECT_GE(nodes.size(), 29U);
  for (const Json& golden : nodes) {
    SCOPED_TRACE(golden["node"].get<std::string>());
    const DecodedNode node = ReadNode(NodeOf(golden));
    const Json& read = golden["read"];
    EXPECT_EQ(node.problem, "");
    EXPECT_EQ(VendorOf(node.spec.gpu_resource), read["vendor"].get<std::string>());
    EXPECT_EQ(node.spec.gpu_resource, read["resource"].get<std::string>());
    EXPECT_EQ(node.spec.gpu_model, read.value("model", ""));
    ASSERT_EQ(node.spec.gpus.size(), read["gpus"].get<std::size_t>());
    EXPECT_EQ(node.spec.gpus.front().memory_mib, read.value("memory_mib", 0));
    EXPECT_EQ(node.spec.gpus_are_parts, read.value("parts", false));
    EXPECT_EQ(node.spec.gives_parts(), read.value("parts", false));
  }
}

TEST(Vendors, EveryOneOfTheCatalogueHasANodeHere) {
  std::set<std::string> domains;
  for (const Json& golden : test::Scenarios("vendors")) {
    const auto resource = golden["read"]["resource"].get<std::string>();
    domains.insert(resource.substr(0, resource.find('/')));
  }
  for (const GpuVendor& vendor : GpuVendors()) {
    EXPECT_TRUE(domains.contains(std::string(vendor.domain))) << vendor.domain;
  }
}

TEST(Vendors, APodGetsGpusOfTheResourceThatItAsksForAlone) {
  for (const Json& golden : test::Scenarios("vendors")) {
    SCOPED_TRACE(golden["node"].get<std::string>());
    const Json node = NodeOf(golden);
    const auto resource = golden["read"]["resource"].get<std::string>();
    EXPECT_EQ(Verdict(node, {{resource, "1"}}), Reason::kFits);
    for (const char* other : {"nvidia.com/gpu", "amd.com/gpu", "huawei.com/Ascend910B2"}) {
      if (other == resource) continue;
      EXPECT_EQ(Verdict(node, {{other, "1"}}), Reason::kOtherResource) << other;
    }
  }
}

TEST(Vendors, APodThatAsksForTwoOfThemIsToldBoth) {
  EXPECT_EQ(ReadPodOf({{"amd.com/gpu", "1"}, {"huawei.com/Ascend910B3", "1"}}).refusal,
            "pod asks for amd.com/gpu and for huawei.com/Ascend910B3: want one of the two");
  EXPECT_EQ(ReadPodOf({{"amd.com/gpu", "1"}, {"nvidia.com/gpu", "0"}}).refusal, "");
}

TEST(Vendors, ThreeNamesOfOneDeviceAreOneResource) {
  const Json node = NodeHaving({{"aws.amazon.com/neuron", 1},
                                {"aws.amazon.com/neuroncore", 2},
                                {"aws.amazon.com/neurondevice", 1}});
  EXPECT_EQ(Verdict(node, {{"aws.amazon.com/neurondevice", "1"}}), Reason::kFits);
  const Json older = NodeHaving({{"aws.amazon.com/neurondevice", 1}});
  EXPECT_EQ(Verdict(older, {{"aws.amazon.com/neuron", "1"}}), Reason::kFits);
  // A pod by cores is kube-scheduler's alone, unless the configuration says that cores count.
  EXPECT_FALSE(ReadPodOf({{"aws.amazon.com/neuroncore", "2"}}).shape.wants_gpu());
  Config config = DefaultConfig();
  config.resources.push_back({"aws.amazon.com/neuroncore", ResourceMeaning::kWholeGpus, "gpu"});
  const DecodedNode by_core = ReadNode(node, config);
  EXPECT_EQ(by_core.spec.gpu_resource, "aws.amazon.com/neuroncore");
  EXPECT_EQ(by_core.spec.gpus.size(), 2U);
  EXPECT_EQ(by_core.problem,
            "allocatable aws.amazon.com/neuron: want GPUs of one resource on a node, those of "
            "aws.amazon.com/neuroncore count alone");
}

TEST(Vendors, WhatIsNoGpuIsNone) {
  for (const char* name : {"huawei.com/Ascend910B3-memory",
                           "huawei.com/Ascend910B3-core",
                           "huawei.com/npu-core",
                           "huawei.com/Ascend",
                           "huawei.com/AscendReal",
                           "amd.com/gpumem",
                           "amd.com/cpx_nps",
                           "cambricon.com/mlu.smlu.vmemory",
                           "cambricon.com/mlu370.share",
                           "cambricon.com/vmlu",
                           "gpu.intel.com/i915_monitoring",
                           "hygon.com/dcunum",
                           "hygon.com/dcu-share-",
                           "metax-tech.com/sgpu",
                           "enflame.com/shared-gcu",
                           "aws.amazon.com/neuroncore",
                           "vendor.com/thing",
                           "/",
                           "",
                           "amd.com/",
                           "amd.com"}) {
    EXPECT_EQ(FindGpuResource(name), nullptr) << name;
    EXPECT_FALSE(GpuWords(DefaultConfig().resources).Find(name)) << name;
  }
  EXPECT_EQ(Verdict(NodeHaving({{"vendor.com/thing", 8}}), {{"nvidia.com/gpu", "1"}}),
            Reason::kNoGpu);
}

TEST(Vendors, OneThatIsNotKnownIsOneLine) {
  Config config = DefaultConfig();
  config.resources = {{"vendor.com/thing", ResourceMeaning::kWholeGpus, "gpu"}};
  const Json node = NodeHaving({{"vendor.com/thing", 8}});
  EXPECT_EQ(Verdict(node, {{"vendor.com/thing", "8"}}, config), Reason::kFits);
  EXPECT_EQ(Verdict(node, {{"vendor.com/thing", "9"}}, config), Reason::kTooFewGpus);
  EXPECT_EQ(VendorOf(ReadNode(node, config).spec.gpu_resource), "vendor.com");
  // What is known counts besides.
  EXPECT_EQ(Verdict(NodeHaving({{"amd.com/gpu", 2}}), {{"amd.com/gpu", "2"}}, config),
            Reason::kFits);
  EXPECT_EQ(Verdict(NodeHaving({{"nvidia.com/gpu", 2}}), {{"nvidia.com/gpu", "2"}}, config),
            Reason::kFits);
}

TEST(Vendors, AConfiguredResourceReplacesWhatIsKnownOfTheName) {
  Config config = DefaultConfig();
  config.resources.push_back({"amd.com/gpu", ResourceMeaning::kIgnored, "gpu"});
  const Json node = NodeHaving({{"amd.com/gpu", 8}});
  EXPECT_EQ(ReadNode(node, config).spec.gpus.size(), 0U);
  const PodRequest pod = ReadPodOf({{"amd.com/gpu", "1"}}, config);
  EXPECT_FALSE(pod.shape.wants_gpu());
  EXPECT_EQ(pod.refusal, "");
  config.resources.back() = {"amd.com/gpu", ResourceMeaning::kShareCompute, "percent"};
  EXPECT_EQ(ReadPodOf({{"amd.com/gpu", "25"}}, config).shape.gpus, GpuAsk(GpuShare{250, 0}));
}

TEST(Vendors, WhatDraGivesOutByAKnownNameStaysKubeSchedulers) {
  DeviceClasses classes;
  DeviceClass given;
  given.name = "gpu.amd.com";
  given.extended_resource = "amd.com/gpu";
  classes.Put(given);
  const auto asks = [&classes](const std::vector<ResourceRule>& resources) {
    const PodRules rules(test::AllDialects(), resources, {}, nullptr, &classes);
    ResourceAsk ask;
    EXPECT_TRUE(rules.Add("amd.com/gpu", "2", ask));
    return ask.gpus;
  };
  std::vector<ResourceRule> resources = DefaultConfig().resources;
  EXPECT_EQ(asks(resources), 0);
  resources.push_back({"amd.com/gpu", ResourceMeaning::kWholeGpus, "gpu"});
  EXPECT_EQ(asks(resources), 2) << "as the configuration says";
}

TEST(Vendors, OfSeveralOnANodeTheWholeGpusAreChosenAndTheOthersCounted) {
  const DecodedNode node =
      ReadNode(NodeHaving({{"amd.com/cpx_nps1", 24}, {"amd.com/spx_nps1", 5}}));
  EXPECT_EQ(node.spec.gpu_resource, "amd.com/spx_nps1");
  EXPECT_EQ(node.spec.gpus.size(), 5U);
  EXPECT_EQ(node.problem, "");
  EXPECT_EQ(node.spec.other_gpus, (OtherResources{{"amd.com/cpx_nps1", 24}}));
  // What no healthy device is left of gives way.
  Json changed = NodeHaving({{"amd.com/cpx_nps1", 64}, {"amd.com/gpu", 8}});
  changed["status"]["allocatable"]["amd.com/gpu"] = "0";
  EXPECT_EQ(ReadNode(changed).spec.gpu_resource, "amd.com/cpx_nps1");
}

TEST(Vendors, SeveralUsersOfACardAreSeen) {
  const Json labels = {{"gpu.intel.com/device.count", "2"},
                       {"gpu.intel.com/product", "Flex_170"},
                       {"gpu.intel.com/memory.max", "34359738368"}};
  const NodeSpec intel = ReadNode(NodeHaving({{"gpu.intel.com/i915", 20}}, labels)).spec;
  EXPECT_EQ(intel.places.count, 20);
  EXPECT_EQ(intel.places.gpus, 2);
  EXPECT_EQ(intel.places.memory_mib, 1638);
  EXPECT_EQ(intel.places.sharing, GpuSharing::kUnknown);
  EXPECT_TRUE(intel.gpus.empty());
  // The plugin's label, where the rules of NFD are not installed.
  const Json numbers = {{"gpu.intel.com/gpu-numbers", "0.1"}};
  EXPECT_EQ(ReadNode(NodeHaving({{"gpu.intel.com/xe", 20}}, numbers)).spec.places.gpus, 2);
  // More devices than any node has GPUs.
  const NodeSpec amd = ReadNode(NodeHaving({{"amd.com/gpu", 80}})).spec;
  EXPECT_EQ(amd.places.count, 80);
  // NVIDIA's labels on the node say nothing about GPUs of others.
  const NodeSpec mixed =
      ReadNode(NodeHaving({{"amd.com/gpu", 8}}, {{"nvidia.com/gpu.product", "Tesla-T4-SHARED"},
                                                 {"nvidia.com/gpu.memory", "15360"},
                                                 {"nvidia.com/gpu.replicas", "4"}}))
          .spec;
  EXPECT_EQ(mixed.gpus.size(), 8U);
  EXPECT_EQ(mixed.gpu_model, "");
  EXPECT_EQ(mixed.gpus.front().memory_mib, 0);
}

TEST(Vendors, AConfiguredLabelComesFirst) {
  Config config = DefaultConfig();
  config.node_labels = {"example.com/model", "example.com/mib"};
  const NodeSpec spec =
      ReadNode(
          NodeHaving({{"amd.com/gpu", 8}}, {{"amd.com/gpu.product-name", "AMD_Instinct_MI300X_OAM"},
                                            {"amd.com/gpu.vram", "192G"},
                                            {"example.com/model", "big"},
                                            {"example.com/mib", "1000"}}),
          config)
          .spec;
  EXPECT_EQ(spec.gpu_model, "big");
  EXPECT_EQ(spec.gpus.front().memory_mib, 1000);
  // Where a node does not have it, its vendor's.
  const NodeSpec nvidia = ReadNode(NodeHaving({{"nvidia.com/gpu", 8}},
                                              {{"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"},
                                               {"nvidia.com/gpu.memory", "81559"}}),
                                   config)
                              .spec;
  EXPECT_EQ(nvidia.gpu_model, "NVIDIA-H100-80GB-HBM3");
  EXPECT_EQ(nvidia.gpus.front().memory_mib, 81559);
}

TEST(Vendors, ALabelThatCannotBeReadIsToldAndPassedOver) {
  for (const char* value : {"much", "-1G", "64 G", "64K", "99999999999999999999G"}) {
    const DecodedNode node =
        ReadNode(NodeHaving({{"amd.com/gpu", 8}}, {{"amd.com/gpu.vram", value}}));
    EXPECT_EQ(node.spec.gpus.size(), 8U);
    EXPECT_EQ(node.problem, std::string("label amd.com/gpu.vram: want an amount of memory such as "
                                        "64G, got \"") +
                                value + "\"");
  }
}

TEST(Vendors, AShareOfAGpuIsCarriedOutByNobodyWhereItIsNotNvidias) {
  Json node = NodeHaving({{"amd.com/gpu", 2}});
  node["metadata"]["annotations"] = {{"berth.dev/gpu-uuids", "g0,g1"}};
  EXPECT_EQ(ReadNode(node).spec.gpus.front().uuid, "g0");
  EXPECT_EQ(Verdict(node, {{"berth.dev/gpu-milli", "300"}}), Reason::kSharesNotCarriedOut);
  Config config = DefaultConfig();
  config.shares.unenforced = UnenforcedShares::kAllow;
  EXPECT_EQ(Verdict(node, {{"berth.dev/gpu-milli", "300"}}, config), Reason::kFits);
}

TEST(Vendors, PartsOfIntelsCardsAreSharesOfTheirNodesOrRefused) {
  const PodRequest part = ReadPodOf({{"gpu.intel.com/i915", "1"},
                                     {"gpu.intel.com/millicores", "300"},
                                     {"gpu.intel.com/memory.max", "2Gi"}});
  EXPECT_EQ(part.refusal, "");
  EXPECT_EQ(part.shape.gpus, GpuAsk(GpuShare{300, 2048}));
  EXPECT_EQ(part.shape.gpu_resource, "gpu.intel.com/i915");
  const Json card = NodeHaving({{"gpu.intel.com/i915", 1}});
  const Json asks = {{"gpu.intel.com/i915", "1"}, {"gpu.intel.com/millicores", "300"}};
  EXPECT_EQ(Verdict(card, asks), Reason::kSharesNotCarriedOut);
  Config config = DefaultConfig();
  config.shares.unenforced = UnenforcedShares::kAllow;
  EXPECT_EQ(Verdict(card, asks, config), Reason::kFits);
  EXPECT_EQ(Verdict(NodeHaving({{"amd.com/gpu", 1}}), asks, config), Reason::kOtherResource);
  EXPECT_EQ(ReadPodOf({{"gpu.intel.com/xe", "1"}, {"gpu.intel.com/millicores", "1000"}}).shape.gpus,
            GpuAsk(WholeGpus{1}));
  for (const auto& [requests, key] : std::vector<std::pair<Json, std::string>>{
           {{{"gpu.intel.com/i915", "2"}, {"gpu.intel.com/millicores", "600"}},
            "gpu.intel.com/millicores"},
           {{{"gpu.intel.com/memory.max", "1Gi"}}, "gpu.intel.com/memory.max"},
           {{{"gpu.intel.com/i915", "1"}, {"gpu.intel.com/tiles", "1"}}, "gpu.intel.com/tiles"}}) {
    EXPECT_NE(ReadPodOf(requests).refusal.find(key + ": want"), std::string::npos)
        << ReadPodOf(requests).refusal;
  }
}

TEST(Vendors, WhatAnotherAgentHandsOutInPartsIsItsOwn) {
  Json node = NodeHaving({{"huawei.com/Ascend910B3", 32}});
  node["metadata"]["annotations"] = {
      {"hami.io/node-register-Ascend910B3", R"([{"id":"a","count":4,"devmem":65536}])"}};
  EXPECT_EQ(Verdict(node, {{"huawei.com/Ascend910B3", "1"}}), Reason::kGpusForeign);
}

TEST(Vendors, PartsSurviveAFile) {
  const NodeSpec spec = ReadNode(NodeHaving({{"amd.com/cpx_nps4", 64}})).spec;
  ClusterState state;
  ASSERT_TRUE(state.Apply(std::vector<ClusterEvent>{NodeUpserted{spec}}));
  const auto file = DecodeCluster(EncodeCluster(state.Everything()),
                                  NodeRules(DefaultConfig(), test::AllDialects()));
  ASSERT_TRUE(file) << file.error().message;
  const auto* const node = std::get_if<NodeUpserted>(&file->events.front());
  ASSERT_NE(node, nullptr);
  EXPECT_TRUE(node->spec.gpus_are_parts);
}

// --- Links

GpuMask MaskOf(std::initializer_list<int> gpus) {
  GpuMask mask = 0;
  for (const int gpu : gpus) mask |= GpuBit(gpu);
  return mask;
}

GpuLinks LinksOfNode(const Json& devices, const std::string& chip) {
  return ReadNode(NodeHaving(devices, {{"node.kubernetes.io/npu.chip.name", chip}})).spec.links;
}

TEST(AscendLinks, TwoAndFourOfEightGoIntoOneRing) {
  const GpuLinks links = LinksOfNode({{"huawei.com/Ascend910", 8}}, "910A");
  ASSERT_TRUE(links.known());
  EXPECT_EQ(links.source(), LinkSource::kCatalogue);
  EXPECT_EQ(LinkText(links.matrix().link(0, 3)), "HCCS");
  EXPECT_EQ(LinkText(links.matrix().link(3, 4)), "?");
  EXPECT_EQ(links.Choose(MaskOf({0, 1, 4, 5, 6, 7}), 4), MaskOf({4, 5, 6, 7}));
  EXPECT_EQ(links.Choose(MaskOf({0, 5, 6}), 2), MaskOf({5, 6}));
  EXPECT_EQ(links.Choose(MaskOf({0, 1, 2, 4, 5, 6, 7}), 2), MaskOf({0, 1}))
      << "it leaves the ring whole that others can take at once";
  // A set that straddles is the last choice, and none where links are required.
  const GpuMask three_each = MaskOf({0, 1, 2, 4, 5, 6});
  EXPECT_EQ(std::popcount(links.Choose(three_each, 4)), 4);
  EXPECT_EQ(links.Choose(three_each, 4, {.link = LinkWish::kRequired}), 0U);
  EXPECT_EQ(links.Choose(three_each, 3, {.link = LinkWish::kRequired}), MaskOf({0, 1, 2}));
}

TEST(AscendLinks, SixteenAreTwoGroupsOfEight) {
  const GpuLinks links = LinksOfNode({{"huawei.com/Ascend910", 16}}, "910B3");
  ASSERT_TRUE(links.known());
  EXPECT_EQ(LinkText(links.matrix().link(0, 7)), "HCCS");
  EXPECT_EQ(LinkText(links.matrix().link(7, 8)), "?");
  EXPECT_EQ(links.Choose(MaskOf({0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15}), 8),
            MaskOf({8, 9, 10, 11, 12, 13, 14, 15}));
}

TEST(AscendLinks, AreAsTheMachineTypeSaysWhereTheChipIsNotSaid) {
  const auto links = [](const char* type, int gpus) {
    return ReadNode(NodeHaving({{"huawei.com/Ascend910", gpus}}, {{"accelerator-type", type}}))
        .spec.links;
  };
  EXPECT_FALSE(LinksOfNode({{"huawei.com/Ascend910", 8}}, "910X").known());
  EXPECT_EQ(LinkText(links("module", 8).matrix().link(3, 4)), "?");
  EXPECT_EQ(LinkText(links("module-910b-8", 8).matrix().link(3, 4)), "HCCS");
  EXPECT_EQ(LinkText(links("module-910b-16", 16).matrix().link(7, 8)), "?");
  EXPECT_FALSE(links("card", 8).known());
}

TEST(AmdLinks, EightOnAPlatformReachEachOther) {
  const auto links = [](const char* product, int gpus, const char* partitioning) {
    return ReadNode(NodeHaving({{"amd.com/gpu", gpus}},
                               {{"amd.com/gpu.product-name", product},
                                {"amd.com/compute-memory-partition", partitioning}}))
        .spec.links;
  };
  for (const char* product : {"AMD_Instinct_MI300X_OAM", "AMD_Instinct_MI300X_VF",
                              "AMD_Instinct_MI325_OAM", "AMD_Instinct_MI355X_OAM"}) {
    ASSERT_TRUE(links(product, 8, "spx_nps1").known()) << product;
    EXPECT_EQ(LinkText(links(product, 8, "spx_nps1").matrix().link(0, 7)), "XGMI");
  }
  EXPECT_FALSE(links("AMD_Instinct_MI300X_OAM", 4, "spx_nps1").known());
  EXPECT_FALSE(links("AMD_Instinct_MI210", 8, "").known()) << "cards with any bridges or none";
  EXPECT_FALSE(links("AMD_Instinct_MI300X_OAM", 8, "cpx_nps1").known())
      << "eight parts of one GPU are no machine of eight";
}

TEST(AscendLinks, AreReadAndWrittenByTheirName) {
  Json node = NodeHaving({{"huawei.com/Ascend910", 2}});
  node["metadata"]["annotations"] = {
      {"berth.dev/topology", R"({"version":1,"gpus":2,"cells":["SYS+HCCS"],"links":"0"})"}};
  const DecodedNode read = ReadNode(node);
  if (!read.spec.links.known()) GTEST_FAIL() << read.problem;
  EXPECT_EQ(LinkText(read.spec.links.matrix().link(0, 1)), "HCCS");
}

}  // namespace
}  // namespace berth::wire::vendors_test
