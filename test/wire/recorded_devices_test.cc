// SPDX-License-Identifier: Apache-2.0
//
// Records of other schedulers on pods that are bound: they say which devices a pod has, and the
// request says how much. A tenant writes both, so neither may take more than the other, nor hide
// what the pod has.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/agent_world.h"

namespace berth::test::recorded_devices_test {
namespace {

constexpr int kGpus = 8;
constexpr std::int64_t kMib = 80'000;

std::string Uuid(int gpu) { return "GPU-" + std::to_string(gpu); }

Config Giving() {
  Config config = DefaultConfig();
  config.hami.give_devices = true;
  return config;
}

// Nodes with eight GPUs whose UUIDs are known: one without any agent, and one of each agent.
Json PlainNode() {
  std::string uuids;
  for (int gpu = 0; gpu < kGpus; ++gpu) uuids += (gpu > 0 ? "," : "") + Uuid(gpu);
  Json node = NodeWith({{"nvidia.com/gpu", "8"}}, {{"berth.dev/gpu-uuids", uuids}});
  node["metadata"]["labels"] = {{"nvidia.com/gpu.memory", std::to_string(kMib)}};
  return node;
}
Json KoordinatorNode() {
  Json node = PlainNode();
  for (const char* list : {"capacity", "allocatable"}) {
    node["status"][list]["koordinator.sh/gpu-core"] = "800";
    node["status"][list]["koordinator.sh/gpu-memory"] = std::to_string(kGpus * kMib) + "Mi";
  }
  return node;
}
Json HamiNode() {
  Json list = Json::array();
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    list.push_back({{"id", Uuid(gpu)},
                    {"index", gpu},
                    {"count", 10},
                    {"devmem", kMib},
                    {"mode", "hami-core"},
                    {"health", true}});
  }
  return NodeWith({{"nvidia.com/gpu", "80"}}, {{"hami.io/node-nvidia-register", list.dump()}});
}
Json VolcanoNode() {
  std::string text;
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    text += Uuid(gpu) + ",10," + std::to_string(kMib) + ",NVIDIA-A100,true,hami-core:";
  }
  return NodeWith({{"volcano.sh/vgpu-number", "80"}}, {{"volcano.sh/node-vgpu-register", text}});
}

// What an agent's scheduler writes for a pod with so much of each of the first GPUs.
Texts KoordinatorRecord(int gpus, int percent) {
  Json list = Json::array();
  for (int gpu = 0; gpu < gpus; ++gpu) {
    list.push_back({{"minor", gpu},
                    {"id", Uuid(gpu)},
                    {"resources",
                     {{"koordinator.sh/gpu-core", std::to_string(percent)},
                      {"koordinator.sh/gpu-memory", std::to_string(kMib * percent / 100) + "Mi"},
                      {"koordinator.sh/gpu-memory-ratio", std::to_string(percent)}}}});
  }
  return {{"scheduling.koordinator.sh/device-allocated", Json{{"gpu", list}}.dump()}};
}
std::string Segment(int gpus, int percent) {
  std::string text;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    text += Uuid(gpu) + ",NVIDIA," + std::to_string(kMib * percent / 100) + "," +
            std::to_string(percent) + ":";
  }
  return text;
}
Texts HamiRecord(int gpus, int percent) {
  return {{"hami.io/vgpu-devices-allocated", Segment(gpus, percent) + ";"}};
}
Texts VolcanoRecord(int gpus, int percent) {
  return {{"volcano.sh/vgpu-ids-new", Segment(gpus, percent)}};
}
Texts KaiRecord(int, int) { return {{"run.ai/reserve_for_gpu_index", Uuid(0)}}; }

struct Agent {
  std::string name;
  Json node;
  Texts (*record)(int gpus, int percent);
  std::string whole;  // the resource by which its pods ask for whole GPUs; one is `each` of it
  int each = 1;
};
const std::vector<Agent>& Agents() {
  static const std::vector<Agent> agents = {
      {"koordinator", KoordinatorNode(), KoordinatorRecord, "koordinator.sh/gpu", 100},
      {"hami", HamiNode(), HamiRecord, "nvidia.com/gpu"},
      {"volcano", VolcanoNode(), VolcanoRecord, "volcano.sh/vgpu-number"}};
  return agents;
}

Json Asking(const Agent& agent, int gpus) {
  return PodAsking("u", {{agent.whole, std::to_string(gpus * agent.each)}});
}

struct Books {
  std::string problem;
  std::int64_t held = 0;  // thousandths of GPUs
  int unknown = 0;        // pods whose GPUs are not known
};

// A pod on the node with a record, as a process sees it that knows nothing of it.
Books BooksOf(const Json& node, Json pod, const Texts& record) {
  AgentWorld world(node, Giving());
  pod["spec"]["nodeName"] = "n1";
  const auto& [key, value] = *record.begin();
  Books books;
  books.problem = world.Show(std::move(pod), key, value);
  books.held = kGpus * kMilliPerGpu - world.node().free_gpu_milli();
  books.unknown = world.node().unattributed();
  return books;
}

void ExpectUnknown(const Books& books, std::int64_t held, const std::string& what) {
  EXPECT_NE(books.problem.find(", as the pod asks, got "), std::string::npos)
      << what << ": " << books.problem;
  EXPECT_EQ(books.held, held) << what;
  EXPECT_EQ(books.unknown, 1) << what;
}

// --- more than the pod asks for

TEST(RecordedDevices, GiveAPodOfOneMilliNoWholeGpus) {
  const Json milli = PodAsking("u", {{"berth.dev/gpu-milli", "1"}});
  for (const Agent& agent : Agents()) {
    for (const Json& node : {PlainNode(), agent.node}) {
      ExpectUnknown(BooksOf(node, milli, agent.record(kGpus, 100)), 1, agent.name);
      // Not even one that it could have a thousandth of.
      EXPECT_EQ(BooksOf(node, milli, agent.record(1, 100)).held, 1) << agent.name;
    }
  }
  const Books kai = BooksOf(PlainNode(), milli, KaiRecord(1, 100));
  EXPECT_NE(kai.problem.find("want a pod that also asks for a whole GPU"), std::string::npos);
  EXPECT_EQ(kai.held, 1);
}

TEST(RecordedDevices, GiveAPodOfOneGpuNoOthers) {
  for (const Agent& agent : Agents()) {
    ExpectUnknown(BooksOf(PlainNode(), PodWithGpus("u", 1), agent.record(kGpus, 100)), 1000,
                  agent.name);
    ExpectUnknown(BooksOf(agent.node, Asking(agent, 1), agent.record(kGpus, 100)), 1000,
                  agent.name);
  }
}

// --- less than the pod asks for

TEST(RecordedDevices, HideNothingOfAPodOfEightGpus) {
  const Json eight = PodWithGpus("u", kGpus);
  for (const Agent& agent : Agents()) {
    ExpectUnknown(BooksOf(PlainNode(), eight, agent.record(1, 1)), 8000, agent.name);
    ExpectUnknown(BooksOf(PlainNode(), eight, agent.record(kGpus, 1)), 8000, agent.name);
    ExpectUnknown(BooksOf(agent.node, Asking(agent, kGpus), agent.record(1, 1)), 8000, agent.name);
    ExpectUnknown(BooksOf(agent.node, Asking(agent, kGpus), agent.record(kGpus, 1)), 8000,
                  agent.name);
  }
  ExpectUnknown(BooksOf(PlainNode(), eight, KaiRecord(1, 100)), 8000, "kai");
}

// Bound by Berth to all GPUs; then its owner takes berth.dev/devices away. A process that starts
// afterwards knows no more than the pod says.
TEST(RecordedDevices, LeaveNoRoomBesideAPodThatDroppedBerthsOwn) {
  for (const Texts& record :
       {KoordinatorRecord(1, 1), HamiRecord(1, 1), VolcanoRecord(1, 1), KaiRecord(1, 100)}) {
    AgentWorld world(PlainNode(), Giving());
    world.Show(PodWithGpus("u", kGpus), record.begin()->first, record.begin()->second);
    EXPECT_EQ(world.Check(PodWithGpus("v", 1)), Reason::kGpusBusy) << record.begin()->first;
    EXPECT_EQ(world.Check(PodAsking("w", {{"berth.dev/gpu-milli", "500"}})), Reason::kShareBusy)
        << record.begin()->first;
  }
}

// --- Berth's own

Texts BerthRecord(int gpus, int milli, std::int64_t memory_mib) {
  Json list = Json::array();
  for (int gpu = 0; gpu < gpus; ++gpu) {
    list.push_back({{"index", gpu}, {"milli", milli}, {"memory_mib", memory_mib}});
  }
  const Json main = {{"main", {{"gpus", list}}}};
  return {{"berth.dev/devices", Json{{"version", 1}, {"node", "n1"}, {"containers", main}}.dump()}};
}

TEST(RecordedDevices, OfBerthsOwnHaveTheAmountsOfTheRequestToo) {
  ExpectUnknown(BooksOf(PlainNode(), PodWithGpus("u", kGpus), BerthRecord(kGpus, 1, 1)), 8000,
                "whole GPUs");
  ExpectUnknown(BooksOf(PlainNode(), PodWithGpus("u", 1), BerthRecord(1, 10, 7)), 1000,
                "others would be put on the GPU that it takes wholly");
  const auto free = [](const Json& asks, const Texts& record) {
    AgentWorld world(PlainNode(), Giving());
    const auto& [key, value] = *record.begin();
    EXPECT_EQ(world.Show(PodAsking("u", asks), key, value), "");
    EXPECT_TRUE(world.Disputes().empty());
    return world.node().gpus()[0];
  };
  EXPECT_EQ(free({{"berth.dev/gpu-milli", "250"}}, BerthRecord(1, 250, kMib)),
            (GpuFree{.milli = 750, .memory_mib = kMib * 3 / 4}));
  EXPECT_EQ(free({{"berth.dev/gpu-memory-mib", "20000"}}, BerthRecord(1, 1000, 20'000)),
            (GpuFree{.milli = 750, .memory_mib = kMib * 3 / 4}));
}

// What was reserved is what is shown again, so that it is known from then on.
TEST(RecordedDevices, OfBerthsOwnAreWhatWasReserved) {
  AgentWorld world(PlainNode(), Giving());
  std::size_t disputed = 0;
  for (const Json& asks :
       {Json{{"berth.dev/gpu-milli", "333"}}, Json{{"berth.dev/gpu-memory-mib", "20001"}},
        Json{{"berth.dev/gpu-milli", "100"}, {"berth.dev/gpu-memory-mib", "7"}}}) {
    const Json pod = PodAsking(asks.dump(), asks);
    const Texts written = world.Bind(pod);
    const GpuFree reserved = world.node().gpus()[0];
    EXPECT_EQ(world.Show(pod, "berth.dev/devices", written.at("berth.dev/devices")), "");
    EXPECT_EQ(world.node().gpus()[0], reserved);
    EXPECT_EQ(world.Disputes().size(), disputed);
    world.PutNode(PlainNode());
    EXPECT_EQ(world.node().gpus()[0], reserved);
    world.Show(pod, "berth.dev/devices", BerthRecord(8, 1000, kMib).begin()->second);
    EXPECT_EQ(world.node().gpus()[0], reserved) << "it is known to have others";
    EXPECT_EQ(world.Disputes().size(), ++disputed);
  }
}

// --- MIG devices

Json MigRecord(int devices) {
  Json list = Json::array();
  for (int i = 0; i < devices; ++i) {
    list.push_back(
        {{"gpuUUID", Uuid(i)}, {"profile", "1g.10gb"}, {"placement", {{"start", 0}, {"size", 1}}}});
  }
  return list;
}

TEST(RecordedDevices, OfMigHideNoWholeGpus) {
  const std::string key = "hami.io/vgpu-mig-allocations";
  for (const Json& node : {PlainNode(), HamiNode()}) {
    const Texts one = {{key, MigRecord(1).dump()}};
    ExpectUnknown(BooksOf(node, PodWithGpus("u", kGpus), one), 8000, "one device");
    // As many as it asks for, and the node is not partitioned.
    const Books all = BooksOf(node, PodWithGpus("u", kGpus), {{key, MigRecord(kGpus).dump()}});
    EXPECT_EQ(all.held, 8000);
    EXPECT_EQ(all.unknown, 1);
  }
}

Json PartitionedNode() {
  Json list = Json::array();
  for (int gpu = 0; gpu < 2; ++gpu) {
    list.push_back(
        {{"id", Uuid(gpu)},
         {"index", gpu},
         {"count", 7},
         {"type", "NVIDIA-NVIDIA H100 80GB HBM3"},
         {"mode", "mig"},
         {"health", true},
         {"migProfiles",
          {{{"name", "1g.10gb"},
            {"memoryMB", 9984},
            {"placements", {{{"start", 0}, {"size", 1}}, {{"start", 1}, {"size", 1}}}}}}}});
  }
  return NodeWith({{"nvidia.com/gpu", "14"}}, {{"hami.io/node-nvidia-register", list.dump()}});
}

TEST(RecordedDevices, OfMigAreAsManyAsThePodAsksFor) {
  AgentWorld world(PartitionedNode());
  const std::string key = "hami.io/vgpu-mig-allocations";
  EXPECT_EQ(world.Show(PodWithGpus("u", 2), key, MigRecord(2).dump()), "");
  EXPECT_EQ(world.node().unattributed(), 0);
  EXPECT_NE(world.node().mig().taken()[0], 0U);
  EXPECT_NE(world.node().mig().taken()[1], 0U);
  EXPECT_TRUE(world.node().tenants().empty());
  const std::string more = world.Show(PodWithGpus("v", 1), key, MigRecord(2).dump());
  EXPECT_NE(more.find("want 1 MIG device, as the pod asks, got 2"), std::string::npos) << more;
}

// --- nodes that do not speak it

TEST(RecordedDevices, CountOnNodesOfTheAgentAlone) {
  for (const Agent& agent : Agents()) {
    const Books there = BooksOf(agent.node, Asking(agent, 2), agent.record(2, 100));
    EXPECT_EQ(there.problem, "") << agent.name;
    EXPECT_EQ(there.unknown, 0) << agent.name;
    EXPECT_EQ(there.held, 2000) << agent.name;
    const Books elsewhere = BooksOf(PlainNode(), Asking(agent, 2), agent.record(2, 100));
    EXPECT_EQ(elsewhere.problem, "") << agent.name;
    EXPECT_EQ(elsewhere.unknown, 1) << agent.name;
    EXPECT_EQ(elsewhere.held, 2000) << agent.name;
  }
}

TEST(RecordedDevices, CountOnceTheNodeShowsItsAgent) {
  AgentWorld world(PlainNode());
  const Json record = Json::parse(KoordinatorRecord(8, 100).begin()->second)["gpu"][6];
  world.Show(PodAsking("u", {{"koordinator.sh/gpu", "100"}}),
             "scheduling.koordinator.sh/device-allocated", Json{{"gpu", {record}}}.dump());
  EXPECT_EQ(world.node().unattributed(), 1);
  world.PutNode(KoordinatorNode());
  EXPECT_EQ(world.node().unattributed(), 0);
  EXPECT_EQ(world.node().gpus()[6].milli, 0);
  world.PutNode(PlainNode());
  EXPECT_EQ(world.node().unattributed(), 1);
  EXPECT_EQ(world.node().free_gpu_milli(), 7000);
}

// --- pods that the agents' own schedulers have bound

TEST(RecordedDevices, HaveTheAmountsOfTheRequestOnTheGpusOfTheRecord) {
  // Half of the memory in percent; the record has the MiB of another size of GPU.
  AgentWorld hami(HamiNode(), Giving());
  const Json half =
      PodAsking("u", {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem-percentage", "50"}});
  EXPECT_EQ(hami.Show(half, "hami.io/vgpu-devices-allocated", "GPU-3,NVIDIA,1,0:;"), "");
  EXPECT_EQ(hami.node().gpus()[3].milli, 500);
  EXPECT_EQ(hami.node().gpus()[3].memory_mib, kMib / 2);

  AgentWorld koordinator(KoordinatorNode());
  const Json ratio = PodAsking(
      "u", {{"koordinator.sh/gpu-core", "50"}, {"koordinator.sh/gpu-memory-ratio", "25"}});
  EXPECT_EQ(koordinator.Show(ratio, "scheduling.koordinator.sh/device-allocated",
                             R"({"gpu":[{"minor":5,"resources":{"koordinator.sh/gpu-core":"50",)"
                             R"("koordinator.sh/gpu-memory":"1Mi",)"
                             R"("koordinator.sh/gpu-memory-ratio":"25"}}]})"),
            "");
  EXPECT_EQ(koordinator.node().gpus()[5].milli, 500);
  EXPECT_EQ(koordinator.node().gpus()[5].memory_mib, kMib * 3 / 4);
}

Json TwoContainers(const Json& first, const Json& second) {
  Json pod = PodAsking("u", first);
  pod["spec"]["containers"].push_back({{"name", "b"}, {"resources", {{"limits", second}}}});
  return pod;
}

// HAMi's scheduler gives each container GPUs of its own.
TEST(RecordedDevices, MayBeOfOtherGpusForEachContainer) {
  AgentWorld world(HamiNode(), Giving());
  const Json pod = TwoContainers(
      {{"nvidia.com/gpu", "2"}, {"nvidia.com/gpumem", "3000"}, {"nvidia.com/gpucores", "30"}},
      {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "5000"}, {"nvidia.com/gpucores", "60"}});
  ASSERT_EQ(world.Decode(pod).refusal, "");
  EXPECT_EQ(world.Show(pod, "hami.io/vgpu-devices-allocated",
                       "GPU-1,NVIDIA,3000,30:GPU-2,NVIDIA,3000,30:;GPU-2,NVIDIA,5000,60:;"),
            "");
  EXPECT_EQ(world.node().gpus()[1], (GpuFree{.milli = 700, .users = 1, .memory_mib = 77'000}));
  EXPECT_EQ(world.node().gpus()[2], (GpuFree{.milli = 100, .users = 1, .memory_mib = 72'000}));
  EXPECT_EQ(world.node().unattributed(), 0);
  // Each container for itself: the second one asks for no more than it says.
  const std::string swapped = world.Show(pod, "hami.io/vgpu-devices-allocated",
                                         "GPU-1,NVIDIA,3000,30:;GPU-2,NVIDIA,5000,60:;");
  EXPECT_NE(swapped.find("container main: want 2 GPUs, as the pod asks, got 1"), std::string::npos)
      << swapped;
}

TEST(RecordedDevices, AreComparedWithEveryAmount) {
  const Json pod = PodAsking(
      "u", {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "3000"}, {"nvidia.com/gpucores", "30"}});
  const auto problem = [&](const char* text) {
    const std::string all =
        BooksOf(HamiNode(), pod, {{"hami.io/vgpu-devices-allocated", text}}).problem;
    const std::size_t at = all.find("container ");
    return at == std::string::npos ? all : all.substr(at);
  };
  EXPECT_EQ(problem("GPU-0,NVIDIA,3000,30:;"), "");
  EXPECT_EQ(problem("GPU-0,NVIDIA,3001,30:;"), "") << "rounded";
  EXPECT_EQ(problem("GPU-0,NVIDIA,3000,60:;"),
            "container main: want 300 milli of a GPU, as the pod asks, got 600");
  EXPECT_EQ(problem("GPU-0,NVIDIA,9000,30:;"),
            "container main: want 3000 MiB of a GPU, as the pod asks, got 9000");
  EXPECT_EQ(problem(";GPU-0,NVIDIA,3000,30:;"), "") << "in another container's place";
  const char* const two = "GPU-0,NVIDIA,3000,30:;GPU-1,NVIDIA,3000,30:;";
  EXPECT_NE(problem(two), "") << "of a container that is not there";
}

// --- pods that Berth refuses, and somebody has bound

TEST(RefusedPods, HoldWhatTheyAskForOnceTheyAreBound) {
  const auto held = [](const Json& pod) {
    AgentWorld world(PlainNode());
    EXPECT_NE(world.Decode(pod).refusal, "");
    world.Show(pod, "none.example/key", "");
    return kGpus * kMilliPerGpu - world.node().free_gpu_milli();
  };
  EXPECT_EQ(held(PodAsking("u", {{"nvidia.com/gpu", "8"}, {"berth.dev/gpu-milli", "1"}})), 8000)
      << "whole GPUs and a share";
  EXPECT_EQ(held(PodAsking("u", {{"nvidia.com/gpu", "65537"}})), 8000);
  EXPECT_EQ(held(PodAsking("u", {{"berth.dev/gpu-milli", "1500"}})), 1000);
  EXPECT_EQ(held(PodAsking("u", {{"koordinator.sh/gpu-core", "50"}})), 1000);
}

}  // namespace
}  // namespace berth::test::recorded_devices_test
