// SPDX-License-Identifier: Apache-2.0
//
// berth.dev/gpu-models: what the driver says of GPUs that differ, from the JSON of the node to what
// pods get and people read. More of it is in test/cases/nodes.json.
#include "server/wire/node/agent_annotations.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scoring/explain/node_report.h"
#include "scoring/reason.h"
#include "server/why/explain_json.h"
#include "test/support/agent_world.h"
#include "test/support/wire_fixture.h"

namespace berth::test::gpu_models_test {
namespace {

const std::string kModels =
    R"([{"uuid":"GPU-a","model":"NVIDIA-GeForce-RTX-3080","memory_mib":10240,)"
    R"("compute_capability":"8.6"},)"
    R"({"uuid":"GPU-b","model":"NVIDIA-GeForce-RTX-3090","memory_mib":24576,)"
    R"("compute_capability":"8.6"},)"
    R"({"uuid":"GPU-c","model":"NVIDIA-GeForce-RTX-4090","memory_mib":24564,)"
    R"("compute_capability":"8.9"}])";

// A workstation, labelled as its last product. carried: an agent gives the chosen GPUs.
Json Workstation(bool carried = true, const std::string& models = kModels) {
  Json node = NodeWith({{"nvidia.com/gpu", "3"}}, {{"berth.dev/gpu-uuids", "GPU-a,GPU-b,GPU-c"},
                                                   {"berth.dev/gpu-models", models}});
  node["metadata"]["labels"] = {{"nvidia.com/gpu.product", "NVIDIA-GeForce-RTX-4090"},
                                {"nvidia.com/gpu.memory", "24564"},
                                {"nvidia.com/gpu.compute.major", "8"},
                                {"nvidia.com/gpu.compute.minor", "9"}};
  if (carried) node["metadata"]["annotations"]["berth.dev/carries-out"] = "nvidia.com/gpu";
  return node;
}

Json PodThat(const std::string& uid, int gpus, const char* key, const std::string& value) {
  Json pod = PodWithGpus(uid, gpus);
  pod["metadata"]["annotations"][key] = value;
  return pod;
}

int GpuOf(TestService& service, const std::string& uid) {
  const auto snapshot = service.state().Current();
  const PodRecord* const pod = snapshot->node(0).FindPod(uid);
  if (pod == nullptr || pod->placement.grants.size() != 1) return -1;
  return pod->placement.grants.front().gpu;
}

TEST(GpuModels, PodsGetTheGpuThatTheyAskFor) {
  const NodeSpec spec = ReadNode(Workstation()).spec;
  TestService service({spec});
  const auto place = [&](const std::string& uid, const char* key, const std::string& value) {
    EXPECT_EQ(service.Place(PodThat(uid, 1, key, value), spec.name), "");
    return GpuOf(service, uid);
  };
  EXPECT_EQ(place("b", "berth.dev/gpu-model", "NVIDIA-GeForce-RTX-3090"), 1);
  EXPECT_EQ(place("c", "berth.dev/min-compute-capability", "8.9"), 2);
  const Json large = PodThat("d", 1, "berth.dev/min-gpu-memory-gib", "20");
  const Json answer = service.Ask("filter", ArgsWithNames(large, {spec.name}));
  EXPECT_NE(answer["NodeNames"], Json::array({spec.name})) << "the two large ones are taken";
  EXPECT_EQ(place("a", "berth.dev/gpu-model", "NVIDIA-GeForce-RTX-3080"), 0);
}

TEST(GpuModels, SharesAreOfTheModelThatIsAskedFor) {
  AgentWorld world(Workstation(false));
  Json pod = PodAsking("s", {{"berth.dev/gpu-milli", "500"}});
  pod["spec"]["containers"][0]["resources"]["limits"]["berth.dev/gpu-milli"] = "500";
  pod["metadata"]["annotations"]["berth.dev/gpu-model"] = "NVIDIA-GeForce-RTX-3090";
  const Texts written = world.Bind(pod);
  EXPECT_NE(written.at("berth.dev/devices").find("GPU-b"), std::string::npos);
  pod["metadata"] = {{"name", "t"}, {"namespace", "ns"}, {"uid", "t"}};
  pod["metadata"]["annotations"]["berth.dev/min-compute-capability"] = "8.9";
  EXPECT_NE(world.Bind(pod).at("berth.dev/devices").find("GPU-c"), std::string::npos);
}

std::string WhyNot(const Json& node, const Json& pod) {
  AgentWorld world(node);
  const PodRequest request = world.Decode(pod);
  const Reason reason = CheckModel(world.node(), request.shape);
  return LackText(world.node(), request, reason);
}

TEST(GpuModels, PeopleReadWhichThereAre) {
  EXPECT_EQ(WhyNot(Workstation(), PodThat("p", 1, "berth.dev/gpu-model", "A100")),
            "has 1 NVIDIA-GeForce-RTX-3080, 1 NVIDIA-GeForce-RTX-3090, "
            "1 NVIDIA-GeForce-RTX-4090, the pod accepts A100, needs 1 GPU");
  EXPECT_EQ(WhyNot(Workstation(), PodThat("p", 2, "berth.dev/min-compute-capability", "8.9")),
            "has 1 NVIDIA-GeForce-RTX-3080 (8.6), 1 NVIDIA-GeForce-RTX-3090 (8.6), "
            "1 NVIDIA-GeForce-RTX-4090 (8.9), needs compute capability 8.9");
  EXPECT_EQ(
      WhyNot(Workstation(false), PodThat("p", 1, "berth.dev/gpu-model", "NVIDIA-GeForce-RTX-3080")),
      "has 1 NVIDIA-GeForce-RTX-3080, 1 NVIDIA-GeForce-RTX-3090, "
      "1 NVIDIA-GeForce-RTX-4090 (the device plugin picks the GPU itself), the pod accepts "
      "NVIDIA-GeForce-RTX-3080, needs 1 GPU");
  AgentWorld world(Workstation());
  const std::string told = wire::TextOf(ReportOf(world.node()));
  EXPECT_NE(told.find("GPUs of several models: NVIDIA-GeForce-RTX-3080, NVIDIA-GeForce-RTX-3090, "
                      "NVIDIA-GeForce-RTX-4090"),
            std::string::npos)
      << told;
}

TEST(GpuModels, TheLabelOfTheCapabilityCountsWhereTheGpusDoNotSayTheirs) {
  Json node = Workstation();
  node["metadata"]["annotations"].erase("berth.dev/gpu-models");
  const NodeSpec spec = ReadNode(node).spec;
  TestService service({spec}, nullptr, "best-fit", true);
  const auto passes = [&](const char* version) {
    const Json pod = PodThat("p", 2, "berth.dev/min-compute-capability", version);
    return service.Ask("filter", ArgsWithNames(pod, {spec.name}))["NodeNames"].size() == 1;
  };
  EXPECT_TRUE(passes("8.9"));
  EXPECT_FALSE(passes("9.0"));
}

TEST(GpuModels, ThatCannotBeReadCostThatFact) {
  const auto problem = [](const std::string& models) {
    const wire::DecodedNode node = ReadNode(Workstation(true, models));
    EXPECT_TRUE(node.spec.gpu_models.empty()) << models;
    EXPECT_EQ(node.spec.gpus.size(), 3U) << models;
    EXPECT_EQ(node.spec.gpus.front().memory_mib, 24564) << "by the label";
    return node.problem;
  };
  const std::string key = "annotation berth.dev/gpu-models: ";
  EXPECT_EQ(problem("RTX 3080"),
            key + "want a JSON list of at most 64 GPUs and 32768 bytes, got something else");
  EXPECT_EQ(problem(R"([{"uuid":"GPU-a","model":"","memory_mib":1}])"),
            key + "[0]: want a model and memory_mib");
  EXPECT_EQ(problem(R"([{"uuid":"GPU-a","model":"T4","memory_mib":-1}])"),
            key + "[0].memory_mib: want 1..1099511627776, got -1");
  EXPECT_EQ(problem(R"([{"uuid":"GPU-a","model":"T4","memory_mib":1,"compute_capability":"new"}])"),
            key +
                "[0].compute_capability: want a version such as 550, 12.4 or 550.54.15, got "
                "\"new\"");
  EXPECT_EQ(problem(R"([{"uuid":"GPU-a","model":"T4","memory_mib":1}])"),
            key + "want the node's 3 GPUs by UUID, got 1");
}

TEST(GpuModels, AreBounded) {
  std::vector<wire::GpuKind> kinds(64,
                                   {"GPU-a", std::string(96, 'm'), std::int64_t{1} << 40, 9000});
  EXPECT_TRUE(wire::ParseGpuKinds(wire::GpuKindsText(kinds)));
  kinds.push_back(kinds.front());
  EXPECT_FALSE(wire::ParseGpuKinds(wire::GpuKindsText(kinds)));
  EXPECT_EQ(wire::kMostGpuModelsBytes, 32U << 10);
  EXPECT_FALSE(wire::ParseGpuKinds("[" + std::string(wire::kMostGpuModelsBytes, ' ') + "]"));
}

// An agent's register may scale the memory, and its scheduler knows the names that it wrote.
TEST(GpuModels, OfARegisterStay) {
  NodeSpec spec = MachineWith("n", 2, "T4");
  spec.gpus[0].uuid = "GPU-a";
  spec.gpus[1].uuid = "GPU-b";
  const std::vector<wire::GpuKind> kinds = {{"GPU-a", "L4", 23034, 8009},
                                            {"GPU-b", "T4", 15360, 0}};
  NodeSpec registered = spec;
  EXPECT_EQ(wire::TakeKinds(kinds, {.memory = true, .models = true}, registered), "");
  EXPECT_EQ(registered.gpus[0].memory_mib, 80'000);
  EXPECT_EQ(registered.gpus[0].capability, 8009);
  EXPECT_TRUE(registered.gpu_models.empty());
  EXPECT_EQ(wire::TakeKinds(kinds, {.memory = true, .models = false}, registered), "");
  EXPECT_EQ(registered.gpu_models, (std::vector<std::string>{"L4", "T4"}));
  EXPECT_EQ(wire::TakeKinds(kinds, {}, spec), "");
  EXPECT_EQ(spec.gpus[1].memory_mib, 15360);
}

}  // namespace
}  // namespace berth::test::gpu_models_test
