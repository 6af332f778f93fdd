// SPDX-License-Identifier: Apache-2.0
//
// Where the links of a node are read: annotations and labels as their writers write them.

#include <gtest/gtest.h>

#include <string>

#include "server/dialects/hami/hami_dialect.h"
#include "server/wire/file/cluster_file.h"
#include "server/wire/node/node_json.h"
#include "server/wire/node/topology_json.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"
#include "test/support/wirings.h"

namespace berth::wire::node_links_test {
namespace {

using dialects::kHamiRegisterAnnotation;
using dialects::kHamiScoreAnnotation;
using dialects::ParseHamiLinks;
using test::Json;
using test::ReadNode;

constexpr std::string_view kScores = kHamiScoreAnnotation, kRegister = kHamiRegisterAnnotation;

// Four GPUs in no order; 0 and 3 are joined by two NVLinks.
const char* const kHamiScores = R"([{"uuid":"GPU-c","score":{"GPU-a":20,"GPU-b":10,"GPU-d":50}},)"
                                R"({"uuid":"GPU-a","score":{"GPU-b":10,"GPU-c":20,"GPU-d":210}},)"
                                R"({"uuid":"GPU-d","score":{"GPU-a":210,"GPU-b":10,"GPU-c":50}},)"
                                R"({"uuid":"GPU-b","score":{"GPU-a":10,"GPU-c":10,"GPU-d":10}}])";
const char* const kHamiRegister =
    R"([{"id":"GPU-d","index":3,"count":1,"devmem":81559,"devcore":100,)"
    R"("type":"NVIDIA-NVIDIA H100 80GB HBM3","mode":"hami-core","health":true},)"
    R"({"id":"GPU-a","count":1,"devmem":81559,"devcore":100,"health":true},)"
    R"({"id":"GPU-b","index":1,"count":1,"numa":1},{"id":"GPU-c","index":2,"count":1}])";

std::string DgxAnnotation() { return *TopologyAnnotation(test::Dgx1V()); }

// The annotations' texts; empty = not there.
struct LinkTexts {
  std::string topology;
  std::string hami_scores;
  std::string hami_register;
};

NodeLinks Read(const LinkTexts& texts, int gpus, const std::string& product = "") {
  const std::map<std::string, std::string, std::less<>> annotations = {
      {std::string(kTopologyAnnotation), texts.topology},
      {std::string(kHamiScoreAnnotation), texts.hami_scores},
      {std::string(kHamiRegisterAnnotation), texts.hami_register}};
  const Labels labels;
  const auto all = test::AllDialects();
  MigLibrary mig;
  NodeReadings readings;
  const std::map<std::string, std::string, std::less<>> conditions;
  for (const Dialect& dialect : *all) {
    if (auto reading = dialect.ReadNode({labels, product, annotations, mig, {}, 0, conditions})) {
      readings.push_back(std::move(reading));
    }
  }
  LinkLibrary library;
  return ReadNodeLinks(readings, product, gpus, library);
}

Json KubeNode(const Json& annotations, const std::string& product, int gpus) {
  return {{"metadata",
           {{"name", "n1"},
            {"labels", {{"nvidia.com/gpu.product", product}}},
            {"annotations", annotations}}},
          {"status", {{"allocatable", {{"nvidia.com/gpu", std::to_string(gpus)}}}}}};
}

TEST(NodeLinks, OurAnnotationComesFirst) {
  const NodeLinks found =
      Read({DgxAnnotation(), kHamiScores, kHamiRegister}, 8, "NVIDIA-H100-80GB-HBM3");
  EXPECT_EQ(found.problem, "");
  ASSERT_TRUE(found.links.known());
  EXPECT_EQ(found.links.origin().name, "berth.dev/topology");
  EXPECT_EQ(found.links.Between(0, 3), 50'000);
}

TEST(NodeLinks, HamisScoresAreReadInTheOrderOfItsRegister) {
  const NodeLinks found = Read({"", kHamiScores, kHamiRegister}, 4);
  EXPECT_EQ(found.problem, "");
  ASSERT_TRUE(found.links.known());
  EXPECT_EQ(found.links.origin().name, "hami.io/node-nvidia-score");
  EXPECT_EQ(found.uuids, (std::vector<std::string>{"GPU-a", "GPU-b", "GPU-c", "GPU-d"}));
  const LinkMatrix& matrix = found.links.matrix();
  EXPECT_EQ(matrix.link(0, 3), (Link{LinkType::kSys, LinkType::kNvlink, 2}));
  EXPECT_EQ(matrix.link(2, 3), (Link{LinkType::kPix, {}, 0}));
  EXPECT_EQ(matrix.link(0, 2), (Link{LinkType::kNode, {}, 0}));
  EXPECT_EQ(matrix.numa_affinity, (std::vector<std::string>{"0", "1", "0", "0"}));
}

TEST(NodeLinks, WhatCannotBeReadIsToldAndTheNextSourceTaken) {
  const LinkTexts both = {R"({"version":2})", kHamiScores, kHamiRegister};
  NodeLinks found = Read(both, 4);
  EXPECT_EQ(found.problem, "annotation berth.dev/topology: version: want 1, got 2");
  EXPECT_EQ(found.links.origin().name, "hami.io/node-nvidia-score");

  found = Read({DgxAnnotation(), "", ""}, 7);
  EXPECT_EQ(found.problem, "annotation berth.dev/topology: want the node's 7 GPUs, got 8");
  EXPECT_FALSE(found.links.known());

  found = Read({"{", "[]", "[]"}, 8, "NVIDIA-H100-80GB-HBM3");
  EXPECT_EQ(found.problem,
            "annotation berth.dev/topology: want JSON, got something else; "
            "annotation hami.io/node-nvidia-score: want at least one GPU, got none");
  EXPECT_EQ(found.links.origin().name, "product catalogue");
}

TEST(NodeLinks, OfTheNodeItselfOverrideTheCatalogues) {
  const std::string product = "NVIDIA-H100-80GB-HBM3";
  const LinkSource unknown = Read({}, 8, "").links.source();
  const LinkSource catalogue = Read({}, 8, product).links.source();
  const LinkSource node = Read({DgxAnnotation(), "", ""}, 8, product).links.source();
  EXPECT_EQ(unknown, LinkSource::kUnknown);
  EXPECT_GT(catalogue, unknown);
  EXPECT_GT(LinkSource::kObject, catalogue);
  EXPECT_GT(node, LinkSource::kObject);
}

TEST(NodeLinks, ANodeThatSaysNothingIsNotKnown) {
  EXPECT_FALSE(Read({}, 8, "NVIDIA-A100-PCIE-40GB").links.known());
  EXPECT_EQ(Read({}, 8, "NVIDIA-A100-PCIE-40GB").problem, "");
  EXPECT_FALSE(Read({DgxAnnotation(), "", ""}, 0).links.known());
}

TEST(NodeLinks, ErrorsOfHamisAnnotationsNameThePlace) {
  const auto error = [](const std::string& scores, const std::string& registered) {
    const auto links = ParseHamiLinks(scores, Json::parse(registered, nullptr, false));
    return links ? "" : links.error().message;
  };
  const std::string reg = std::string(kRegister);
  EXPECT_EQ(error(kHamiScores, ""), reg + ": want a JSON list of at most 64 GPUs");
  EXPECT_EQ(error(kHamiScores, "GPU-a,10,46068,100,NVIDIA-A10,0,true:"),
            reg + ": want a JSON list of at most 64 GPUs");
  EXPECT_EQ(error(kHamiScores, R"([{"index":0}])"), reg + "[0].id: want a UUID");
  EXPECT_EQ(error(kHamiScores, R"([{"id":"a"},{"id":"b"}])"),
            reg + "[1].index: want each of 0..1 once");
  EXPECT_EQ(error(kHamiScores, R"([{"id":"a"},{"id":"a","index":1}])"),
            reg + "[1].id: is there twice");
  EXPECT_EQ(error(kHamiScores, R"([{"id":"a"}])"),
            "want the 1 GPUs of hami.io/node-nvidia-register, got 4");
  const std::string two = R"([{"id":"a"},{"id":"b","index":1}])";
  EXPECT_EQ(error(R"([{"uuid":"a","score":{"b":10}},{"uuid":"c","score":{"a":10}}])", two),
            "[1].uuid: want each of the GPUs of hami.io/node-nvidia-register once");
  EXPECT_EQ(error(R"([{"uuid":"a","score":{"b":7}},{"uuid":"b","score":{"a":7}}])", two),
            "[0].score.b: want a PCIe relation of 0..60 in tens and 100 per NVLink");
  EXPECT_EQ(error(R"([{"uuid":"a","score":{}},{"uuid":"b","score":{"a":10}}])", two),
            "[0].score.b: want a PCIe relation of 0..60 in tens and 100 per NVLink");
  EXPECT_EQ(error(R"([{"uuid":"a","score":[]},{"uuid":"b","score":{"a":10}}])", two),
            "[0].score: want an object");
  EXPECT_NE(error(R"([{"uuid":"a","score":{"b":10}},{"uuid":"b","score":{"a":20}}])", two), "");
  EXPECT_EQ(error(R"([{"uuid":"a","score":{"b":10}},{"uuid":"b","score":{"a":10}}])", two), "");
  EXPECT_EQ(error(R"([{"uuid":"a","score":{"b":0}},{"uuid":"b","score":{"a":0}}])", two), "")
      << "a pair that HAMi could not score";
}

TEST(NodeLinks, ComeWithTheNodeObject) {
  const DecodedNode ours = ReadNode(
      KubeNode({{"berth.dev/topology", DgxAnnotation()}, {"other", "x"}}, "Tesla-V100", 8));
  EXPECT_EQ(ours.problem, "");
  ASSERT_TRUE(ours.spec.links.known());
  EXPECT_EQ(ours.spec.links.Ring(0b1001), 50'000);

  const DecodedNode hami = ReadNode(
      KubeNode({{std::string(kScores), kHamiScores}, {std::string(kRegister), kHamiRegister}},
               "NVIDIA-H100-PCIe", 4));
  ASSERT_TRUE(hami.spec.links.known());
  EXPECT_EQ(hami.spec.gpus.at(3).uuid, "GPU-d");
  EXPECT_TRUE(hami.spec.places.foreign) << "HAMi's scheduler gives them";

  const DecodedNode broken =
      ReadNode(KubeNode({{"berth.dev/topology", "NV12 NV12"}}, "NVIDIA-H100-PCIe", 4));
  EXPECT_EQ(broken.problem, "annotation berth.dev/topology: want JSON, got something else");
  EXPECT_EQ(broken.spec.gpus.size(), 4u) << "the node stays usable";
  EXPECT_FALSE(broken.spec.links.known());

  EXPECT_TRUE(ReadNode(KubeNode(Json::object(), "NVIDIA-H200", 8)).spec.links.known());
}

TEST(NodeLinks, OfOneWiringAreSharedByItsNodes) {
  const NodeRules rules(DefaultConfig(), test::AllDialects());
  const Json node = KubeNode({{"berth.dev/topology", DgxAnnotation()}}, "", 8);
  const auto first = DecodeNode(test::Padded(node.dump()), rules);
  const auto second = DecodeNode(test::Padded(node.dump()), rules);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(&first->spec.links.matrix(), &second->spec.links.matrix());
}

TEST(NodeLinks, AreKeptInTheClusterFile) {
  NodeSpec spec = test::MachineWith("n1", 8);
  spec.links = test::LinksOf(test::BridgedCards());
  test::TestService service({spec, test::MachineWith("n2", 8)});
  const std::string text = EncodeCluster(service.state().Everything());
  const NodeRules rules(DefaultConfig(), test::AllDialects());
  const auto file = DecodeCluster(text, rules);
  ASSERT_TRUE(file) << file.error().message;
  ClusterState copy;
  ASSERT_TRUE(copy.Apply(file->events));
  EXPECT_EQ(*copy.Current(), *service.state().Current());
  EXPECT_EQ(copy.Current()->node(0).spec().links, spec.links);
  EXPECT_FALSE(copy.Current()->node(1).spec().links.known());
}

TEST(NodeLinks, OfAClusterFileAreReadStrictly) {
  const NodeRules rules(DefaultConfig(), test::AllDialects());
  const auto error = [&rules](const std::string& topology) {
    const auto read = DecodeCluster(
        R"({"version":1,"nodes":[{"name":"n1","gpus":2,"topology":)" + topology + "}]}", rules);
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(error(R"({"gpus":2,"nvlinks":[[0,4],[4,0]]})"), "");
  EXPECT_EQ(error(R"({"gpus":2})"), "nodes[0].topology: want pcie or nvlinks");
  EXPECT_EQ(error(R"({"gpus":1,"nvlinks":[[0]]})"), "nodes[0].links: want those of 2 GPUs, got 1");
  EXPECT_EQ(error(R"("NV4")"), "nodes[0].topology: want an object, got string");
}

TEST(NodeLinks, ThatANodeListDoesWithoutAreTold) {
  const Json list = {{"kind", "NodeList"},
                     {"items", Json::array({KubeNode({{"berth.dev/topology", "?"}}, "", 2)})}};
  const auto file = DecodeCluster(list.dump(), NodeRules(DefaultConfig(), test::AllDialects()));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->problems,
            std::vector<std::string>{"node n1: annotation berth.dev/topology: want JSON, got "
                                     "something else"});
}

}  // namespace
}  // namespace berth::wire::node_links_test
