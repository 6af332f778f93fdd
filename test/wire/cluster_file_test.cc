// SPDX-License-Identifier: Apache-2.0
#include "server/wire/file/cluster_file.h"

#include <ostream>

#include <gtest/gtest.h>

#include "cluster/state/cluster_state.h"
#include "server/wire/pod/pod_object.h"
#include "test/support/builders.h"
#include "test/support/dialects.h"
#include "test/support/mig_nodes.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::cluster_file_test {
namespace {

using test::Json;
using test::MachineWith;
using test::PodAsking;
using test::PodWithGpus;
using test::TestService;

Result<std::vector<ClusterEvent>> Decode(const std::string& text) {
  BERTH_TRY(ClusterFile file, DecodeCluster(text, NodeRules(DefaultConfig(), test::AllDialects())));
  return std::move(file.events);
}

Result<ClusterFile> DecodeFile(const std::string& text) {
  return DecodeCluster(text, NodeRules(DefaultConfig(), test::AllDialects()));
}

std::string ErrorOf(const std::string& text) {
  const auto events = Decode(text);
  EXPECT_FALSE(events.has_value()) << text;
  if (events) return "";
  EXPECT_EQ(events.error().code, Errc::kInvalidArgument);
  return events.error().message;
}

// A cluster with one node of two GPUs and one pod that holds one of them; each case breaks it.
Json GoodCluster() {
  return Json::parse(R"({"version":1,
    "nodes":[{"name":"n1","gpu_model":"A100","cpu_milli":4000,"memory_bytes":1000,"ready":true,
              "gpus":[{"uuid":"","memory_mib":100,"healthy":true},
                      {"uuid":"","memory_mib":100,"healthy":true},
                      {"uuid":"","memory_mib":100,"healthy":false}]}],
    "pods":[{"uid":"u1","namespace":"ns","name":"p","state":"bound","node":"n1",
             "cpu_milli":1000,"memory_bytes":10,"ask":{"gpus":1},"models":["A100"],
             "containers":[{"name":"c","ask":{"gpus":1},"ends_first":false}],
             "grants":[{"gpu":0,"milli":1000,"memory_mib":100}]}]})");
}

TEST(ClusterFile, WhatWasLearnedIsReadBackToTheLastBit) {
  LearnedMix mix({100, 10});
  for (int i = 0; i < 57; ++i) {
    RequestShape shape{i % 3 * 500, i * 1000, NoGpu{}, {}};
    if (i % 3 == 1) shape.gpus = WholeGpus{i % 4 + 1};
    if (i % 3 == 2) shape.gpus = GpuShare{i, 0};
    if (i % 5 == 2) shape.models = {"A100", "T4"};
    mix.Observe(shape);
  }
  const LearnedMix::Memory written = mix.Remember();
  const auto file = DecodeFile(EncodeCluster(ClusterState().Everything(), written));
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_TRUE(file->learned);
  EXPECT_EQ(file->learned->pods, 57);
  ASSERT_EQ(file->learned->classes.size(), written.classes.size());
  for (std::size_t i = 0; i < written.classes.size(); ++i) {
    EXPECT_EQ(file->learned->classes[i].shape, written.classes[i].shape);
    EXPECT_EQ(file->learned->classes[i].weight, written.classes[i].weight);
  }
  EXPECT_FALSE(DecodeFile(EncodeCluster(ClusterState().Everything()))->learned);
}

TEST(ClusterFile, WhatWasNotLearnedSoIsRefused) {
  const auto error_of = [](const std::string& learned) {
    const auto file = DecodeFile("{\"version\":1,\"learned_mix\":" + learned + "}");
    return file ? "" : file.error().message;
  };
  EXPECT_EQ(error_of(R"({"pods":1,"classes":[{"pods":1,"cpu_milli":5}]})"), "");
  EXPECT_EQ(error_of("[]"), "learned_mix: want an object, got array");
  EXPECT_EQ(error_of(R"({"pods":-1})").find("learned_mix.pods: want 0.."), 0u);
  EXPECT_EQ(error_of(R"({"classes":[{}]})"), "learned_mix.classes[0].pods: want a number above 0");
  EXPECT_EQ(error_of(R"({"classes":[{"pods":"x"}]})"),
            "learned_mix.classes[0].pods: want a number, got string");
  EXPECT_EQ(error_of(R"({"classes":[{"pods":1,"gpu":1}]})"),
            "learned_mix.classes[0].gpu: unknown key");
}

TEST(ClusterFile, WhatIsWrittenIsReadBackToAnEqualSnapshot) {
  std::vector<NodeSpec> nodes = {MachineWith("n1", 4), MachineWith("n2", 2, "T4"),
                                 MachineWith("cpu-only", 0, ""), MachineWith("broken", 8)};
  nodes[1].gpus[0].uuid = "GPU-\"1\"";
  nodes[1].gpus[1].healthy = false;
  nodes[3].ready = false;
  TestService service(nodes);
  ASSERT_EQ(service.Place(PodWithGpus("whole", 3), "n1"), "");
  ASSERT_EQ(service.Place(PodAsking("share", {{"berth.dev/gpu-milli", "300"}}), "n2"), "");
  ASSERT_EQ(service.Place(PodAsking("memory", {{"berth.dev/gpu-memory-mib", "100"}}), "n2"), "");
  ASSERT_EQ(service.Place(PodAsking("plain", {{"cpu", "1500m"}, {"memory", "1Gi"}}), "cpu-only"),
            "");
  Json chosen = PodWithGpus("chosen", 1);
  chosen["metadata"]["annotations"]["berth.dev/gpu-model"] = "A100|T4";
  ASSERT_EQ(service.Place(chosen, "n1"), "");

  const std::string text = EncodeCluster(service.state().Everything());
  const auto events = Decode(text);
  ASSERT_TRUE(events) << events.error().message;
  ClusterState copy;
  ASSERT_TRUE(copy.Apply(*events));
  EXPECT_EQ(*copy.Current(), *service.state().Current());
  EXPECT_EQ(EncodeCluster(copy.Everything()), text);
  const auto pod = copy.FindPod("chosen");
  ASSERT_TRUE(pod);
  EXPECT_EQ(pod->pod.shape, service.state().FindPod("chosen")->pod.shape);
  EXPECT_EQ(pod->placement, service.state().FindPod("chosen")->placement);
  EXPECT_EQ(pod->state, PodState::kBound);
}

TEST(ClusterFile, DiskComesBackAndWhereNothingIsSaidOfItItIsNotTracked) {
  std::vector<NodeSpec> nodes = {MachineWith("n1", 4), MachineWith("n2", 4)};
  nodes[0].ephemeral_bytes = std::int64_t{100} << 30;
  TestService service(nodes);
  const Json asks = {{"ephemeral-storage", "60Gi"}, {"nvidia.com/gpu", "1"}};
  ASSERT_EQ(service.Place(PodAsking("a", asks), "n1"), "");
  ASSERT_EQ(service.Place(PodAsking("b", asks), "n2"), "");
  const std::string text = EncodeCluster(service.state().Everything());
  const auto events = Decode(text);
  ASSERT_TRUE(events) << events.error().message;
  ClusterState copy;
  ASSERT_TRUE(copy.Apply(*events));
  EXPECT_EQ(*copy.Current(), *service.state().Current());
  EXPECT_EQ(EncodeCluster(copy.Everything()), text);
  const auto free = [&](NodeIndex node) {
    return copy.Current()->node(node).free_ephemeral_bytes();
  };
  EXPECT_EQ(free(0), std::int64_t{40} << 30);
  EXPECT_EQ(free(1), Node::kNotTracked);
  EXPECT_EQ(copy.FindPod("b")->pod.shape.ephemeral_bytes, std::int64_t{60} << 30);
}

TEST(ClusterFile, PlacesAndMissingGpusAndResourcesComeBack) {
  NodeSpec shared = MachineWith("shared", 0, "T4");
  shared.places = {16, false, 4, 3840, GpuSharing::kTimeSlicing};
  NodeSpec foreign = MachineWith("foreign", 0, "T4");
  foreign.places = {80, true};
  NodeSpec sick = MachineWith("sick", 8);
  sick.missing = 1;
  sick.gpu_resource = "nvidia.com/gpu";
  NodeSpec pool = MachineWith("pool", 0);
  MigSpec mig = test::StaticMig(2, test::kSevenSmall);
  mig.fixed = true;
  pool.mig = NodeMig(mig);
  TestService service({foreign, pool, shared, sick});
  ASSERT_EQ(service.Place(PodWithGpus("place", 1), "shared"), "");
  ASSERT_EQ(service.Place(PodWithGpus("seven", 7), "sick"), "");
  LearnedMix mix({100, 10});
  RequestShape shape{0, 0, WholeGpus{1}, {}};
  shape.gpu_resource = "amd.com/gpu";
  mix.Observe(shape);
  const std::string text = EncodeCluster(service.state().Everything(), mix.Remember());
  const auto file = DecodeFile(text);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->learned->classes.at(0).shape, shape);
  ClusterState copy;
  ASSERT_TRUE(copy.Apply(file->events));
  EXPECT_EQ(*copy.Current(), *service.state().Current());
  EXPECT_EQ(copy.FindPod("place")->placement.places, 1);
  EXPECT_EQ(EncodeCluster(copy.Everything(), mix.Remember()), text);
}

TEST(ClusterFile, AgentsThatHandOutPartsOfGpusComeBack) {
  NodeSpec spec;
  spec.name = "n1";
  spec.gpus = {{"GPU-a", 40'960, true, 10}, {"", 40'960, true}};
  spec.share_agent = "hami";
  spec.agent_serves_all = true;
  spec.share_isolation = Isolation::kMemory;
  PodRequest pod;
  pod.id = {"u", "ns", "p"};
  pod.shape.gpus = GpuShare{300, 0};
  pod.shape.share_agent = "hami";
  pod.shape.spread = Spread::kCard;
  pod.shape.share_mode = ShareMode::kSmSharing;
  pod.shape.workload = "ns/rs-1";
  Placement known{"n1", 0, 0, {{0, 300, 12'288}}};
  Placement named = known;  // the node may yet say its UUIDs
  named.grants = {{.gpu = DeviceGrant::kUnknown, .milli = 300, .memory_mib = 9, .uuid = "GPU-b"}};
  PodRequest other = pod;
  other.id.uid = "v";
  ClusterState written;
  ASSERT_TRUE(written.Apply(
      std::vector<ClusterEvent>{NodeUpserted{spec}, PodBound{pod, known}, PodBound{other, named}}));
  const auto events = Decode(EncodeCluster(written.Everything()));
  ASSERT_TRUE(events) << events.error().message;
  ClusterState read;
  ASSERT_TRUE(read.Apply(*events));
  EXPECT_EQ(read.Current()->node(0), written.Current()->node(0));
  EXPECT_EQ(read.FindPod("u")->pod.shape, pod.shape);
  EXPECT_EQ(read.FindPod("v")->placement, named);
}

TEST(ClusterFile, ReservationsAreShownButNotRestored) {
  TestService service({MachineWith("n1", 4)});
  PodRequest pod;
  pod.id = {"r", "ns", "r"};
  pod.shape.gpus = WholeGpus{1};
  const Placement placement{"n1", 0, 0, {{0, 1000, 80'000}}};
  ASSERT_TRUE(service.state().Reserve(pod, placement, Instant()));
  const std::string text = EncodeCluster(service.state().Everything());
  EXPECT_EQ(Json::parse(text)["pods"][0]["state"], "reserved");
  const auto events = Decode(text);
  ASSERT_TRUE(events);
  EXPECT_EQ(events->size(), 1u);
}

TEST(ClusterFile, WhatPreemptionNeedsIsReadBack) {
  NodeSpec node = MachineWith("n1", 2);
  node.labels = {{"zone", "a"}};
  node.taints = {{"gpu", "yes", TaintEffect::kNoExecute}, {"x", "", TaintEffect::kNoSchedule}};
  ClusterState state, copy;
  PodRequest pod;
  pod.id = {"u", "ns", "p"};
  pod.shape.gpus = WholeGpus{1};
  pod.priority = -5;
  pod.keep = true;
  pod.gang.id = GangId::Of("labels:ns/g");
  pod.labels = std::make_shared<const Labels>(Labels{{"app", "web"}});
  ASSERT_TRUE(state.Apply(std::vector<ClusterEvent>{
      NodeUpserted{node}, PodBound{pod, {"n1", 0, 0, {{1, 1000, 80'000}}}}}));
  const std::string text = EncodeCluster(state.Everything());
  ASSERT_TRUE(copy.Apply(Decode(text).value()));
  EXPECT_EQ(*copy.Current(), *state.Current());
  const auto read = copy.FindPod("u");
  EXPECT_EQ(read->pod.priority, -5);
  EXPECT_TRUE(read->pod.keep);
  EXPECT_EQ(read->pod.gang.id, pod.gang.id);
  EXPECT_EQ(*read->pod.labels, *pod.labels);
  EXPECT_EQ(EncodeCluster(copy.Everything()), text);
}

TEST(ClusterFile, WhatClaimsHoldComesBack) {
  ClusterState state, copy;
  const ClaimedGpu part{"ns/c", "gpu-1-mig-1g5gb-19-6", "GPU-x", 1, "1g.5gb", 6};
  ASSERT_TRUE(state.Apply(
      std::vector<ClusterEvent>{NodeUpserted{MachineWith("n1", 2)},
                                GpusClaimed{"n1", {part, {"ns/d", "x", "", -1, "", -1}}}}));
  const std::string text = EncodeCluster(state.Everything());
  const auto events = Decode(text);
  ASSERT_TRUE(events) << events.error().message;
  ASSERT_TRUE(copy.Apply(*events));
  EXPECT_EQ(copy.Current()->node(0).free_gpu_milli(), 1000);
  EXPECT_EQ(EncodeCluster(copy.Everything()), text);
}

TEST(ClusterFile, WhatPodsGetByClaimsComesBack) {
  ClusterState state, copy;
  ASSERT_TRUE(state.Apply(std::vector<ClusterEvent>{
      NodeUpserted{MachineWith("n1", 0)}, GpusOffered{"n1", NodeMig(test::MigByClaims(1))},
      GpusClaimed{"n1", {{"ns/c", "x", "", 0, "3g.20gb", 4}}}}));
  const std::string text = EncodeCluster(state.Everything());
  const auto events = Decode(text);
  ASSERT_TRUE(events) << events.error().message;
  ASSERT_TRUE(copy.Apply(*events));
  EXPECT_EQ(*copy.Current(), *state.Current());
  EXPECT_TRUE(copy.Current()->node(0).spec().mig->by_claims());
  EXPECT_EQ(EncodeCluster(copy.Everything()), text);
}

TEST(ClusterFile, GpusOfSlicesComeBackWithWhatTheirClaimsHold) {
  ClusterState state, copy;
  SliceGpus gpus;
  gpus.model = "A100";
  for (const char* const uuid : {"GPU-a", "GPU-b", "GPU-c"}) {
    gpus.gpus.push_back({.uuid = uuid, .memory_mib = 80'000});
  }
  gpus.names = {{"example.com/gpu", {2, 0, 1}}};
  const PodRequest pod = test::APod("p").Whole(1).Request(),
                   past = test::APod("q").Whole(1).Request();
  ASSERT_TRUE(state.Apply(std::vector<ClusterEvent>{
      NodeUpserted{MachineWith("n1", 0)}, SliceGpusOffered{"n1", gpus},
      GpusClaimed{"n1", {{"default/c", "gpu-1", "GPU-b", 1, "", -1, pod.id.uid}}},
      PodBound{pod, {"n1", 0, 0, {}}, true}, PodBound{past, {"n1", 0, 0, {{2, 1000, 80'000}}}}}));
  EXPECT_EQ(state.FindPod(pod.id.uid)->placement.grants.front().gpu, 1);
  const std::string text = EncodeCluster(state.Everything());
  const auto events = Decode(text);
  ASSERT_TRUE(events) << events.error().message;
  ASSERT_TRUE(copy.Apply(*events));
  EXPECT_EQ(*copy.Current(), *state.Current());
  EXPECT_EQ(copy.Current()->node(0).free_gpu_milli(), 1000);
  EXPECT_EQ(EncodeCluster(copy.Everything()), text);
  EXPECT_FALSE(Decode(R"({"version": 1, "nodes": [{"name": "n", "gpus": 1, "by_claims":
      [{"resource": "x/y", "order": [1]}]}]})"))
      << "it has no such GPU";
}

TEST(ClusterFile, YamlIsReadAsWell) {
  const auto one = Decode("version: 1\nnodes:\n- {name: n1, gpus: 4}\n");
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->size(), 1U);
  const auto several = Decode(R"(
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, nvidia.com/gpu: "2"}}
---
kind: Node
metadata: {name: n2}
status: {allocatable: {cpu: "4", memory: 8Gi}}
)");
  ASSERT_TRUE(several) << several.error().message;
  ASSERT_EQ(several->size(), 2U);
  EXPECT_EQ(std::get<NodeUpserted>(several->front()).spec.gpus.size(), 2U);
}

TEST(ClusterFile, WhyANodeGetsNoPodsWithGpusComesBack) {
  ClusterState state, copy;
  NodeSpec node = MachineWith("n1", 2);
  node.gpu_condition = "XIDErrors=True";
  node.named_gpus_condition = "GpuMemWatch=True";
  const auto asks = std::make_shared<const std::vector<RefusedAsk>>(std::vector<RefusedAsk>{
      {WholeGpus{2}, {WholeGpus{2}}, 1000, 5, 7, {{"rdma/hca", 3}}},
      {test::MigWith(1, 5000, 2), {test::MigWith(1, 5000), test::MigWith(1, 5000)}, 0, 0}});
  ASSERT_TRUE(
      state.Apply(std::vector<ClusterEvent>{NodeUpserted{node}, GpuPodsRefused{"n1", true, asks}}));
  const std::string text = EncodeCluster(state.Everything());
  const auto events = Decode(text);
  ASSERT_TRUE(events) << events.error().message;
  ASSERT_TRUE(copy.Apply(*events));
  const NodeSpec& spec = copy.Current()->node(0).spec();
  EXPECT_TRUE(spec.refuses_gpu_pods);
  ASSERT_NE(spec.refused_asks, nullptr);
  EXPECT_EQ(*spec.refused_asks, *asks);
  EXPECT_EQ(spec.gpu_condition, "XIDErrors=True");
  EXPECT_EQ(spec.named_gpus_condition, "GpuMemWatch=True");
  EXPECT_EQ(EncodeCluster(copy.Everything()), text);
}

TEST(ClusterFile, WhatWasObservedIsTakenAsItIs) {
  ClusterState state, copy;
  const auto bound = [](const std::string& uid, const std::string& node,
                        std::vector<DeviceGrant> grants) {
    PodRequest pod;
    pod.id = {uid, "ns", uid};
    pod.shape.gpus = WholeGpus{1};
    return PodBound{pod, {node, 100'000, 0, std::move(grants)}};
  };
  ASSERT_TRUE(state.Apply(std::vector<ClusterEvent>{
      NodeUpserted{MachineWith("n1", 2)}, bound("a", "n1", {{0, 1000, 80'000}}),
      bound("b", "n1", {{0, 1000, 80'000}}), bound("past-berth", "n1", {}),
      bound("no-such-gpu", "n1", {{7, 1000, 80'000}}), bound("early", "n2", {})}));
  EXPECT_EQ(state.Current()->CountUnattributed(), 2u) << "one, and one on a GPU that is not there";
  const std::string text = EncodeCluster(state.Everything());
  const auto events = Decode(text);
  ASSERT_TRUE(events) << events.error().message;
  ASSERT_TRUE(copy.Apply(*events));
  EXPECT_EQ(*copy.Current(), *state.Current());
  EXPECT_EQ(EncodeCluster(copy.Everything()), text);
}

TEST(ClusterFile, AFileWrittenByHandNeedsLittle) {
  const auto events = Decode(R"({"version": 1, "nodes": [
    {"name": "n1", "gpus": 8, "gpu_memory_mib": 81920, "cpu_milli": 96000, "memory_bytes": 1024},
    {"name": "n2", "gpu_model": "T4", "gpus": 1},
    {"name": "n3"}]})");
  ASSERT_TRUE(events) << events.error().message;
  const auto spec = [&](std::size_t i) { return std::get<NodeUpserted>((*events)[i]).spec; };
  ASSERT_EQ(events->size(), 3u);
  EXPECT_EQ(spec(0).gpus, std::vector<GpuSpec>(8, GpuSpec{"", 81'920, true}));
  EXPECT_EQ(spec(0).cpu_milli, 96'000);
  EXPECT_EQ(spec(1).gpus, std::vector<GpuSpec>(1, GpuSpec{"", 15'109, true}));
  EXPECT_TRUE(spec(2).gpus.empty());
  EXPECT_TRUE(spec(2).ready);
}

TEST(ClusterFile, AnEmptyClusterIsACluster) {
  EXPECT_EQ(Decode(R"({"version":1})")->size(), 0u);
  EXPECT_EQ(Decode(R"({"version":1,"nodes":[],"pods":null})")->size(), 0u);
}

TEST(ClusterFile, TheGoodClusterOfTheseTestsIsGood) {
  const auto events = Decode(GoodCluster().dump());
  ASSERT_TRUE(events) << events.error().message;
  EXPECT_EQ(events->size(), 2u);
}

struct BadFile {
  const char* description;
  const char* pointer;  // what is replaced in the good cluster
  const char* value;
  const char* start;  // of the message
};

// Names of tests must not change from run to run, as printed pointers would.
void PrintTo(const BadFile& file, std::ostream* out) { *out << file.description; }

class BadClusterFile : public testing::TestWithParam<BadFile> {};

TEST_P(BadClusterFile, IsRefusedWithThePath) {
  Json cluster = GoodCluster();
  cluster[Json::json_pointer(GetParam().pointer)] = Json::parse(GetParam().value);
  const std::string message = ErrorOf(cluster.dump());
  EXPECT_TRUE(message.starts_with(GetParam().start)) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

constexpr BadFile kBadFiles[] = {
    {"UnknownKey", "/nodez", "[]", "nodez: unknown key"},
    {"UnknownKeyOfANode", "/nodes/0/gpu", "1", "nodes[0].gpu: unknown key"},
    {"UnknownKeyOfAGpu", "/nodes/0/gpus/1/mem", "1", "nodes[0].gpus[1].mem: unknown key"},
    {"UnknownKeyOfAPod", "/pods/0/x", "1", "pods[0].x: unknown key"},
    {"UnknownKeyOfAnAsk", "/pods/0/ask/x", "1", "pods[0].ask.x: unknown key"},
    {"UnknownKeyOfAContainer", "/pods/0/containers/0/x", "1", "pods[0].containers[0].x: unknown"},
    {"UnknownKeyOfAGrant", "/pods/0/grants/0/x", "1", "pods[0].grants[0].x: unknown key"},
    {"AnotherVersion", "/version", "2", "version: want 1..1, got 2"},
    {"VersionAsText", "/version", "\"1\"", "version: want an integer, got string"},
    {"NoVersion", "/version", "null", "version: want 1, got none"},
    {"NodesNoList", "/nodes", "{}", "nodes: want a list, got object"},
    {"NodeNoObject", "/nodes/0", "7", "nodes[0]: want an object"},
    {"NameNoText", "/nodes/0/name", "7", "nodes[0].name: want a text, got number"},
    {"NameNone", "/nodes/0/name", "\"\"", "nodes[0].name: want a DNS-1123 name"},
    {"NameNoDns", "/nodes/0/name", "\"A b\"", "nodes[0].name: want a DNS-1123 name"},
    {"NegativeCpu", "/nodes/0/cpu_milli", "-1", "nodes[0].cpu_milli: want 0.."},
    {"NegativeMemory", "/nodes/0/memory_bytes", "-1", "nodes[0].memory_bytes: want 0.."},
    {"HugeMemory", "/nodes/0/memory_bytes", "18446744073709551615", "nodes[0].memory_bytes: want"},
    {"FractionOfMemory", "/nodes/0/memory_bytes", "1.5", "nodes[0].memory_bytes: want an integer"},
    {"ReadyNoBool", "/nodes/0/ready", "1", "nodes[0].ready: want true or false, got number"},
    {"NegativeGpuMemory", "/nodes/0/gpus/0/memory_mib", "-1", "nodes[0].gpus[0].memory_mib: want"},
    {"NegativeGpuCount", "/nodes/0/gpus", "-1", "nodes[0].gpus: want 0..64, got -1"},
    {"TooManyGpus", "/nodes/0/gpus", "65", "nodes[0].gpus: want 0..64, got 65"},
    {"HalfAGpu", "/nodes/0/gpus", "0.5", "nodes[0].gpus: want an integer"},
    {"GpusAsText", "/nodes/0/gpus", "\"8\"", "nodes[0].gpus: want a list, got string"},
    {"PodOnAMissingNode", "/pods/0/node", "\"n7\"", "pods[0].node: no node \"n7\""},
    {"PodOnNoNode", "/pods/0/node", "null", "pods[0].node: no node \"\""},
    {"PodWithoutUid", "/pods/0/uid", "\"\"", "pods[0].uid: want a UID"},
    {"PriorityNoNumber", "/pods/0/priority", "\"high\"", "pods[0].priority: want an integer"},
    {"LabelNoText", "/nodes/0/labels", "{\"a\":1}", "nodes[0].labels.a: want a text"},
    {"UnknownEffect", "/nodes/0/taints", "[{\"effect\":\"No\"}]",
     "nodes[0].taints[0].effect: want NoSchedule, NoExecute or PreferNoSchedule, got \"No\""},
    {"ObservedNoBool", "/observed", "1", "observed: want true or false"},
    {"UnknownState", "/pods/0/state", "\"lost\"", "pods[0].state: want bound, reserved or planned"},
    {"ModelNoText", "/pods/0/models/0", "1", "pods[0].models[0]: want a text"},
    {"NegativePodCpu", "/pods/0/cpu_milli", "-5", "pods[0].cpu_milli: want 0.."},
    {"AskAboveOneGpu", "/pods/0/ask", "{\"milli\":1001}", "pods[0].ask.milli: want 0..1000"},
    {"AskNoObject", "/pods/0/ask", "1", "pods[0].ask: want an object, got number"},
    {"GrantOfNoGpu", "/pods/0/grants/0/gpu", "3", "pods[0]: does not fit its node: gpu 3"},
    {"GrantOfABrokenGpu", "/pods/0/grants/0/gpu", "2", "pods[0]: does not fit its node: gpu 2"},
    {"GrantBeforeTheFirst", "/pods/0/grants/0/gpu", "-1", "pods[0].grants[0].gpu: want 0..63"},
    {"GrantAboveOneGpu", "/pods/0/grants/0/milli", "1001", "pods[0].grants[0].milli: want 0..1000"},
    {"GrantAboveTheMemory", "/pods/0/grants/0/memory_mib", "101", "pods[0]: does not fit its node"},
    {"MoreCpuThanThereIs", "/pods/0/cpu_milli", "4001", "pods[0]: does not fit its node: cpu"},
    {"MoreMemoryThanThereIs", "/pods/0/memory_bytes", "1001", "pods[0]: does not fit its node: me"},
    {"GrantsOfOneGpuTwice", "/pods/0/grants",
     "[{\"gpu\":0,\"milli\":600},{\"gpu\":0,\"milli\":600}]", "pods[0].grants[1].gpu: want"},
    {"GrantsOutOfOrder", "/pods/0/grants", "[{\"gpu\":1},{\"gpu\":0}]",
     "pods[0].grants[1].gpu: want"},
};

INSTANTIATE_TEST_SUITE_P(OfEveryKind, BadClusterFile, testing::ValuesIn(kBadFiles),
                         [](const auto& tested) { return tested.param.description; });

TEST(ClusterFile, ANodeThatIsThereTwiceIsRefused) {
  Json cluster = GoodCluster();
  cluster["nodes"].push_back({{"name", "n1"}});
  EXPECT_EQ(ErrorOf(cluster.dump()), "nodes[1].name: node \"n1\" is there twice");
}

TEST(ClusterFile, APodThatIsThereTwiceIsRefused) {
  Json cluster = GoodCluster();
  cluster["pods"].push_back({{"uid", "u1"}, {"node", "n1"}});
  EXPECT_EQ(ErrorOf(cluster.dump()), "pods[1].uid: pod \"u1\" is there twice");
}

TEST(ClusterFile, AGpuGrantedToTwoPodsBeyondWhatItHasIsRefused) {
  Json cluster = GoodCluster();
  Json second = cluster["pods"][0];
  second["uid"] = "u2";
  cluster["pods"].push_back(second);
  EXPECT_EQ(ErrorOf(cluster.dump()),
            "pods[1]: does not fit its node: gpu 0 milli: want 1000, free 0");
}

TEST(ClusterFile, WhatIsNotAClusterIsRefused) {
  EXPECT_EQ(
      ErrorOf(""),
      "file: want JSON or YAML, got an empty file; write it with kubectl get nodes,pods -A -o "
      "json");
  EXPECT_EQ(ErrorOf("apiVersion: v1"), "apiVersion: unknown key");
  EXPECT_EQ(ErrorOf("nodes: [a"), "file:1: not YAML: end of sequence flow not found");
  EXPECT_EQ(
      ErrorOf("{\"version\":1"),
      "file: want JSON or YAML, got JSON that was cut off: it ends at byte 12, within a value");
  EXPECT_EQ(ErrorOf("[]"), "file: want an object");
  EXPECT_EQ(ErrorOf("null"), "file: want an object");
  EXPECT_EQ(ErrorOf("{}"), "version: want 1, got none");
  EXPECT_EQ(ErrorOf(std::string(100'000, '[')),
            "file: want JSON or YAML, got something else: JSON: byte 1000: want fewer levels");
}

TEST(ClusterFile, ANodeListOfKubernetesIsTakenAsWell) {
  for (const char* kind : {"NodeList", "List"}) {
    const auto events = Decode(R"({"apiVersion":"v1","kind":")" + std::string(kind) +
                               R"(","items":[{"kind":"Node","metadata":{"name":"n1"},"status":)"
                               R"({"allocatable":{"cpu":"4","nvidia.com/gpu":"2"}}}]})");
    ASSERT_TRUE(events) << events.error().message;
    ASSERT_EQ(events->size(), 1u);
    EXPECT_EQ(std::get<NodeUpserted>(events->at(0)).spec.gpus.size(), 2u);
  }
}

TEST(ClusterFile, AKubernetesListWithSomethingElseInItIsRefused) {
  EXPECT_EQ(ErrorOf(R"({"kind":"List","items":[{"kind":"Node","metadata":{"name":"n1"}},)"
                    R"({"kind":"Pod","metadata":{"name":"p"}}]})"),
            "items[1].kind: want Node, got \"Pod\"");
  EXPECT_EQ(ErrorOf(R"({"kind":"NodeList","items":[{"metadata":{"name":"n1"}},)"
                    R"({"metadata":{"name":"n1"}}]})"),
            "items[1].metadata.name: node \"n1\" is there twice");
}

// --- nodes and pods, as kubectl lists them

Result<ClusterFile> DecodeList(const Json& items) {
  static const PodRules kPods(test::AllDialects(), DefaultConfig().resources);
  return DecodeCluster(Json{{"kind", "List"}, {"items", items}}.dump(),
                       NodeRules(DefaultConfig(), test::AllDialects()), &kPods);
}

Json ListedNode(const std::string& name) {
  return {{"kind", "Node"},
          {"metadata", {{"name", name}}},
          {"status", {{"allocatable", {{"cpu", "4"}, {"nvidia.com/gpu", "2"}}}}}};
}

Json ListedPod(const std::string& uid, const std::string& node, const std::string& phase) {
  Json pod = PodWithGpus(uid, 1);
  pod["kind"] = "Pod";
  if (!node.empty()) pod["spec"]["nodeName"] = node;
  pod["status"]["phase"] = phase;
  return pod;
}

TEST(ClusterFile, AListOfNodesAndPodsHasThePodsThatHoldSomething) {
  const auto file = DecodeList({ListedPod("1", "n1", "Running"), ListedNode("n1"),
                                ListedPod("2", "", "Pending"), ListedPod("3", "n1", "Succeeded")});
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->events.size(), 2u);
  ClusterState state;
  ASSERT_TRUE(state.Apply(file->events));
  EXPECT_EQ(state.Current()->node(0).pods().size(), 1u);
  EXPECT_EQ(state.Current()->node(0).unattributed(), 1);
}

TEST(ClusterFile, WhatNobodyReadsOfAListIsCountedByKind) {
  Json items = {
      ListedNode("n1"), {{"kind", "Service"}}, {{"kind", "Event"}}, {{"kind", "Service"}}};
  const auto other = DecodeList(items);
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(other->problems, std::vector<std::string>{"not read: 1 Event, 2 Service"});
  for (int i = 0; i < 100; ++i) items.push_back({{"kind", std::string(1000, 'x') + "y"}});
  for (int i = 0; i < 100; ++i) items.push_back({{"kind", "K" + std::to_string(i)}});
  const auto many = DecodeList(items);
  ASSERT_TRUE(many);
  EXPECT_LT(many->problems.at(0).size(), 300U) << "whatever the kinds are called";
}

TEST(ClusterFile, TheBudgetsOfAListAreRead) {
  const Json budget = {{"kind", "PodDisruptionBudget"},
                       {"apiVersion", "policy/v1"},
                       {"metadata", {{"name", "b"}, {"namespace", "ns"}}},
                       {"spec", {{"selector", {{"matchLabels", {{"app", "web"}}}}}}},
                       {"status", {{"disruptionsAllowed", 2}}}};
  Json broken = budget;
  broken["spec"]["selector"]["matchExpressions"] =
      Json::array({{{"key", "a"}, {"operator", "Maybe"}}});
  const auto file = DecodeList({ListedNode("n1"), budget, broken});
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->budgets.size(), 1u);
  EXPECT_EQ(file->budgets[0].name, "b");
  EXPECT_EQ(file->budgets[0].disruptions_allowed, 2);
  ASSERT_EQ(file->problems.size(), 1u) << "one that cannot be read costs nothing else";
  EXPECT_NE(file->problems[0].find("PodDisruptionBudget"), std::string::npos) << file->problems[0];
}

TEST(ClusterFile, ADumpSaysWhereItsPodsMayGo) {
  test::APod pod("p");
  NodeConstraints constraints;
  constraints.selector = {{"zone", LabelOperator::kIn, {"a"}},
                          {"gen", LabelOperator::kDoesNotExist, {}}};
  constraints.either = {
      {{{"disk", LabelOperator::kGreater, {"3"}}}, {{"metadata.name", LabelOperator::kIn, {"n"}}}},
      {}};
  constraints.tolerations = {{"nvidia.com/gpu", TolerationOperator::kExists, "", {}},
                             {"k", TolerationOperator::kEqual, "v", TaintEffect::kNoExecute}};
  constraints.versions.least[1] = {12, 4, 0};
  ClusterState state;
  ASSERT_TRUE(state.Apply(std::vector<ClusterEvent>{
      NodeUpserted{test::ANode("n").Gpus(1).Spec()},
      PodBound{pod.Whole(1).Mobile(Mobility::kMoves).Constrained(constraints).Request(),
               pod.On("n", {0}), true}}));
  const std::string dump = EncodeCluster(state.Everything());
  const auto read = [](const std::string& text) {
    const auto file = DecodeCluster(text, NodeRules(DefaultConfig(), test::AllDialects()));
    EXPECT_TRUE(file) << file.error().message;
    return file ? std::get<PodBound>(file->events.back()).pod : PodRequest();
  };
  ASSERT_NE(read(dump).constraints, nullptr);
  EXPECT_EQ(*read(dump).constraints, constraints);
  EXPECT_EQ(read(dump).mobility, Mobility::kMoves);
  std::string older = dump;
  const std::string mark = R"("has_constraints":true,)";
  older.erase(older.find(mark), mark.size());
  EXPECT_EQ(read(older).mobility, Mobility::kUnknown) << "nobody says where it may go";
}

TEST(ClusterFile, AListInWhichNothingIsReadIsRefused) {
  const auto other = DecodeList(Json::array({{{"kind", "Service"}}}));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message,
            "items: want Nodes and Pods, got none of them; not read: 1 Service");
  EXPECT_TRUE(DecodeList(Json::array())) << "a cluster with nothing in it";
}

TEST(ClusterFile, AnItemWithoutAKindIsNoNode) {
  Json node = ListedNode("n2");
  node.erase("kind");
  for (const Json& items : {Json{ListedNode("n1"), node}, Json{ListedPod("1", "", "Pending"), node},
                            Json{ListedNode("n1"), Json{7}}}) {
    const auto file = DecodeList(items);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().message,
              "items[1].kind: want the kind of the object, such as Node or Pod, got none");
  }
}

TEST(ClusterFile, OtherKindsAreTakenBeforeThePodsWhereSomebodyReadsThem) {
  static const PodRules kPods(test::AllDialects(), DefaultConfig().resources);
  std::vector<std::string> taken;
  const Json items = {ListedPod("1", "n1", "Running"),
                      {{"kind", "DeviceClass"}, {"apiVersion", "resource.k8s.io/v1"}},
                      {{"kind", "DeviceClass"}, {"apiVersion", 7}},
                      {{"kind", "Service"}, {"apiVersion", "v1"}}};
  const auto file =
      DecodeCluster(Json{{"kind", "List"}, {"items", items}}.dump(),
                    NodeRules(DefaultConfig(), test::AllDialects()), &kPods, nullptr,
                    [&taken](std::string_view version, std::string_view kind, const PaddedText&) {
                      if (kind != "DeviceClass") return false;
                      taken.push_back(std::string(version));
                      return true;
                    });
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(taken, std::vector<std::string>{"resource.k8s.io/v1"});
  EXPECT_EQ(file->problems, std::vector<std::string>{"not read: 1 DeviceClass, 1 Service"});
}

TEST(ClusterFile, NoNodeIsThereTwice) {
  const auto twice =
      DecodeList({ListedPod("1", "n1", "Running"), ListedNode("n1"), ListedNode("n1")});
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().message, "items[2].metadata.name: node \"n1\" is there twice");
}

TEST(ClusterFile, AnObjectThatCannotBeReadDoesNotCostTheOthers) {
  Json nameless = ListedNode(""), pod = ListedPod("1", "n1", "Running");
  pod["spec"]["containers"] = 7;
  const auto file = DecodeList({ListedNode("n1"), nameless, pod, ListedPod("2", "n1", "Running")});
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->events.size(), 2U);
  EXPECT_EQ(file->problems.size(), 2U);
}

TEST(ClusterFile, AListWithoutItsObjectIsReadAsJqWritesIt) {
  static const PodRules kPods(test::AllDialects(), DefaultConfig().resources);
  const auto file =
      DecodeCluster(Json::array({ListedNode("n1"), ListedPod("1", "n1", "Running")}).dump(),
                    NodeRules(DefaultConfig(), test::AllDialects()), &kPods);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->events.size(), 2U);
}

TEST(ClusterFile, ThePodsOfAListThatWaitAreThereToo) {
  Json gated = ListedPod("2", "", "Pending"), leaving = ListedPod("3", "", "Pending");
  gated["spec"]["schedulingGates"] = Json::array({{{"name", "g"}}});
  leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  const auto file = DecodeList({ListedNode("n1"), ListedPod("1", "", "Pending"), gated, leaving});
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->waiting.size(), 3u);
  EXPECT_EQ(file->waiting[0].pod->id.uid, "1");
  EXPECT_FALSE(file->waiting[0].gated());
  EXPECT_TRUE(file->waiting[1].gated());
  EXPECT_TRUE(file->waiting[2].held_back.starts_with(kBeingDeleted));
  EXPECT_FALSE(file->waiting[2].pod->shape.wants_gpu()) << "it needs no node";
}

TEST(ClusterFile, PodGroupsOfAListSayWhatTheirPodsNeed) {
  Json pod = ListedPod("1", "", "Pending");
  pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = "g";
  Json group = {{"apiVersion", "scheduling.x-k8s.io/v1alpha1"},
                {"kind", "PodGroup"},
                {"metadata", {{"name", "g"}, {"namespace", "ns"}}},
                {"spec", {{"minMember", 4}}}};
  PodGroups groups;
  const PodRules rules(test::AllDialects(), DefaultConfig().resources, {}, &groups);
  const auto decode = [&rules, &groups](const Json& items) {
    return DecodeCluster(Json{{"kind", "List"}, {"items", items}}.dump(),
                         NodeRules(DefaultConfig(), test::AllDialects()), &rules, &groups);
  };
  const auto file = decode({ListedNode("n1"), pod, group});
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->waiting.at(0).pod->gang.minimum, 4);
  EXPECT_EQ(groups.Of("coscheduling").Find("ns/g")->min_members, 4);
  group["spec"]["minMember"] = 0;
  EXPECT_EQ(decode(Json::array({group}))->problems.size(), 1u);
  group["apiVersion"] = "scheduling.x-k8s.io/v2";
  const auto newer = decode({ListedNode("n1"), group});
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().message,
            "items[1].apiVersion: want one whose PodGroups are read, got "
            "\"scheduling.x-k8s.io/v2\"");
}

TEST(ClusterFile, AnObjectWithAFieldOfAnotherTypeCostsThatObjectAndIsNamed) {
  const auto named = [](const char* kind, const char* api, Json spec) {
    return Json{{"apiVersion", api},
                {"kind", kind},
                {"metadata", {{"name", "g"}, {"namespace", "ns"}}},
                {"spec", std::move(spec)}};
  };
  Json pod = ListedPod("1", "n1", "Running");
  pod["spec"]["tolerations"] = Json::parse(R"({"key":"a"})");
  PodGroups groups;
  const PodRules rules(test::AllDialects(), DefaultConfig().resources, {}, &groups);
  const Json items = {
      ListedNode("n1"), pod,
      named("PodGroup", "scheduling.x-k8s.io/v1alpha1", Json::parse(R"({"minMember":"x"})")),
      named("PodDisruptionBudget", "policy/v1", {{"selector", {{"matchLabels", {{"app", 1}}}}}})};
  const auto file = DecodeCluster(Json{{"kind", "List"}, {"items", items}}.dump(),
                                  NodeRules(DefaultConfig(), test::AllDialects()), &rules, &groups);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->events.size(), 1u) << "the node";
  ASSERT_EQ(file->problems.size(), 3u);
  EXPECT_TRUE(file->problems[0].starts_with("PodGroup ns/g: ")) << file->problems[0];
  EXPECT_EQ(
      file->problems[1],
      "PodDisruptionBudget ns/g: spec.selector.matchLabels.app: want the type that Kubernetes "
      "gives it, got 1; put texts in quotes");
  EXPECT_TRUE(file->problems[2].starts_with("pod ns/pod-1: spec.tolerations: "))
      << file->problems[2];
}

TEST(ClusterFile, AKubernetesObjectThatIsNoListIsRefused) {
  for (const char* kind : {"Node", "PodList", ""}) {
    EXPECT_EQ(ErrorOf(R"({"kind":")" + std::string(kind) + R"(","metadata":{"name":"n1"}})"),
              "kind: want NodeList or List, got \"" + std::string(kind) + "\"");
  }
}

}  // namespace
}  // namespace berth::wire::cluster_file_test
