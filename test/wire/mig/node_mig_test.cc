// SPDX-License-Identifier: Apache-2.0
//
// What nodes publish of their MIG devices.
#include "server/dialects/nvidia/nvidia_dialect.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "server/wire/extender/extender_v1.h"
#include "server/wire/node/gpu_conditions.h"
#include "server/wire/node/mig_json.h"
#include "server/wire/node/node_json.h"
#include "test/support/dialects.h"
#include "test/support/mig_nodes.h"
#include "topology/mig/mig_product.h"

namespace berth::wire::node_mig_test {
namespace {

using Object = nlohmann::json;
constexpr const char* kA100 = "NVIDIA-A100-SXM4-40GB";

struct ANodeObject {
  Object labels = Object::object(), allocatable = {{"cpu", "96"}, {"memory", "900Gi"}};
  std::string annotation;
};

const NodeRules& Rules() {
  static const NodeRules rules(DefaultConfig(), test::AllDialects());
  return rules;
}

DecodedNode Decode(const ANodeObject& node) {
  Object object = {{"metadata", {{"name", "n1"}, {"labels", node.labels}}},
                   {"status", {{"allocatable", node.allocatable}}}};
  if (!node.annotation.empty()) {
    object["metadata"]["annotations"] = {{"berth.dev/mig", node.annotation}};
  }
  const PaddedText text(object.dump());
  auto decoded = DecodeNode(text, Rules());
  EXPECT_TRUE(decoded) << decoded.error().message;
  return decoded ? *std::move(decoded) : DecodedNode{};
}

// "3g.20gb at 4, ..." of each GPU: how many GPUs have it.
std::map<std::string, int> LayoutsOf(const NodeSpec& spec) {
  std::map<std::string, int> layouts;
  if (!spec.mig.known()) return layouts;
  for (const MigGpu& gpu : spec.mig->gpus) ++layouts[MigSetName(*spec.mig->product, gpu.instances)];
  return layouts;
}
using Layouts = std::map<std::string, int>;

ANodeObject Mixed(const Object& devices, const Object& more_labels = Object::object()) {
  ANodeObject node;
  node.labels = {{"nvidia.com/gpu.product", kA100},
                 {"nvidia.com/gpu.count", "8"},
                 {"nvidia.com/mig.strategy", "mixed"}};
  node.labels.update(more_labels);
  node.allocatable.update(devices);
  return node;
}

TEST(NodeMig, IsNotThereWithoutDevices) {
  EXPECT_FALSE(Decode({}).spec.mig.known());
  ANodeObject whole = Mixed(
      {{"nvidia.com/gpu", "8"}},
      {{"nvidia.com/mig.config", "all-disabled"}, {"nvidia.com/mig.config.state", "success"}});
  EXPECT_FALSE(Decode(whole).spec.mig.known());
  // The kubelet keeps the names of resources that are gone.
  whole.allocatable["nvidia.com/mig-1g.5gb"] = "0";
  EXPECT_FALSE(Decode(whole).spec.mig.known());
}

TEST(NodeMig, SpreadsCountsOverTheGpusAsTheDriverWouldPlaceThem) {
  const NodeSpec balanced = Decode(Mixed({{"nvidia.com/mig-1g.5gb", "16"},
                                          {"nvidia.com/mig-2g.10gb", "8"},
                                          {"nvidia.com/mig-3g.20gb", "8"}}))
                                .spec;
  ASSERT_TRUE(balanced.mig.known());
  EXPECT_EQ(balanced.mig->knowledge, MigKnowledge::kCounts);
  EXPECT_EQ(balanced.mig->allocator, MigAllocator::kFirstFit);
  EXPECT_FALSE(balanced.mig->dynamic);
  const Layouts layouts = LayoutsOf(balanced);
  ASSERT_EQ(layouts.size(), 1U) << layouts.begin()->first;
  EXPECT_EQ(layouts.begin()->second, 8);
  EXPECT_TRUE(layouts.begin()->first.ends_with("3g.20gb at 4")) << layouts.begin()->first;
}

// What the node pools of AKS offer on 8 A100-40GB, whose nodes may lack the label gpu.count.
TEST(NodeMig, UnderstandsTheNodePoolsOfAks) {
  const std::map<std::string, std::string> pools = {
      {"1g.5gb", "56"}, {"2g.10gb", "24"}, {"3g.20gb", "16"}, {"4g.20gb", "8"}, {"7g.40gb", "8"}};
  for (const auto& [profile, count] : pools) {
    ANodeObject mixed = Mixed({{"nvidia.com/mig-" + profile, count}});
    mixed.labels.erase("nvidia.com/gpu.count");
    const NodeSpec spec = Decode(mixed).spec;
    ASSERT_TRUE(spec.mig.known()) << profile;
    EXPECT_EQ(spec.mig->gpus.size(), 8U) << profile;
    EXPECT_EQ(spec.mig->product->name(), "A100-40GB");
    EXPECT_TRUE(spec.gpus.empty());

    ANodeObject single;
    single.labels = {{"nvidia.com/gpu.product", kA100 + std::string("-MIG-") + profile},
                     {"nvidia.com/gpu.memory", "4864"}};
    single.allocatable["nvidia.com/gpu"] = count;
    const NodeSpec alike = Decode(single).spec;
    ASSERT_TRUE(alike.mig.known()) << profile;
    EXPECT_EQ(alike.mig->single, test::ProfileOf(profile));
    EXPECT_EQ(alike.mig->single_memory_mib, 4864);
    EXPECT_EQ(alike.gpus.size(), std::stoul(count));
    EXPECT_TRUE(alike.mig->gpus.empty());
  }
}

TEST(NodeMig, PutsEachDeviceOnAGpuOfItsOwnWhereTheProductIsNotKnown) {
  ANodeObject node = Mixed({{"nvidia.com/mig-1g.5gb", "3"}, {"nvidia.com/mig-9g.99gb", "1"}});
  for (const char* product : {"", "NVIDIA-X999", kA100}) {  // 9g.99gb is none of an A100
    node.labels["nvidia.com/gpu.product"] = product;
    const NodeSpec spec = Decode(node).spec;
    EXPECT_EQ(LayoutsOf(spec), (Layouts{{"1g.5gb at 0", 3}, {"9g.99gb at 0", 1}})) << product;
  }
}

TEST(NodeMig, LeavesTheGpusThatAreNotCutApart) {
  const NodeSpec spec =
      Decode(Mixed({{"nvidia.com/gpu", "4"}, {"nvidia.com/mig-7g.40gb", "4"}})).spec;
  EXPECT_EQ(spec.gpus.size(), 4U);
  ASSERT_EQ(spec.mig->gpus.size(), 4U);
  EXPECT_EQ(spec.mig->gpus.front().index, 4);
}

TEST(NodeMig, CountsDevicesWithSeveralUsersApart) {
  const NodeSpec spec = Decode(Mixed({{"nvidia.com/mig-1g.5gb.shared", "40"},
                                      {"nvidia.com/mig-2g.10gb", "16"},
                                      {"nvidia.com/mig-3g.20gb", "8"}},
                                     {{"nvidia.com/mig-1g.5gb.count", "10"},
                                      {"nvidia.com/mig-1g.5gb.replicas", "4"},
                                      {"nvidia.com/mig-2g.10gb.count", "8"},
                                      {"nvidia.com/mig-2g.10gb.replicas", "2"},
                                      {"nvidia.com/mig-3g.20gb.count", "8"},
                                      {"nvidia.com/mig-3g.20gb.replicas", "1"}}))
                            .spec;
  ASSERT_EQ(spec.mig->shared.size(), 2U);
  EXPECT_EQ(spec.mig->shared[0], (MigStock{{test::ProfileOf("1g.5gb"), true}, 40}));
  EXPECT_EQ(spec.mig->shared[1], (MigStock{{test::ProfileOf("2g.10gb"), false}, 16}));
  EXPECT_EQ(LayoutsOf(spec), (Layouts{{"3g.20gb at 4", 8}}));
  EXPECT_EQ(spec.mig->trouble, MigTrouble::kNone);
}

TEST(NodeMig, SeesTrouble) {
  const auto trouble = [](const Object& labels, const Object& devices) {
    const NodeSpec spec = Decode(Mixed(devices, labels)).spec;
    return spec.mig.known() ? spec.mig->trouble : MigTrouble::kNone;
  };
  const Object devices = {{"nvidia.com/mig-1g.5gb", "56"}};
  const char* const state = "nvidia.com/mig.config.state";
  EXPECT_EQ(trouble({{state, "success"}}, devices), MigTrouble::kNone);
  EXPECT_EQ(trouble({{state, "pending"}}, devices), MigTrouble::kChanging);
  EXPECT_EQ(trouble({{state, "rebooting"}}, {{"nvidia.com/gpu", "8"}}), MigTrouble::kChanging);
  EXPECT_EQ(trouble({{state, "failed"}}, devices), MigTrouble::kFailed);
  EXPECT_EQ(trouble({{"nvidia.com/gpu.product", kA100 + std::string("-MIG-INVALID")}},
                    {{"nvidia.com/gpu", "0"}}),
            MigTrouble::kInvalid);
  // Cut anew from 1g to 2g: labels of before, devices of now, and the reverse.
  const Object of_1g = {{"nvidia.com/mig-1g.5gb.count", "56"}};
  EXPECT_EQ(trouble(of_1g, devices), MigTrouble::kNone);
  EXPECT_EQ(trouble(of_1g, {{"nvidia.com/mig-1g.5gb", "55"}}), MigTrouble::kNone);  // one is ill
  EXPECT_EQ(trouble(of_1g, {{"nvidia.com/mig-2g.10gb", "24"}}), MigTrouble::kStale);
  EXPECT_EQ(trouble({{"nvidia.com/mig-2g.10gb.count", "24"}}, devices), MigTrouble::kStale);
  EXPECT_EQ(trouble({{"nvidia.com/gpu.product", kA100 + std::string("-MIG-2g.10gb")},
                     {"nvidia.com/gpu.count", "24"}},
                    {{"nvidia.com/gpu", "56"}}),
            MigTrouble::kStale);
}

TEST(NodeMig, BelievesTheAnnotationPerGpuAndExactly) {
  ANodeObject node = Mixed({{"nvidia.com/mig-1g.5gb", "3"}, {"nvidia.com/mig-3g.20gb", "2"}});
  node.annotation = R"({"gpus":[
    {"index":5,"instances":[{"profile":"3g.20gb","start":0},{"profile":"1g.5gb","start":6}]},
    {"index":2,"uuid":"GPU-2","instances":[{"profile":"1g.5gb","count":2},{"profile":"3g.20gb"}]}]})";
  const DecodedNode decoded = Decode(node);
  EXPECT_EQ(decoded.problem, "");
  const MigSpec& spec = *decoded.spec.mig;
  EXPECT_EQ(spec.knowledge, MigKnowledge::kPerGpu);
  ASSERT_EQ(spec.gpus.size(), 2U);
  EXPECT_EQ(spec.gpus[0].index, 2);
  EXPECT_EQ(spec.gpus[0].uuid, "GPU-2");
  EXPECT_EQ(MigSetName(*spec.product, spec.gpus[1].instances), "1g.5gb at 6, 3g.20gb at 0");
  EXPECT_TRUE(MigSetName(*spec.product, spec.gpus[0].instances).ends_with("3g.20gb at 4"));

  node.annotation = R"({"partitioning":"dynamic","gpus":[{"index":0},{"index":1}]})";
  const MigSpec dynamic = *Decode(node).spec.mig;
  EXPECT_TRUE(dynamic.dynamic);
  EXPECT_EQ(dynamic.allocator, MigAllocator::kBerth);
  EXPECT_EQ(dynamic.knowledge, MigKnowledge::kExact);
  node.annotation = R"({"partitioning":"dynamic","allocator":"hami","gpus":[{"index":0}]})";
  EXPECT_EQ(Decode(node).spec.mig->allocator, MigAllocator::kHighOrLow);
}

TEST(NodeMig, TakesRowsAndProductsOfTheNodesOwn) {
  ANodeObject node = Mixed(Object::object());
  node.annotation = R"({"partitioning":"dynamic","gpus":[{"index":0}],
    "profiles":[{"profile":"1g.5gb","size":1,"starts":[0,1],"max":2,"memory_mib":4800}]})";
  const DecodedNode replaced = Decode(node);
  ASSERT_TRUE(replaced.spec.mig.known()) << replaced.problem;
  const MigProduct& product = *replaced.spec.mig->product;
  EXPECT_EQ(product.row(*product.RowOf(test::ProfileOf("1g.5gb"))).starts, 0b11);
  EXPECT_TRUE(product.RowOf(test::ProfileOf("7g.40gb")));
  // Equal products are one object, so that nodes of one kind share what is computed of it.
  EXPECT_EQ(Decode(node).spec.mig->product, replaced.spec.mig->product);
  EXPECT_EQ(Decode(node).spec, replaced.spec);

  node.labels["nvidia.com/gpu.product"] = "NVIDIA-X999";
  node.annotation = R"({"partitioning":"dynamic","memory_units":2,"compute_slices":2,
    "gpus":[{"index":0}],"profiles":[{"profile":"1g.9gb","size":1,"starts":[0,1]}]})";
  const DecodedNode own = Decode(node);
  ASSERT_TRUE(own.spec.mig.known()) << own.problem;
  EXPECT_EQ(own.spec.mig->product->name(), "NVIDIA-X999");
}

TEST(NodeMig, TellsWhatItPassesOver) {
  ANodeObject node = Mixed({{"nvidia.com/mig-1g.5gb", "56"}, {"nvidia.com/mig-foo", "1"}});
  EXPECT_EQ(Decode(node).problem,
            ".status.allocatable.nvidia.com/mig-foo: want a resource such as nvidia.com/mig-1g.5gb "
            "or nvidia.com/mig-1g.5gb.me, got \"nvidia.com/mig-foo\"");
  node = Mixed({{"nvidia.com/mig-1g.5gb", "56"}});
  const std::map<std::string, std::string> cases = {
      {"{", "want JSON, got something else"},
      {R"({"gpus":[{}]})", "gpus[0].index: want the index of a GPU, got none"},
      {R"({"gpu":[]})", "gpu: unknown key"},
      {R"({"partitioning":"both"})", "partitioning: want static or dynamic, got \"both\""},
      {R"({"allocator":"me"})",
       "allocator: want one of berth, first-fit, driver, hami, got \"me\""},
      {R"({"partitioning":"dynamic","allocator":"kube-scheduler","gpus":[{"index":0}]})",
       "allocator: want one of berth, first-fit, driver, hami, got \"kube-scheduler\""},
      {R"({"dialect":"hum"})", "dialect: want one of berth, hami, got \"hum\""},
      {R"({"product":"A1","gpus":[{"index":0}]})",
       "product: want a GPU product that is known, or memory_units and profiles, got \"A1\""},
      {R"({"gpus":[{"index":0,"instances":[{"profile":"1g.10gb","start":1}]}]})",
       "gpus[0]: want a start of 1g.10gb on A100-40GB, got 1"},
      {R"({"gpus":[{"index":0,"instances":[{"profile":"4g.20gb","count":2}]}]})",
       "gpus[0]: want instances that go together on A100-40GB, got no room for all of them"},
      {R"({"partitioning":"dynamic","gpus":[{"index":0,"instances":[{"profile":"4g.20gb"}]}]})",
       "gpus[0].instances: want none where GPUs are cut when a pod comes"}};
  for (const auto& [annotation, message] : cases) {
    node.annotation = annotation;
    const DecodedNode decoded = Decode(node);
    EXPECT_EQ(decoded.problem, "annotation berth.dev/mig: " + message) << annotation;
    ASSERT_TRUE(decoded.spec.mig.known());
    EXPECT_EQ(decoded.spec.mig->gpus.size(), 8U) << "the counts are taken instead";
  }
}

TEST(NodeMig, KnowsTheNamesOfInstancesAndWhichAreSick) {
  ANodeObject node = Mixed({{"nvidia.com/mig-1g.5gb", "2"}, {"nvidia.com/mig-3g.20gb", "1"}});
  const auto said = [](const std::string& allocator) {
    return R"({"allocator":")" + allocator + R"(","gpus":[{"index":0,"instances":[
      {"profile":"3g.20gb","start":4,"uuid":"MIG-a"},{"profile":"1g.5gb","start":1,"uuid":"MIG-b"},
      {"profile":"1g.5gb","start":2}]}]})";
  };
  node.annotation = said("berth");
  const DecodedNode decoded = Decode(node);
  EXPECT_EQ(decoded.problem, "");
  const MigSpec& spec = *decoded.spec.mig;
  EXPECT_EQ(spec.FindNamed("MIG-a"), test::AGrant(0, "3g.20gb", 4));
  EXPECT_EQ(spec.FindNamed("MIG-b"), test::AGrant(0, "1g.5gb", 1));
  EXPECT_EQ(spec.FindNamed(""), std::nullopt);
  MigLibrary library;
  const auto again = ReadMig(MigJson(spec), "mig", "", library);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(MigJson(*again), MigJson(spec));
  EXPECT_EQ(again->FindNamed("MIG-a"), spec.FindNamed("MIG-a"));

  const MigSet b = test::SetOf(*spec.product, {{"1g.5gb", 1}});
  NodeSpec sick = decoded.spec;
  EXPECT_EQ(CloseUnwell("MIG-b,MIG-of-another-time", sick), "");
  EXPECT_EQ(sick.mig->gpus[0].offered & sick.mig->gpus[0].instances, spec.gpus[0].instances & ~b);
  node.annotation = said("first-fit");
  sick = Decode(node).spec;
  EXPECT_EQ(CloseUnwell("MIG-b", sick), "");
  EXPECT_EQ(sick, Decode(node).spec) << "the kubelet offers that one no more, and picks another";
  for (const std::string& instance :
       {std::string(R"({"profile":"1g.5gb","count":2,"uuid":"MIG-b"})"),
        R"({"profile":"1g.5gb","start":1,"uuid":")" + std::string(65, 'x') + "\"}"}) {
    node.annotation = R"({"gpus":[{"index":0,"instances":[)" + instance + "]}]}";
    EXPECT_NE(Decode(node).problem, "") << instance;
  }
}

TEST(NodeMig, AnotherAgentMakesTheDevicesOnlyIfItIsNamed) {
  ANodeObject node = Mixed({{"nvidia.com/mig-1g.5gb", "56"}});
  const auto spec_with = [&node](const std::string& dialect) {
    node.annotation = R"({"partitioning":"dynamic","gpus":[{"index":0,"uuid":"GPU-a"}])" +
                      (dialect.empty() ? "" : ",\"dialect\":\"" + dialect + "\"") + "}";
    return *Decode(node).spec.mig;
  };
  for (const std::string own : {"", "berth"}) {
    EXPECT_TRUE(spec_with(own).takes_names()) << own;
    EXPECT_FALSE(MigJson(spec_with(own)).contains("dialect")) << own;
  }
  EXPECT_EQ(spec_with("hami").agent, "hami");
  EXPECT_FALSE(spec_with("hami").takes_names()) << "such agents serve no resource of a profile";
  EXPECT_EQ(MigJson(spec_with("hami"))["dialect"], "hami");
}

TEST(NodeMig, OffersNoMoreInstancesThanAreAllocatable) {
  ANodeObject node = Mixed({{"nvidia.com/mig-1g.5gb", "2"}});
  node.annotation = R"({"gpus":[{"index":0,"instances":[{"profile":"1g.5gb","count":3}]}]})";
  EXPECT_EQ(std::popcount(Decode(node).spec.mig->gpus[0].instances), 2);
}

TEST(MigJson, RefusesToOfferWhatTheProductDoesNotHave) {
  MigLibrary library;
  for (const auto& [offered, got] : std::vector<std::pair<Json, std::string>>{
           {{{"profile", "9g.99gb"}, {"start", 0}}, "9g.99gb at 0"},
           {{{"profile", "3g.20gb"}, {"start", 1}}, "3g.20gb at 1"},
           {{{"profile", "9g.99gb"}}, "9g.99gb at -1"}}) {
    const Json gpu = {{"index", 0}, {"offered", Json::array({offered})}};
    const auto read = ReadMig({{"product", "A100-40GB"},
                               {"partitioning", "dynamic"},
                               {"allocator", "kube-scheduler"},
                               {"gpus", Json::array({gpu})}},
                              "mig", "", library);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().message,
              "mig.gpus[0].offered: want profiles of A100-40GB, each with a start or at all of "
              "them, got " +
                  got);
  }
}

TEST(MigJson, ReadsBackWhatItWrites) {
  MigLibrary library;
  MigSpec shared = test::StaticMig(2, test::kBalanced);
  shared.shared = {{{test::ProfileOf("1g.5gb"), true}, 7}};
  shared.trouble = MigTrouble::kStale;
  MigSpec single;
  single.knowledge = MigKnowledge::kExact;
  single.single = test::ProfileOf("1g.5gb");
  single.single_memory_mib = 4864;
  MigSpec unknown = *Decode([] {
                       ANodeObject node = Mixed({{"nvidia.com/mig-9g.99gb", "2"}});
                       node.labels["nvidia.com/gpu.product"] = "X";
                       return node;
                     }())
                         .spec.mig;
  unknown.product = library.Keep(MigProduct(*unknown.product));
  MigSpec by_claims = test::MigByClaims(3);
  std::swap(by_claims.gpus[0], by_claims.gpus[2]);  // in kube-scheduler's order
  by_claims.gpus[1].offered =
      test::SetOf(*by_claims.product, {{"3g.20gb", 0}, {"3g.20gb", 4}, {"1g.5gb", 2}});
  by_claims.gpus[2].offered = 0;
  for (const MigSpec& spec : {test::DynamicMig(3), shared, single, unknown, by_claims}) {
    const Json json = MigJson(spec);
    const auto read = ReadMig(json, "mig", "", library);
    ASSERT_TRUE(read) << read.error().message << json;
    EXPECT_EQ(MigJson(*read), json);
    EXPECT_TRUE(read->gpus == spec.gpus && read->shared == spec.shared &&
                read->trouble == spec.trouble && read->single == spec.single &&
                read->dynamic == spec.dynamic && read->knowledge == spec.knowledge &&
                read->allocator == spec.allocator)
        << json;
    EXPECT_TRUE(spec.product == nullptr || read->product->name() == spec.product->name()) << json;
  }
}

}  // namespace
}  // namespace berth::wire::node_mig_test
