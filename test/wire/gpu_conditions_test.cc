// SPDX-License-Identifier: Apache-2.0
//
// Conditions of nodes that say which GPUs are out of order: what messages name, what is closed for
// it, what pods then get and what people see.
#include "server/wire/node/gpu_conditions.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scoring/explain/node_report.h"
#include "scoring/filters/device_fit.h"
#include "server/why/explain_json.h"
#include "test/support/agent_world.h"

namespace berth::test::gpu_conditions_test {
namespace {

std::string Uuid(int gpu) {
  return "GPU-" + std::to_string(gpu) + "55d8f70-2051-db6c-0430-ffc457bff834";
}

// One fault in NVSentinel's words.
std::string Fault(int gpu) {
  return "ErrorCode:DCGM_FR_FAULTY_MEMORY GPU:0 PCI:0000:3b:00.0 GPU_UUID:" + Uuid(gpu) +
         " GPU memory failure Recommended Action=RESTART_VM;";
}

// --- what a message names

using Names = std::set<std::string>;

TEST(NamedGpus, AreThoseOfEveryStatement) {
  struct Case {
    std::string description, message;
    std::optional<Names> want;
  };
  for (const Case& c : std::vector<Case>{
           {"NVSentinel, one fault", Fault(3), Names{Uuid(3)}},
           {"NVSentinel, two GPUs, one of them twice", Fault(3) + Fault(5) + Fault(3),
            Names{Uuid(3), Uuid(5)}},
           {"NVSentinel's syslog monitor",
            "ErrorCode:119 PCI:0002:00:00 GPU_UUID:" + Uuid(2) +
                " kernel: NVRM: Xid (PCI:0002:00:00): 119 Recommended Action=COMPONENT_RESET;",
            Names{Uuid(2)}},
           {"NVSentinel, an NVSwitch beside a GPU",
            Fault(3) + "ErrorCode:SXID NVSWITCH:0 NVLINK:36 Recommended Action=RESTART_VM;",
            std::nullopt},
           {"NVSentinel, what is too long is cut off", Fault(3) + "ErrorCode:DCGM GPU_UU;...",
            std::nullopt},
           {"a script of one's own", "out of order: " + Uuid(0) + ", " + Uuid(7),
            Names{Uuid(0), Uuid(7)}},
           {"no statement at its end", Fault(1) + " \n", Names{Uuid(1)}},
           {"node problem detector cut its output within a UUID",
            (Uuid(0) + ", " + Uuid(1)).substr(0, 60), std::nullopt},
           {"AKS: a line of the kernel's log",
            "GPU Xid errors detected: Nov 24 02:10:00 aks-1 kernel: NVRM: Xid (PCI:0001:00:00): "
            "79, "
            "pid=1. FaultCode: NHC2001",
            std::nullopt},
           {"EKS", "detected XID-79 on the instance, review kernel logs", std::nullopt},
           {"an index", "ErrorCode:79 GPU:0 Recommended Action=RESTART_VM;", std::nullopt},
           {"an index that looks like a name", Uuid(0) + " and GPU-3", std::nullopt},
           {"a MIG device", "MIG-" + Uuid(0) + "/7/0 is lost", std::nullopt},
           {"prose about a GPU", "GPU-related trouble of " + Uuid(4), Names{Uuid(4)}},
           {"nothing", "", std::nullopt},
           {"ends of statements alone", ";;", std::nullopt}}) {
    EXPECT_EQ(wire::NamedGpus(c.message), c.want) << c.description;
  }
}

// --- what is closed

// The node with such a condition.
Json Saying(Json node, const std::string& message, const char* type = "XIDErrors") {
  node["status"]["conditions"].push_back(
      {{"type", type}, {"status", "True"}, {"message", message}});
  return node;
}

// A node of eight GPUs that HAMi's agent hands out as Berth says.
Json HamiNode() {
  Json list = Json::array();
  for (int gpu = 0; gpu < 8; ++gpu) {
    list.push_back({{"id", Uuid(gpu)},
                    {"index", gpu},
                    {"count", 10},
                    {"devmem", 40960},
                    {"devcore", 100},
                    {"type", "NVIDIA-A100"},
                    {"mode", "hami-core"},
                    {"health", true}});
  }
  return NodeWith({{"nvidia.com/gpu", "80"}}, {{"hami.io/node-nvidia-register", list.dump()}});
}

// One with NVIDIA's device plugin alone, which withdraws so many.
Json PlainNode(int withdrawn, const Texts& annotations = {}) {
  Json node = NodeWith({{"nvidia.com/gpu", "8"}}, annotations);
  node["status"]["allocatable"]["nvidia.com/gpu"] = std::to_string(8 - withdrawn);
  return node;
}

Texts KnownUuids() {
  std::string list;
  for (int gpu = 0; gpu < 8; ++gpu) list += (gpu == 0 ? "" : ",") + Uuid(gpu);
  return {{"berth.dev/gpu-uuids", list}};
}

class GpuConditionsTest : public testing::Test {
 protected:
  static Config GivingHami() {
    Config config = DefaultConfig();
    config.hami.give_devices = true;
    return config;
  }

  void Put(const Json& node) {
    world_.PutNode(node);
    EXPECT_EQ(world_.problem, "");
  }
  const NodeSpec& spec() { return world_.node().spec(); }
  Reason Check(const Json& pod) {
    const PodRequest request = world_.Decode(pod);
    const Reason health = CheckHealth(world_.node(), request.shape);
    return health == Reason::kFits ? world_.Check(pod) : health;
  }
  // The whole node is closed to pods with GPUs, for that condition.
  void ExpectNodeClosed(const std::string& condition = "XIDErrors=True") {
    EXPECT_EQ(spec().gpu_condition, condition);
    EXPECT_EQ(spec().named_gpus_condition, "");
    EXPECT_EQ(Check(PodWithGpus("any", 1)), Reason::kGpuCondition);
    EXPECT_EQ(Check(PodAsking("cpu", {{"cpu", "1"}})), Reason::kFits);
  }
  // So many GPUs are closed, and the node gives the others.
  void ExpectGpusClosed(int gpus) {
    EXPECT_EQ(spec().gpu_condition, "");
    EXPECT_EQ(spec().named_gpus_condition, "XIDErrors=True");
    EXPECT_EQ(world_.node().healthy_gpus(), 8 - gpus);
    EXPECT_EQ(Check(PodWithGpus("rest", 8 - gpus)), Reason::kFits);
    EXPECT_EQ(Check(PodWithGpus("more", 9 - gpus)), Reason::kTooFewGpus);
  }

  AgentWorld world_{HamiNode(), GivingHami()};
};

TEST_F(GpuConditionsTest, OneSickGpuOfEightIsClosedAndNoPodGetsIt) {
  Put(Saying(HamiNode(), Fault(3)));
  ExpectGpusClosed(1);
  for (int gpu = 0; gpu < 8; ++gpu) {
    EXPECT_EQ(spec().gpus[static_cast<std::size_t>(gpu)].healthy, gpu != 3) << gpu;
  }
  const std::string told = wire::TextOf(ReportOf(world_.node()));
  EXPECT_NE(told.find("unhealthy GPUs by condition XIDErrors=True"), std::string::npos) << told;
  EXPECT_NE(told.find("GPU 3: unhealthy\n"), std::string::npos) << told;

  std::string given;
  for (int pod = 0; pod < 7; ++pod) {
    given += world_.Bind(PodWithGpus(std::to_string(pod), 1))["hami.io/vgpu-devices-allocated"];
  }
  for (int gpu = 0; gpu < 8; ++gpu) {
    EXPECT_EQ(given.find(Uuid(gpu)) != std::string::npos, gpu != 3) << given;
  }
  EXPECT_EQ(Check(PodWithGpus("eighth", 1)), Reason::kGpusBusy);
  EXPECT_EQ(Check(PodAsking("share", {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "1000"}})),
            Reason::kShareBusy);

  Put(HamiNode());  // the condition ends
  EXPECT_EQ(spec().named_gpus_condition, "");
  EXPECT_EQ(world_.Bind(PodWithGpus("eighth", 1))["hami.io/vgpu-devices-allocated"].find(Uuid(3)),
            0U);
}

TEST_F(GpuConditionsTest, WhatAPodHoldsOfASickGpuStaysItsOwn) {
  for (int pod = 0; pod < 8; ++pod) world_.Bind(PodWithGpus(std::to_string(pod), 1));
  Put(Saying(HamiNode(), Fault(0)));
  EXPECT_EQ(world_.node().pods().size(), 8U);
  EXPECT_EQ(Check(PodWithGpus("next", 1)), Reason::kGpusBusy);
  for (const auto& pod : world_.node().pods()) {
    if (pod->placement.grants.front().gpu != 0) continue;
    world_.Remove(std::string(pod->pod.id.uid));
    break;
  }
  ASSERT_EQ(world_.node().pods().size(), 7U);
  EXPECT_EQ(Check(PodWithGpus("next", 1)), Reason::kGpusBusy) << "the GPU that is idle is sick";
}

TEST_F(GpuConditionsTest, SeveralConditionsCloseWhatEachOfThemNames) {
  Config config = GivingHami();
  config.gpu_nodes.conditions = {"GpuMemWatch", "SysLogsXIDError", "GpuDriverWatch"};
  AgentWorld world(
      Saying(Saying(HamiNode(), Fault(3), "SysLogsXIDError"), Fault(3) + Fault(5), "GpuMemWatch"),
      config);
  EXPECT_EQ(world.node().healthy_gpus(), 6);
  EXPECT_EQ(world.node().spec().named_gpus_condition, "GpuMemWatch=True");
  world.PutNode(
      Saying(Saying(HamiNode(), Fault(3), "SysLogsXIDError"), "no driver", "GpuDriverWatch"));
  EXPECT_EQ(world.node().spec().gpu_condition, "GpuDriverWatch=True");
  EXPECT_EQ(world.node().spec().named_gpus_condition, "SysLogsXIDError=True");
  EXPECT_EQ(world.node().healthy_gpus(), 7) << "the one stays closed when the other ends";
}

TEST_F(GpuConditionsTest, AGpuThatTheNodeDoesNotHaveClosesTheNode) {
  Put(Saying(HamiNode(), Fault(9)));
  ExpectNodeClosed();
  EXPECT_EQ(world_.node().healthy_gpus(), 8);
  Put(Saying(HamiNode(), Fault(3) + Fault(9)));
  ExpectNodeClosed();
}

TEST_F(GpuConditionsTest, WordsThatNameNoGpuCloseTheNode) {
  Put(Saying(HamiNode(), "detected XID-79 on the instance, review kernel logs"));
  ExpectNodeClosed();
  Json bare = HamiNode();
  bare["status"]["conditions"] = {{{"type", "XIDErrors"}, {"status", "True"}}};
  Put(bare);
  ExpectNodeClosed();
  for (const Json& unreadable : {Json(nullptr), Json(7), Json::array({Fault(3)})}) {
    bare["status"]["conditions"][0]["message"] = unreadable;
    Put(bare);
    ExpectNodeClosed();
  }
  std::string text = Saying(HamiNode(), "half a character: ?").dump();
  text.replace(text.find('?'), 1, "\\ud800");
  const auto decoded = wire::DecodeNode(Padded(text), wire::NodeRules(GivingHami(), AllDialects()));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->spec.gpu_condition, "XIDErrors=True");
  bare["status"]["conditions"][0] = {
      {"type", "XIDErrors"}, {"status", "False"}, {"message", Fault(3)}};
  Put(bare);
  EXPECT_EQ(spec().gpu_condition, "");
  EXPECT_EQ(world_.node().healthy_gpus(), 8) << "it does not hold";
}

TEST_F(GpuConditionsTest, CountsUnhealthyGpusThatThePluginHasNotWithdrawn) {
  Put(Saying(PlainNode(0), Fault(3)));
  ExpectNodeClosed();  // a pod could get the sick one
  Put(Saying(PlainNode(1), Fault(3)));
  ExpectGpusClosed(1);
  Put(Saying(PlainNode(1), Fault(3) + Fault(5)));
  ExpectNodeClosed();
  Put(Saying(PlainNode(2), Fault(3) + Fault(5)));
  ExpectGpusClosed(2);
  Put(PlainNode(2));  // the condition ends, and the plugin offers no more GPUs
  EXPECT_EQ(spec().named_gpus_condition, "");
  EXPECT_EQ(world_.node().healthy_gpus(), 6);
}

TEST_F(GpuConditionsTest, AWithdrawnGpuThatIsNamedIsNotCountedOutTwice) {
  Put(Saying(PlainNode(1, KnownUuids()), Fault(3)));
  ExpectGpusClosed(1);
  EXPECT_EQ(spec().missing, 0);
  EXPECT_FALSE(spec().gpus[3].healthy) << "a share by UUID is not given of it";
  Put(Saying(PlainNode(2, KnownUuids()), Fault(3)));
  ExpectGpusClosed(2);
  EXPECT_EQ(spec().missing, 1);
  Put(Saying(PlainNode(0, KnownUuids()), Fault(3)));
  ExpectNodeClosed();
  EXPECT_EQ(world_.node().healthy_gpus(), 8);
}

TEST_F(GpuConditionsTest, AJoiningNodeIsClosedUntilItsGpusAreThere) {
  Json joining = NodeWith(Json::object(), {});
  Put(Saying(joining, Fault(3)));
  EXPECT_EQ(spec().gpu_condition, "XIDErrors=True");
  EXPECT_EQ(Check(PodWithGpus("early", 1)), Reason::kGpuCondition);
  Json registered = HamiNode();
  registered["status"]["capacity"] =
      registered["status"]["allocatable"] = {{"cpu", "64"}, {"memory", "256Gi"}};
  Put(Saying(registered, Fault(3)));
  EXPECT_EQ(world_.node().healthy_gpus(), 0) << "HAMi's plugin serves nobody yet";
  Put(Saying(HamiNode(), Fault(3)));
  ExpectGpusClosed(1);
}

TEST_F(GpuConditionsTest, GpusWithSeveralUsersAndPartsOfGpusAreClosedWithTheNode) {
  Json sliced = PlainNode(1);
  sliced["metadata"]["labels"] = {{"nvidia.com/gpu.sharing-strategy", "time-slicing"},
                                  {"nvidia.com/gpu.replicas", "2"}};
  Put(Saying(sliced, Fault(3)));
  ASSERT_EQ(spec().places.count, 8);
  ExpectNodeClosed();

  Json parts = NodeWith({{"amd.com/dpx_nps1", "8"}}, {});
  parts["status"]["allocatable"]["amd.com/dpx_nps1"] = "7";
  AgentWorld amd(Saying(parts, Fault(3)));
  ASSERT_TRUE(amd.node().spec().gpus_are_parts);
  EXPECT_EQ(amd.node().spec().gpu_condition, "XIDErrors=True");
}

// koordlet says by itself which GPUs are sick; the same one is not counted out twice.
TEST(GpuConditionsOfKoordinator, AreBesideWhatTheDeviceSays) {
  Json node = PlainNode(1, KnownUuids());
  for (const char* const list : {"capacity", "allocatable"}) {
    node["status"][list]["koordinator.sh/gpu-core"] = "800";
    node["status"][list]["koordinator.sh/gpu-memory"] = "640Gi";
    node["status"][list]["koordinator.sh/gpu-memory-ratio"] = "800";
  }
  Json devices = Json::array();
  for (int gpu = 0; gpu < 8; ++gpu) {
    devices.push_back({{"type", "gpu"},
                       {"id", Uuid(gpu)},
                       {"minor", gpu},
                       {"health", gpu != 3},
                       {"resources",
                        {{"koordinator.sh/gpu-core", "100"},
                         {"koordinator.sh/gpu-memory", "80Gi"},
                         {"koordinator.sh/gpu-memory-ratio", "100"}}}});
  }
  AgentWorld world(Saying(node, Fault(3)));
  const auto put = [&] {
    world.PutDevice(
        {{"kind", "Device"}, {"metadata", {{"name", "n1"}}}, {"spec", {{"devices", devices}}}});
  };
  put();
  EXPECT_EQ(world.problem, "");
  EXPECT_EQ(world.node().spec().share_agent, "koordinator");
  EXPECT_EQ(world.node().healthy_gpus(), 7) << "all three say the same";
  devices[3]["health"] = true;
  put();
  EXPECT_EQ(world.node().healthy_gpus(), 7) << "the condition holds";
  world.PutNode(node);
  EXPECT_EQ(world.node().healthy_gpus(), 7) << "the device plugin still counts seven";
  node["status"]["allocatable"]["nvidia.com/gpu"] = "8";
  world.PutNode(node);
  EXPECT_EQ(world.node().healthy_gpus(), 8);
}

}  // namespace
}  // namespace berth::test::gpu_conditions_test
