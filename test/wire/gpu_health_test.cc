// SPDX-License-Identifier: Apache-2.0
//
// GPUs that the agent of a node calls unhealthy, and what the status of a pod says of its own: what
// is closed, what pods then get, and what people see of it.
#include "server/wire/node/gpu_conditions.h"

#include <gtest/gtest.h>

#include <string>

#include "scoring/explain/node_report.h"
#include "server/why/explain_json.h"
#include "test/support/agent_world.h"

namespace berth::test::gpu_health_test {
namespace {

// One with the vendor's device plugin alone. unwell: berth.dev/gpu-health; withdrawn: so many are
// not allocatable.
Json NodeSaying(const std::string& unwell, int withdrawn = 0, bool uuids = true) {
  Texts annotations;
  if (!unwell.empty()) annotations["berth.dev/gpu-health"] = unwell;
  if (uuids) annotations["berth.dev/gpu-uuids"] = "GPU-a,GPU-b,GPU-c,GPU-d";
  Json node = NodeWith({{"nvidia.com/gpu", "4"}}, annotations);
  node["status"]["allocatable"]["nvidia.com/gpu"] = std::to_string(4 - withdrawn);
  return node;
}

class GpuHealthTest : public testing::Test {
 protected:
  const NodeSpec& spec() { return world_.node().spec(); }
  void ExpectClosed(GpuMask closed, int healthy) {
    EXPECT_EQ(world_.node().closed(), closed);
    EXPECT_EQ(world_.node().healthy_gpus(), healthy);
  }
  AgentWorld world_{NodeSaying("")};
};

TEST_F(GpuHealthTest, TheNamedGpusAreClosedAndCountOnce) {
  for (const int withdrawn : {0, 1, 2}) {  // the kubelet takes them away sooner or later
    world_.PutNode(NodeSaying("GPU-b,GPU-d", withdrawn));
    EXPECT_EQ(world_.problem, "");
    ExpectClosed(GpuBit(1) | GpuBit(3), 2);
    EXPECT_EQ(spec().missing, 0);
  }
  world_.PutNode(NodeSaying("GPU-b", 2));
  EXPECT_EQ(spec().missing, 1) << "one more is away, and nobody says which";
  EXPECT_EQ(world_.node().healthy_gpus(), 2);
  world_.PutNode(NodeSaying(""));
  ExpectClosed(0, 4);
}

TEST_F(GpuHealthTest, PeopleSeeWhoSaysIt) {
  world_.PutNode(NodeSaying("GPU-c", 1));
  const std::string told = wire::TextOf(ReportOf(world_.node()));
  EXPECT_NE(told.find("unhealthy GPUs by annotation berth.dev/gpu-health"), std::string::npos)
      << told;
}

TEST_F(GpuHealthTest, WhatTheNodeDoesNotHaveIsReportedAndTheRestCounts) {
  world_.PutNode(NodeSaying("GPU-x,GPU-b,MIG-1", 1));
  EXPECT_EQ(world_.problem,
            "annotation berth.dev/gpu-health: want UUIDs of the node's 4 GPUs, got \"GPU-x\"");
  ExpectClosed(GpuBit(1), 3);
  world_.PutNode(NodeSaying("MIG-1"));
  EXPECT_EQ(world_.problem, "");
  std::string many = "GPU-a";
  for (int i = 0; i < 10'000; ++i) many += ",GPU-a";
  world_.PutNode(NodeSaying(many));
  EXPECT_EQ(world_.problem, "annotation berth.dev/gpu-health: want at most 256 IDs, got more");
  ExpectClosed(GpuBit(0), 3);
}

TEST_F(GpuHealthTest, WhereTheNodeDoesNotSayItsUuidsTheCountDecides) {
  world_.PutNode(NodeSaying("GPU-b", 1, false));
  EXPECT_EQ(world_.problem, "");
  EXPECT_EQ(world_.node().healthy_gpus(), 3);
}

// --- the status of a pod

Json RunningPod(const std::string& name, int gpus, const std::string& ids,
                const std::string& health = "Healthy") {
  Json pod = PodWithGpus(name, gpus);
  pod["status"]["phase"] = "Running";
  Json devices = Json::array();
  for (const char id : ids) {
    devices.push_back({{"resourceID", std::string("GPU-") + id}, {"health", health}});
  }
  pod["status"]["containerStatuses"] = Json::array(
      {{{"name", "main"},
        {"allocatedResourcesStatus",
         Json::array({{{"name", "nvidia.com/gpu"}, {"resources", std::move(devices)}}})}}});
  return pod;
}

class GivenToPodsTest : public GpuHealthTest {
 protected:
  void Show(const Json& pod, const std::string& planned) {
    Json gpus = Json::array();
    for (const char gpu : planned) {
      gpus.push_back({{"index", gpu - '0'}, {"milli", 1000}, {"memory_mib", 0}});
    }
    const Json said = {
        {"version", 1}, {"node", "n1"}, {"containers", {{"main", {{"gpus", std::move(gpus)}}}}}};
    EXPECT_EQ(world_.Show(pod, "berth.dev/devices", said.dump()), "");
  }
};

TEST_F(GivenToPodsTest, ThePageOfTheNodeHasWhatPodsHaveAndWhatWasPlanned) {
  Show(RunningPod("p", 2, "bd"), "01");
  const std::string told = wire::TextOf(ReportOf(world_.node()));
  EXPECT_NE(told.find("1 pod has other GPUs than planned"), std::string::npos) << told;
  EXPECT_NE(told.find("GPU 1, GPU 3, planned GPU 0, GPU 1"), std::string::npos) << told;
  EXPECT_EQ(world_.node().gpus()[0].milli, 1000);
  EXPECT_EQ(world_.node().gpus()[3].milli, 0);
}

TEST_F(GivenToPodsTest, AnUnhealthyGpuOfAPodIsClosedByName) {
  Show(RunningPod("p", 1, "c", "Unhealthy"), "2");
  ExpectClosed(GpuBit(2), 3);
  const std::string told = wire::TextOf(ReportOf(world_.node()));
  EXPECT_NE(told.find("unhealthy GPUs by status of pods"), std::string::npos) << told;
}

}  // namespace
}  // namespace berth::test::gpu_health_test
