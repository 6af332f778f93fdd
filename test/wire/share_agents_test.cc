// SPDX-License-Identifier: Apache-2.0
//
// GPUs that the agents of other schedulers hand out in parts: what they publish, what their users
// ask for, what they read of a pod that Berth has bound, and what their own schedulers gave.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "scoring/registry.h"
#include "test/support/agent_world.h"

namespace berth::test::share_agents_test {
namespace {

Json Container(const std::string& name, const Json& limits) {
  return {{"name", name}, {"resources", {{"limits", limits}}}};
}

// --- HAMi

Json HamiNodeJson() {
  const Json list = {{{"id", "GPU-a"},
                      {"count", 10},
                      {"devmem", 40960},
                      {"devcore", 100},
                      {"type", "NVIDIA-A100"},
                      {"mode", "hami-core"},
                      {"health", true}},
                     {{"id", "GPU-b"},
                      {"index", 1},
                      {"count", 2},
                      {"devmem", 40960},
                      {"type", "NVIDIA-A100"},
                      {"mode", "hami-core"},
                      {"health", true}}};
  return NodeWith({{"nvidia.com/gpu", "12"}}, {{"hami.io/node-nvidia-register", list.dump()}});
}

Config GivingHami() {
  Config config = DefaultConfig();
  config.hami.give_devices = true;
  return config;
}

Json HamiPod(const std::string& uid, const char* memory, const char* cores = "0") {
  return PodAsking(
      uid,
      {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", memory}, {"nvidia.com/gpucores", cores}});
}

TEST(HamiShares, AreOfTheGpusOfTheRegisterWhereBerthGivesThem) {
  AgentWorld world(HamiNodeJson(), GivingHami());
  EXPECT_EQ(world.problem, "");
  const NodeSpec& spec = world.node().spec();
  EXPECT_EQ(spec.share_agent, "hami");
  EXPECT_EQ(spec.share_isolation, Isolation::kMemory);
  ASSERT_EQ(spec.gpus.size(), 2U);
  EXPECT_EQ(spec.gpus[1], (GpuSpec{"GPU-b", 40'960, true, 2}));
  EXPECT_EQ(spec.places.count, 0);
}

// HAMi up to 2.5.
TEST(HamiShares, AreThoseOfTheOlderRegisterToo) {
  const auto node_with = [](const std::string& text) {
    return NodeWith({{"nvidia.com/gpu", "12"}}, {{"hami.io/node-nvidia-register", text}});
  };
  const std::string seven =
      "GPU-a,10,40960,100,NVIDIA-NVIDIA A100,0,true:GPU-b,2,40960,100,NVIDIA-NVIDIA A100,1,true:";
  const std::string nine =
      "GPU-b,2,40960,100,NVIDIA-NVIDIA A100,1,true,1,hami-core:"
      "GPU-a,10,40960,100,NVIDIA-NVIDIA A100,0,true,0,hami-core:";
  for (const std::string& text : {seven, nine}) {
    AgentWorld world(node_with(text), GivingHami());
    EXPECT_EQ(world.problem, "");
    EXPECT_EQ(world.node().spec().gpu_model, "NVIDIA-A100");
    ASSERT_EQ(world.node().spec().gpus.size(), 2U);
    EXPECT_EQ(world.node().spec().gpus[1], (GpuSpec{"GPU-b", 40'960, true, 2}));
    EXPECT_EQ(world.Bind(HamiPod("a", "3000"))["hami.io/vgpu-devices-allocated"],
              "GPU-a,NVIDIA,3000,0:;");
  }
  AgentWorld wrong(node_with("GPU-a,many,40960,100,NVIDIA-A100,0,true:"), GivingHami());
  EXPECT_NE(wrong.problem.find("[0]: want a number for count"), std::string::npos) << wrong.problem;
  // It does not say where MIG devices can begin.
  for (const char* const text : {"GPU-a,7,81920,100,NVIDIA-A100,0,true,0,mig:", "GPU-a,7:"}) {
    AgentWorld other(node_with(text), GivingHami());
    EXPECT_TRUE(other.node().spec().places.foreign) << text;
    EXPECT_TRUE(other.node().spec().gpus.empty()) << text;
  }
}

// A GPU that is listed twice is one, and of too many as many are given as Berth counts.
TEST(HamiShares, AreOfEachGpuOnce) {
  const auto node_with = [](const std::string& text) {
    return NodeWith({{"nvidia.com/gpu", "12"}}, {{"hami.io/node-nvidia-register", text}});
  };
  const std::string once = ",10,40960,100,NVIDIA-A100,0,true:";
  AgentWorld twice(node_with("GPU-a" + once + "GPU-b" + once + "GPU-a" + once), GivingHami());
  EXPECT_EQ(twice.problem, "GPU GPU-a is registered twice");
  ASSERT_EQ(twice.node().spec().gpus.size(), 2U);
  EXPECT_EQ(twice.node().spec().gpus[1].uuid, "GPU-b");
  AgentWorld offered(
      NodeWith({{"nvidia.com/gpu", "20"}}, {{"hami.io/node-nvidia-register",
                                             "GPU-a" + once + "GPU-b" + once + "GPU-a" + once}}),
      GivingHami());
  EXPECT_EQ(offered.node().spec().missing, 0) << "the plugin offers ten of each";
  std::string many;
  for (int gpu = 0; gpu < 65; ++gpu) many += "GPU-" + std::to_string(gpu) + once;
  AgentWorld more(node_with(many), GivingHami());
  EXPECT_EQ(more.problem, "want at most 64 registered GPUs, got more");
  EXPECT_EQ(more.node().spec().gpus.size(), 64U);
}

TEST(HamiShares, AreHamisWhereItsRegisterListsNothing) {
  for (const char* const text : {"", ":", "[]"}) {
    for (const bool gives : {false, true}) {
      const Texts annotations = {{"hami.io/node-nvidia-register", text}};
      const Json node = NodeWith({{"nvidia.com/gpu", "20"}}, annotations);
      AgentWorld world = gives ? AgentWorld(node, GivingHami()) : AgentWorld(node);
      EXPECT_TRUE(world.node().spec().places.foreign) << text;
      EXPECT_TRUE(world.node().spec().gpus.empty()) << text;
    }
  }
}

TEST(HamiShares, AreWrittenAsHamisPluginReadsThem) {
  AgentWorld world(HamiNodeJson(), GivingHami());
  Texts written = world.Bind(HamiPod("a", "30000", "30"));
  EXPECT_EQ(written["hami.io/vgpu-devices-allocated"], "GPU-a,NVIDIA,30000,30:;");
  EXPECT_EQ(written["hami.io/vgpu-devices-to-allocate"], "GPU-a,NVIDIA,30000,30:;");
  EXPECT_EQ(written["hami.io/vgpu-node"], "n1");
  EXPECT_EQ(written["hami.io/vgpu-time"], "1724212800");
  EXPECT_EQ(written["hami.io/bind-phase"], "allocating");
  EXPECT_FALSE(written.contains("hami.io/vgpu-mig-allocations"));
  EXPECT_TRUE(written.contains("berth.dev/devices"));

  EXPECT_EQ(world.Bind(HamiPod("b", "20000"))["hami.io/vgpu-devices-allocated"],
            "GPU-b,NVIDIA,20000,0:;")
      << "compute of its own was not asked for";
  EXPECT_EQ(world.Check(HamiPod("c", "30000")), Reason::kShareBusy);
  const Json percent =
      PodAsking("d", {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem-percentage", "50"}});
  EXPECT_EQ(world.Bind(percent)["hami.io/vgpu-devices-allocated"], "GPU-b,NVIDIA,20480,0:;");
}

TEST(HamiShares, HaveASegmentForEachContainerInitContainersFirst) {
  AgentWorld world(HamiNodeJson(), GivingHami());
  Json pod = HamiPod("a", "8000", "20");
  const Json half = {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "4000"}};
  pod["spec"]["initContainers"] = Json::array({Container("first", half)});
  pod["spec"]["containers"].push_back(Container("plain", {{"cpu", "1"}}));
  pod["spec"]["containers"].push_back(Container("b", half));
  EXPECT_EQ(world.Bind(pod)["hami.io/vgpu-devices-to-allocate"],
            "GPU-a,NVIDIA,4000,0:;GPU-a,NVIDIA,8000,20:;;GPU-a,NVIDIA,4000,0:;");
  EXPECT_EQ(world.node().gpus()[0].memory_mib, 40'960 - 12'000);
}

TEST(HamiShares, OfSeveralGpusAreOfAsManyCards) {
  AgentWorld world(HamiNodeJson(), GivingHami());
  ASSERT_FALSE(world.Bind(HamiPod("a", "10000", "50")).empty());
  Json two = PodAsking(
      "b", {{"nvidia.com/gpu", "2"}, {"nvidia.com/gpumem", "8000"}, {"nvidia.com/gpucores", "20"}});
  two["spec"]["containers"].push_back(
      Container("b", {{"nvidia.com/gpu", "2"}, {"nvidia.com/gpumem", "4000"}}));
  EXPECT_EQ(world.Decode(two).shape.gpus,
            GpuAsk(GpuShare{.milli = 200, .memory_mib = 12'000, .count = 2}));
  const Texts written = world.Bind(two);
  EXPECT_EQ(written.at("hami.io/vgpu-devices-to-allocate"),
            "GPU-a,NVIDIA,8000,20:GPU-b,NVIDIA,8000,20:;GPU-a,NVIDIA,4000,0:GPU-b,NVIDIA,4000,0:;");
  EXPECT_EQ(world.node().gpus()[0], (GpuFree{.milli = 300, .users = 2, .memory_mib = 18'960}));
  EXPECT_EQ(world.node().gpus()[1], (GpuFree{.milli = 800, .users = 1, .memory_mib = 28'960}));
  // A restart reads the same from what was written.
  Json bound = two;
  bound["spec"]["nodeName"] = "n1";
  for (const auto& [key, value] : written) bound["metadata"]["annotations"][key] = value;
  const wire::ObservedPod observed = world.Observe(bound);
  EXPECT_EQ(observed.problem, "");
  EXPECT_EQ(observed.placement.grants,
            (std::vector<DeviceGrant>{{0, 200, 12'000, "GPU-a", DeviceGrant::kAsAsked},
                                      {1, 200, 12'000, "GPU-b", DeviceGrant::kAsAsked}}));
  const Json three = PodAsking("c", {{"nvidia.com/gpu", "3"}, {"nvidia.com/gpumem", "1"}});
  EXPECT_EQ(world.Check(three), Reason::kTooFewGpus);
  const Json large = PodAsking("d", {{"nvidia.com/gpu", "2"}, {"nvidia.com/gpumem", "19000"}});
  EXPECT_EQ(world.Check(large), Reason::kShareBusy);
}

// What it is once a restart has read it from what was written.
wire::ObservedPod ReadAgain(AgentWorld& world, Json pod, const Texts& written,
                            const std::string& but = "") {
  pod["spec"]["nodeName"] = "n1";
  for (const auto& [key, value] : written) {
    if (key != but) pod["metadata"]["annotations"][key] = value;
  }
  wire::ObservedPod observed = world.Observe(pod);
  EXPECT_EQ(observed.problem, "");
  return observed;
}

TEST(HamiShares, OfContainersThatNoGpuHasRoomForAreOfSeveral) {
  AgentWorld world(HamiNodeJson(), GivingHami());
  Json pair = HamiPod("pair", "30000", "10");
  pair["spec"]["initContainers"] =
      Json::array({Container("first", {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "35000"}})});
  Json three = HamiPod("three", "30000", "10");
  const Json half = {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "30000"}};
  pair["spec"]["containers"].push_back(Container("b", half));
  for (const char* name : {"b", "c"}) three["spec"]["containers"].push_back(Container(name, half));
  EXPECT_EQ(world.Check(three), Reason::kShareNeverFits);

  const Texts written = world.Bind(pair);
  EXPECT_EQ(written.at("hami.io/vgpu-devices-to-allocate"),
            "GPU-a,NVIDIA,35000,0:;GPU-a,NVIDIA,30000,10:;GPU-b,NVIDIA,30000,0:;");
  EXPECT_EQ(world.node().gpus()[0], (GpuFree{.milli = 900, .users = 1, .memory_mib = 5'960}));
  EXPECT_EQ(world.node().gpus()[1], (GpuFree{.milli = 268, .users = 1, .memory_mib = 10'960}));
  EXPECT_EQ(world.Check(HamiPod("next", "11000")), Reason::kShareBusy);
  EXPECT_NE(world.Bind(HamiPod("last", "10000"))["hami.io/vgpu-devices-allocated"], "");
  EXPECT_EQ(world.Check(pair), Reason::kShareBusy) << "two of them would fit the empty node";

  // A restart reads the same, of Berth's own annotation and of HAMi's alone.
  AgentWorld later(HamiNodeJson(), GivingHami());
  EXPECT_EQ(ReadAgain(later, pair, written).placement.grants,
            (std::vector<DeviceGrant>{
                {.gpu = 0,
                 .milli = 100,
                 .memory_mib = 35'000,
                 .uuid = "GPU-a",
                 .memory_milli = DeviceGrant::kAsAsked,
                 .containers = 3},
                {.gpu = 1, .milli = 0, .memory_mib = 30'000, .uuid = "GPU-b", .containers = 4}}));
  EXPECT_EQ(later.Show(pair, "hami.io/vgpu-devices-allocated",
                       written.at("hami.io/vgpu-devices-allocated")),
            "");
  EXPECT_EQ(later.node().gpus()[0], (GpuFree{.milli = 900, .users = 1, .memory_mib = 5'960}));
  EXPECT_EQ(later.node().gpus()[1], (GpuFree{.milli = 268, .users = 1, .memory_mib = 10'960}));
  EXPECT_TRUE(later.Observe(pair).pod.shape.may_divide());
}

TEST(HamiShares, OfContainersMayBeOfDifferentNumbersOfGpus) {
  AgentWorld world(HamiNodeJson(), GivingHami());
  Json pod = HamiPod("a", "3000");
  pod["spec"]["containers"].push_back(
      Container("b", {{"nvidia.com/gpu", "2"}, {"nvidia.com/gpumem", "5000"}}));
  const Texts written = world.Bind(pod);
  EXPECT_EQ(written.at("hami.io/vgpu-devices-to-allocate"),
            "GPU-a,NVIDIA,3000,0:;GPU-a,NVIDIA,5000,0:GPU-b,NVIDIA,5000,0:;");
  EXPECT_EQ(world.node().gpus()[0].memory_mib, 32'960);
  EXPECT_EQ(world.node().gpus()[1].memory_mib, 35'960);
  // Percent that add up to more than one GPU.
  const auto percent = [](const char* of_gpu) {
    return Json{{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem-percentage", of_gpu}};
  };
  Json shares = PodAsking("b", percent("60"));
  shares["spec"]["containers"].push_back(Container("b", percent("70")));
  EXPECT_EQ(world.Bind(shares).at("hami.io/vgpu-devices-to-allocate"),
            "GPU-a,NVIDIA,24576,0:;GPU-b,NVIDIA,28672,0:;");
}

// A record in Berth's words is believed only if every container has what it asks for.
TEST(HamiShares, OfContainersAreReadAsTheyWereDivided) {
  AgentWorld world(HamiNodeJson(), GivingHami());
  Json pair = HamiPod("pair", "30000");
  pair["spec"]["containers"].push_back(
      Container("b", {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "30000"}}));
  const auto problem = [&](const Json& containers) {
    Json bound = pair;
    bound["spec"]["nodeName"] = "n1";
    bound["metadata"]["annotations"]["berth.dev/devices"] =
        Json{{"version", 1}, {"node", "n1"}, {"containers", containers}}.dump();
    const wire::ObservedPod observed = world.Observe(bound);
    EXPECT_EQ(observed.problem.empty(), observed.placement.grants.size() == 2) << observed.problem;
    return observed.problem;
  };
  const auto of = [](int gpu, int memory_mib, int milli = 733) {
    return Json{
        {"gpus", Json::array({{{"index", gpu}, {"milli", milli}, {"memory_mib", memory_mib}}})}};
  };
  EXPECT_EQ(problem({{"main", of(0, 30000)}, {"b", of(1, 30000)}}), "");
  EXPECT_NE(problem({{"main", of(0, 30000)}}), "") << "one has none";
  EXPECT_NE(problem({{"main", of(0, 30000)}, {"b", of(1, 10)}}), "") << "one has less";
  EXPECT_NE(problem({{"main", of(0, 30000)}, {"b", Json::object()}}), "");
}

TEST(HamiShares, MayHaveOtherPercentOfComputeThanOfMemory) {
  AgentWorld world(HamiNodeJson(), GivingHami());
  Json pod = PodAsking("a", {{"nvidia.com/gpu", "1"},
                             {"nvidia.com/gpumem-percentage", "50"},
                             {"nvidia.com/gpucores", "30"}});
  pod["spec"]["containers"].push_back(
      Container("b", {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem-percentage", "25"}}));
  EXPECT_EQ(world.Decode(pod).shape.gpus, GpuAsk(GpuShare{.milli = 300, .memory_milli = 750}));
  EXPECT_EQ(world.Bind(pod)["hami.io/vgpu-devices-allocated"],
            "GPU-a,NVIDIA,20480,30:;GPU-a,NVIDIA,10240,0:;");
  EXPECT_EQ(world.node().gpus()[0].memory_mib, 10'240);
}

TEST(HamiShares, OfGpusThatArePickedByUuidAreOfThese) {
  AgentWorld world(HamiNodeJson(), GivingHami());
  const auto on = [](const char* key, const char* uuids, Json pod) {
    pod["metadata"]["annotations"][key] = uuids;
    return pod;
  };
  const auto check = [&world](const Json& pod) {
    return FirstObjection(world.node(), world.Decode(pod).shape);
  };
  const char* const use = "nvidia.com/use-gpuuuid";
  EXPECT_EQ(world.Bind(on(use, "GPU-x, GPU-b", HamiPod("a", "30000")))
                .at("hami.io/vgpu-devices-allocated"),
            "GPU-b,NVIDIA,30000,0:;");
  EXPECT_EQ(check(on(use, "GPU-b", HamiPod("b", "30000"))), Reason::kShareBusy);
  EXPECT_EQ(check(on(use, "gpu-a", HamiPod("b", "1"))), Reason::kGpuMismatch) << "as it is written";
  const Json whole = PodAsking("c", {{"nvidia.com/gpu", "1"}});
  EXPECT_EQ(check(on("nvidia.com/nouse-gpuuuid", "GPU-a", whole)), Reason::kGpusBusy);
  EXPECT_EQ(check(on(use, "GPU-b", PodAsking("d", {{"nvidia.com/gpu", "2"}}))),
            Reason::kGpuMismatch);
  EXPECT_EQ(world.Bind(on(use, "GPU-a", whole)).at("hami.io/vgpu-devices-allocated"),
            "GPU-a,NVIDIA,40960,100:;");
}

TEST(HamiShares, StopAtTheUsersThatThePluginServesOfAGpu) {
  AgentWorld world(HamiNodeJson(), GivingHami());
  ASSERT_FALSE(world.Bind(HamiPod("a", "40960")).empty());
  for (const char* uid : {"b", "c"}) {
    EXPECT_EQ(world.Bind(HamiPod(uid, "100"))["hami.io/vgpu-devices-allocated"],
              "GPU-b,NVIDIA,100,0:;");
  }
  EXPECT_EQ(world.Check(HamiPod("d", "100")), Reason::kShareBusy);
}

TEST(HamiShares, WithoutAPartAreWholeGpus) {
  AgentWorld world(HamiNodeJson(), GivingHami());
  const Json two = PodAsking("a", {{"nvidia.com/gpu", "2"}});
  EXPECT_EQ(world.Bind(two)["hami.io/vgpu-devices-allocated"],
            "GPU-a,NVIDIA,40960,100:GPU-b,NVIDIA,40960,100:;");
  const Json cores = PodAsking("b", {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpucores", "40"}});
  EXPECT_EQ(world.Decode(cores).shape.gpus, GpuAsk(WholeGpus{1})) << "all of the memory";
}

TEST(HamiShares, ThatCannotBeMeantAreRefusedWithTheWord) {
  AgentWorld world(HamiNodeJson(), GivingHami());
  const auto refusal = [&](const Json& asks) { return world.Decode(PodAsking("a", asks)).refusal; };
  EXPECT_EQ(refusal({{"nvidia.com/gpumem", "3000"}}),
            "container main: nvidia.com/gpumem: want nvidia.com/gpu beside it, got none");
  EXPECT_EQ(refusal({{"nvidia.com/gpu", "1"},
                     {"nvidia.com/gpumem-percentage", "30"},
                     {"nvidia.com/gpumem", "3000"}}),
            "container main: nvidia.com/gpumem-percentage beside nvidia.com/gpumem: want one of "
            "the two");
  EXPECT_EQ(refusal({{"nvidia.com/gpu", "65"}, {"nvidia.com/gpumem", "3000"}}),
            "pod asks for more GPUs than any node has");
  Json counts = HamiPod("a", "3000");
  for (int i = 0; i < 16; ++i) {
    counts["spec"]["containers"].push_back(
        Container("b" + std::to_string(i), {{"nvidia.com/gpu", "2"}, {"nvidia.com/gpumem", "1"}}));
  }
  EXPECT_EQ(world.Decode(counts).refusal,
            "container b0: nvidia.com/gpu: want as many as in the containers before it (1), since "
            "so many containers share the same GPUs, got 2");
  counts["spec"]["containers"].erase(3);
  EXPECT_EQ(world.Decode(counts).refusal, "");
  Json mixed = HamiPod("a", "3000");
  mixed["spec"]["containers"].push_back(
      Container("b", {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem-percentage", "30"}}));
  EXPECT_NE(world.Decode(mixed).refusal.find("container b: want nvidia.com/gpumem in all"),
            std::string::npos);
  Json words = HamiPod("a", "3000");
  words["spec"]["containers"].push_back(Container("b", {{"berth.dev/gpu-milli", "300"}}));
  EXPECT_EQ(world.Decode(words).refusal, "pod asks for GPU shares through several agents");
  Json mode = HamiPod("a", "3000");
  mode["metadata"]["annotations"]["nvidia.com/vgpu-mode"] = "mps";
  EXPECT_NE(world.Decode(mode).refusal, "");
  mode["metadata"]["annotations"]["nvidia.com/vgpu-mode"] = "hami-core";
  EXPECT_EQ(world.Decode(mode).refusal, "");
}

TEST(HamiShares, ThatItsSchedulerGaveCountOnTheGpuOfTheUuid) {
  AgentWorld world(HamiNodeJson(), GivingHami());
  const std::string key = "hami.io/vgpu-devices-allocated";
  EXPECT_EQ(world.Show(HamiPod("a", "10240", "60"), key, "GPU-b,NVIDIA,10240,60:;"), "");
  EXPECT_EQ(world.node().gpus()[1], (GpuFree{.milli = 400, .users = 1, .memory_mib = 30'720}));
  // Without cores the compute goes with the memory; several containers and GPUs add up.
  Json three = PodAsking("b", {{"cpu", "1"}});
  for (const char* gpus : {"2", "1"}) {
    three["spec"]["containers"].push_back(
        Container(gpus, {{"nvidia.com/gpu", gpus}, {"nvidia.com/gpumem", "4096"}}));
  }
  EXPECT_EQ(
      world.Show(three, key, ";GPU-a,NVIDIA,4096,0:GPU-b,NVIDIA,4096,0:;GPU-a,NVIDIA,4096,0:;"),
      "");
  EXPECT_EQ(world.node().gpus()[0].memory_mib, 40'960 - 8192);
  EXPECT_EQ(world.node().gpus()[0].milli, 800);
  EXPECT_EQ(world.node().gpus()[1].milli, 300);
  EXPECT_EQ(world.node().gpus()[1].users, 2);
  EXPECT_TRUE(world.Disputes().empty());
}

TEST(HamiShares, ThatCannotBeReadCountAsWholeGpusAndAreTold) {
  AgentWorld world(HamiNodeJson(), GivingHami());
  EXPECT_NE(world.Show(HamiPod("a", "3000"), "hami.io/vgpu-devices-allocated", "GPU-a,NVIDIA,3000"),
            "");
  EXPECT_EQ(world.node().unattributed(), 1);
  world.Show(HamiPod("b", "3000"), "hami.io/vgpu-devices-allocated", "GPU-x,NVIDIA,3000,0:;");
  EXPECT_EQ(world.Disputes().size(), 1U) << "the node has no such GPU";
}

TEST(HamiShares, AreLeftToHamisSchedulerByDefault) {
  AgentWorld world(HamiNodeJson());
  EXPECT_TRUE(world.node().spec().places.foreign);
  EXPECT_NE(world.Decode(HamiPod("a", "3000")).refusal, "");
  EXPECT_EQ(
      world.Show(HamiPod("a", "3000"), "hami.io/vgpu-devices-allocated", "GPU-a,NVIDIA,3000,0:;"),
      "");
  EXPECT_EQ(world.node().places_taken(), 1);
  EXPECT_TRUE(world.Disputes().empty());
}

TEST(HamiShares, OfOtherWordsStayAway) {
  AgentWorld world(HamiNodeJson(), GivingHami());
  EXPECT_EQ(world.Check(PodAsking("a", {{"berth.dev/gpu-milli", "300"}})),
            Reason::kShareOfOtherAgent);
  EXPECT_EQ(world.Check(PodAsking("a", {{"aliyun.com/gpu-mem", "3"}})), Reason::kShareOfOtherAgent);
  AgentWorld plain(NodeWith({{"nvidia.com/gpu", "2"}}, {{"berth.dev/gpu-uuids", "GPU-a,GPU-b"}}),
                   GivingHami());
  EXPECT_EQ(plain.Check(HamiPod("a", "3000")), Reason::kShareOfOtherAgent);
}

TEST(HamiShares, KeepMemoryApart) {
  AgentWorld world(HamiNodeJson(), GivingHami());
  Json pod = HamiPod("a", "3000");
  pod["metadata"]["annotations"]["berth.dev/isolation"] = "memory";
  EXPECT_EQ(world.Check(pod), Reason::kFits);
}

TEST(HamiShares, AreNotGivenOfGpusThatThePluginDoesNotServe) {
  Json node = HamiNodeJson();
  node["metadata"]["annotations"]["hami.io/device-cordon"] = "GPU-a";
  AgentWorld cordoned(node, GivingHami());
  EXPECT_EQ(cordoned.Bind(HamiPod("a", "3000"))["hami.io/vgpu-devices-allocated"],
            "GPU-b,NVIDIA,3000,0:;");
  node["status"]["allocatable"]["nvidia.com/gpu"] = "0";
  AgentWorld gone(node, GivingHami());
  EXPECT_EQ(gone.Check(HamiPod("a", "3000")), Reason::kNoGpuOffered);
}

// --- Volcano

Json VolcanoNodeJson(const std::string& mode = "hami-core") {
  const std::string text =
      "GPU-a,10,81920,NVIDIA-A100,true," + mode + ":GPU-b,10,81920,NVIDIA-A100,false," + mode + ":";
  return NodeWith({{"volcano.sh/vgpu-number", "20"}}, {{"volcano.sh/node-vgpu-register", text}});
}

Json VolcanoPod(const std::string& uid, const char* memory) {
  return PodAsking(uid, {{"volcano.sh/vgpu-number", "1"},
                         {"volcano.sh/vgpu-memory", memory},
                         {"volcano.sh/vgpu-cores", "30"}});
}

TEST(VolcanoShares, AreWrittenAsVolcanosPluginReadsThem) {
  AgentWorld world(VolcanoNodeJson());
  EXPECT_EQ(world.problem, "");
  EXPECT_EQ(world.node().spec().share_agent, "volcano");
  Json pod = VolcanoPod("a", "20000");
  pod["spec"]["initContainers"] = Json::array({Container("first", {{"cpu", "1"}})});
  pod["spec"]["containers"].insert(pod["spec"]["containers"].begin(),
                                   Container("plain", {{"cpu", "1"}}));
  Texts written = world.Bind(pod);
  EXPECT_EQ(written["volcano.sh/vgpu-ids-new"], ";GPU-a,NVIDIA,20000,30:") << "no init containers";
  EXPECT_EQ(written["volcano.sh/devices-to-allocate"], ";GPU-a,NVIDIA,20000,30:");
  EXPECT_EQ(written["volcano.sh/vgpu-node"], "n1");
  EXPECT_EQ(written["volcano.sh/vgpu-time"], "1724212800");
  EXPECT_EQ(written["volcano.sh/bind-phase"], "allocating");
  EXPECT_EQ(world.node().gpus()[0].memory_mib, 61'920);
  EXPECT_EQ(world.Check(VolcanoPod("b", "70000")), Reason::kShareBusy) << "GPU-b is not healthy";
}

TEST(VolcanoShares, AndWholeGpusAreOfNodesOfVolcanoAlone) {
  AgentWorld world(VolcanoNodeJson());
  EXPECT_EQ(world.Check(PodAsking("a", {{"nvidia.com/gpu", "1"}})), Reason::kOtherResource);
  const Json whole = PodAsking("a", {{"volcano.sh/vgpu-number", "1"}});
  EXPECT_EQ(world.Bind(whole)["volcano.sh/vgpu-ids-new"], "GPU-a,NVIDIA,81920,100:");
  AgentWorld plain(NodeWith({{"nvidia.com/gpu", "2"}}, {}));
  EXPECT_EQ(plain.Check(whole), Reason::kOtherResource);
}

TEST(VolcanoShares, ThatItsSchedulerGaveCountOnTheGpuOfTheUuid) {
  AgentWorld world(VolcanoNodeJson());
  EXPECT_EQ(
      world.Show(VolcanoPod("a", "40960"), "volcano.sh/vgpu-ids-new", "GPU-a,NVIDIA,40960,30:"),
      "");
  EXPECT_EQ(world.node().gpus()[0], (GpuFree{.milli = 700, .users = 1, .memory_mib = 40'960}));
}

TEST(VolcanoShares, OfSeveralGpusAndOfCertainOnes) {
  AgentWorld world(NodeWith({{"volcano.sh/vgpu-number", "30"}},
                            {{"volcano.sh/node-vgpu-register",
                              "GPU-a,10,81920,NVIDIA-A100,true,hami-core:GPU-b,10,81920,"
                              "NVIDIA-A100,true,hami-core:GPU-c,10,81920,NVIDIA-A100,true,:"}}));
  Json two = PodAsking("a", {{"volcano.sh/vgpu-number", "2"},
                             {"volcano.sh/vgpu-memory-percentage", "25"},
                             {"volcano.sh/vgpu-cores", "10"}});
  two["metadata"]["annotations"]["volcano.sh/vgpu-nouse-gpuuuid"] = "GPU-b";
  EXPECT_EQ(world.Bind(two)["volcano.sh/vgpu-ids-new"],
            "GPU-a,NVIDIA,20480,10:GPU-c,NVIDIA,20480,10:");
  Json one = VolcanoPod("b", "1000");
  one["metadata"]["annotations"]["volcano.sh/vgpu-use-gpuuuid"] = "GPU-b";
  EXPECT_EQ(world.Bind(one)["volcano.sh/vgpu-ids-new"], "GPU-b,NVIDIA,1000,30:");
}

TEST(VolcanoShares, OfContainersThatNoGpuHasRoomForAreOfSeveral) {
  AgentWorld world(NodeWith({{"volcano.sh/vgpu-number", "20"}},
                            {{"volcano.sh/node-vgpu-register",
                              "GPU-a,10,40960,NVIDIA-A100,true,hami-core:GPU-b,10,40960,"
                              "NVIDIA-A100,true,hami-core:"}}));
  Json pair = VolcanoPod("a", "30000");
  pair["spec"]["containers"].push_back(Container("plain", {{"cpu", "1"}}));
  pair["spec"]["containers"].push_back(
      Container("b", {{"volcano.sh/vgpu-number", "1"}, {"volcano.sh/vgpu-memory", "30000"}}));
  EXPECT_EQ(world.Bind(pair)["volcano.sh/vgpu-ids-new"],
            "GPU-a,NVIDIA,30000,30:;;GPU-b,NVIDIA,30000,0:");
}

TEST(VolcanoShares, AreCountedInTheUnitOfThePlugin) {  // gpuMemoryFactor 10
  Json json = VolcanoNodeJson();
  json["metadata"]["labels"]["nvidia.com/gpu.memory"] = "819200";
  AgentWorld world(json);
  EXPECT_EQ(world.node().spec().gpus[0].memory_mib, 819'200);
  EXPECT_EQ(world.Bind(VolcanoPod("a", "20000"))["volcano.sh/vgpu-ids-new"],
            "GPU-a,NVIDIA,20000,30:");
  EXPECT_EQ(world.node().gpus()[0].memory_mib, 619'200);
  EXPECT_EQ(
      world.Show(VolcanoPod("b", "60000"), "volcano.sh/vgpu-ids-new", "GPU-a,NVIDIA,60000,30:"),
      "");
  EXPECT_EQ(world.node().gpus()[0].memory_mib, 19'200);
  AgentWorld anew(json);  // after a restart, by what Berth wrote
  EXPECT_EQ(anew.Show(VolcanoPod("a", "20000"), "berth.dev/devices",
                      R"({"version":1,"node":"n1","containers":{"main":{"gpus":[)"
                      R"({"index":0,"uuid":"GPU-a","milli":300,"memory_mib":20000}]}}})"),
            "");
  EXPECT_EQ(anew.node().gpus()[0], (GpuFree{.milli = 700, .users = 1, .memory_mib = 619'200}));
}

TEST(VolcanoShares, ThatThePluginWouldNotServeAreRefused) {
  AgentWorld world(VolcanoNodeJson());
  Json init = VolcanoPod("a", "3000");
  init["spec"]["initContainers"] = init["spec"]["containers"];
  EXPECT_EQ(world.Decode(init).refusal,
            "container main: volcano.sh/vgpu-number: want it in spec.containers, since Volcano's "
            "device plugin serves no others");
  Json chosen = VolcanoPod("a", "3000");
  chosen["metadata"]["annotations"]["volcano.sh/vgpu-mode"] = "mig";
  EXPECT_EQ(world.Decode(chosen).refusal,
            "annotation volcano.sh/vgpu-mode: want hami-core, got \"mig\", which only Volcano's "
            "scheduler assigns");
  AgentWorld mig(VolcanoNodeJson("mig"));
  EXPECT_NE(mig.problem.find("GPUs of mode \"mig\""), std::string::npos);
  EXPECT_EQ(mig.Check(VolcanoPod("a", "3000")), Reason::kGpusForeign) << "none of them is sick";
  EXPECT_TRUE(mig.node().spec().gpus.empty());
  EXPECT_EQ(mig.node().spec().places.gpus, 2);
  AgentWorld twice(
      NodeWith({{"volcano.sh/vgpu-number", "20"}},
               {{"volcano.sh/node-vgpu-register", "GPU-a,10,1,x,true,:GPU-a,10,1,x,true,:"}}));
  EXPECT_EQ(twice.node().spec().gpus.size(), 1U) << "one GPU is given once";
  AgentWorld both(NodeWith({{"volcano.sh/vgpu-number", "20"}},
                           {{"volcano.sh/node-vgpu-register",
                             "GPU-a,10,1,x,true,:GPU-a,10,1,x,true,:GPU-b,10,1,x,true,mig:"}}));
  EXPECT_NE(both.problem.find("GPUs of mode \"mig\""), std::string::npos) << both.problem;
  EXPECT_NE(both.problem.find("GPU GPU-a is registered twice"), std::string::npos) << both.problem;
  AgentWorld bad(NodeWith({{"volcano.sh/vgpu-number", "20"}},
                          {{"volcano.sh/node-vgpu-register", "GPU-a,ten,1,x,true,:"}}));
  EXPECT_NE(bad.problem.find("[0]: want UUID,COUNT,MIB,TYPE,HEALTHY,MODE"), std::string::npos);
  EXPECT_EQ(bad.Check(VolcanoPod("a", "3000")), Reason::kNoGpu);
}

// --- gpushare

Json GpushareNodeJson(const char* units, const char* count = "2") {
  return NodeWith({{"aliyun.com/gpu-mem", units}, {"aliyun.com/gpu-count", count}}, {});
}

Json GpusharePod(const std::string& uid, const char* units) {
  return PodAsking(uid, {{"aliyun.com/gpu-mem", units}});
}

TEST(GpushareShares, AreWrittenAsItsPluginReadsThem) {
  AgentWorld world(GpushareNodeJson("30"));
  EXPECT_EQ(world.problem, "");
  ASSERT_EQ(world.node().gpus().size(), 2U);
  EXPECT_EQ(world.node().gpus()[0].memory_mib, 15 * 1024);
  ASSERT_FALSE(world.Bind(GpusharePod("a", "8")).empty());
  Texts written = world.Bind(GpusharePod("b", "9"));
  EXPECT_EQ(written["ALIYUN_COM_GPU_MEM_IDX"], "1");
  EXPECT_EQ(written["ALIYUN_COM_GPU_MEM_DEV"], "15");
  EXPECT_EQ(written["ALIYUN_COM_GPU_MEM_POD"], "9");
  EXPECT_EQ(written["ALIYUN_COM_GPU_MEM_ASSIGNED"], "false");
  EXPECT_EQ(written["ALIYUN_COM_GPU_MEM_ASSUME_TIME"], "1724212800000000000");
  EXPECT_EQ(world.Check(GpusharePod("c", "8")), Reason::kShareBusy);
  EXPECT_EQ(world.Check(GpusharePod("c", "16")), Reason::kShareNeverFits);
}

TEST(GpushareShares, AreInTheUnitOfTheConfiguration) {
  Config mib = DefaultConfig();
  mib.gpushare.memory_unit = MemoryUnit::kMib;
  AgentWorld world(GpushareNodeJson("30218"), mib);
  EXPECT_EQ(world.problem, "");
  EXPECT_EQ(world.Bind(GpusharePod("a", "3000"))["ALIYUN_COM_GPU_MEM_POD"], "3000");
  EXPECT_EQ(world.node().gpus()[0].memory_mib, 15'109 - 3000);
  AgentWorld wrong(GpushareNodeJson("30218"));
  EXPECT_EQ(wrong.problem,
            "aliyun.com/gpu-mem: want GiB (gpushare.memoryUnit), got 15109 for each GPU");
  EXPECT_EQ(wrong.Check(GpusharePod("a", "3")), Reason::kNoGpu);
  EXPECT_NE(AgentWorld(GpushareNodeJson("30"), mib).problem, "");
  AgentWorld without(GpushareNodeJson("30", "0"));
  EXPECT_EQ(without.problem, "") << "ACK's plugin offers no number, and its scheduler gives these";
  EXPECT_NE(without.node().spec().agent_lacks, "");
}

TEST(GpushareShares, ThatItsExtenderGaveCountOnTheGpuOfTheIndex) {
  AgentWorld world(GpushareNodeJson("30"));
  EXPECT_EQ(world.Show(GpusharePod("a", "6"), "ALIYUN_COM_GPU_MEM_IDX", "1"), "");
  EXPECT_EQ(world.node().gpus()[1].memory_mib, 9 * 1024);
  EXPECT_EQ(world.node().gpus()[1].milli, 600);
  EXPECT_TRUE(world.node().gpus()[0].idle());
  EXPECT_NE(world.Show(GpusharePod("b", "6"), "ALIYUN_COM_GPU_MEM_IDX", "-1"), "");
  EXPECT_EQ(world.node().unattributed(), 1);
}

TEST(GpushareShares, OfSeveralContainersAreRefused) {
  AgentWorld world(GpushareNodeJson("30"));
  Json pod = GpusharePod("a", "3");
  pod["spec"]["containers"].push_back(Container("b", {{"aliyun.com/gpu-mem", "2"}}));
  EXPECT_EQ(world.Decode(pod).refusal,
            "container b: aliyun.com/gpu-mem: want it in one of spec.containers, since gpushare's "
            "device plugin serves no others");
}

TEST(GpushareShares, OfSeveralGpusAreRefused) {
  AgentWorld world(GpushareNodeJson("30"));
  const auto with_count = [](const char* count) {
    return PodAsking("a", {{"aliyun.com/gpu-mem", "3"}, {"aliyun.com/gpu-count", count}});
  };
  EXPECT_EQ(world.Decode(with_count("2")).refusal,
            "container main: aliyun.com/gpu-count: want 1 beside aliyun.com/gpu-mem, since "
            "gpushare's device plugin gives a part of one GPU, got more");
  EXPECT_EQ(world.Decode(with_count("1")).refusal, "");
  const PodRequest alone = world.Decode(PodAsking("b", {{"aliyun.com/gpu-count", "2"}}));
  EXPECT_EQ(alone.refusal, "") << "another scheduler's word";
  EXPECT_TRUE(alone.belongs_on_any_node);
  ASSERT_NE(alone.others, nullptr);
  EXPECT_EQ(*alone.others, (OtherResources{{"aliyun.com/gpu-count", 2}})) << "kube-scheduler's";
  EXPECT_NE(FindOther(world.node().spec().others, "aliyun.com/gpu-count"), nullptr);
}

TEST(GpushareShares, CloseGpusWhoseMemoryIsNotOffered) {
  Json node = GpushareNodeJson("30");
  node["status"]["allocatable"]["aliyun.com/gpu-mem"] = "15";
  AgentWorld world(node);
  EXPECT_EQ(world.node().healthy_gpus(), 1);
}

// --- MPS by amounts

Json MpsNodeJson(const char* core = "200", const char* memory = "48") {
  return NodeWith({{"nvidia.com/mps-core", core}, {"nvidia.com/mps-memory", memory}}, {});
}

Json MpsPod(const std::string& uid, const Json& limits) { return PodAsking(uid, limits); }

TEST(MpsShares, AreBookedByPercentAndGibOfOneGpu) {
  AgentWorld world(MpsNodeJson());
  EXPECT_EQ(world.problem, "");
  const NodeSpec& spec = world.node().spec();
  EXPECT_EQ(spec.share_agent, "mps");
  EXPECT_EQ(spec.share_isolation, Isolation::kMemory);
  EXPECT_EQ(spec.gpus, std::vector<GpuSpec>(2, GpuSpec{"", 24 * 1024, true, 48}));
  const Json pod = MpsPod("a", {{"nvidia.com/mps-core", "30"}, {"nvidia.com/mps-memory", "20"}});
  EXPECT_TRUE(world.Bind(pod).contains("berth.dev/devices"));
  EXPECT_EQ(world.node().gpus()[0].milli, 700);
  EXPECT_EQ(world.node().gpus()[0].memory_mib, 4 * 1024);
  // Either goes with the other: half of the compute is 12 GiB, which GPU 0 does not have.
  EXPECT_FALSE(world.Bind(MpsPod("b", {{"nvidia.com/mps-core", "50"}})).empty());
  EXPECT_EQ(world.node().gpus()[1].memory_mib, 12 * 1024);
  EXPECT_EQ(world.Check(MpsPod("c", {{"nvidia.com/mps-memory", "13"}})), Reason::kShareBusy);
}

TEST(MpsShares, AreOfNodesThatSpeakOfThemAlone) {
  AgentWorld plain(NodeWith({{"nvidia.com/gpu", "2"}}, {}));
  const Json pod = MpsPod("a", {{"nvidia.com/mps-core", "30"}});
  EXPECT_EQ(plain.Check(pod), Reason::kShareOfOtherAgent);
  AgentWorld mps(MpsNodeJson());
  EXPECT_EQ(mps.Check(MpsPod("a", {{"berth.dev/gpu-milli", "300"}})), Reason::kShareOfOtherAgent);
  EXPECT_EQ(mps.Decode(MpsPod("a", {{"nvidia.com/mps-core", "101"}})).refusal,
            "pod asks for a GPU share larger than one GPU");
}

TEST(MpsShares, StopAtTheClientsOfMpsAndAtGpusThatAreLost) {
  AgentWorld world(MpsNodeJson("100", "48"));
  for (int i = 0; i < 48; ++i) {
    const Json pod = MpsPod("p" + std::to_string(i), {{"nvidia.com/mps-core", "1"}});
    ASSERT_FALSE(world.Bind(pod).empty()) << i;
  }
  EXPECT_EQ(world.Check(MpsPod("z", {{"nvidia.com/mps-core", "1"}})), Reason::kShareBusy);

  Json lost = MpsNodeJson();
  lost["status"]["allocatable"]["nvidia.com/mps-core"] = "100";
  EXPECT_EQ(AgentWorld(lost).node().healthy_gpus(), 1);
  EXPECT_EQ(AgentWorld(MpsNodeJson("150")).problem,
            "nvidia.com/mps-core: want 100 for each of 1..64 GPUs, got 150");
}

// --- KAI

TEST(KaiFractions, AreHeldByThePodThatReservesTheirGpu) {
  AgentWorld world(NodeWith({{"nvidia.com/gpu", "2"}}, {{"berth.dev/gpu-uuids", "GPU-a,GPU-b"}}));
  const Json reservation = PodAsking("r", {{"nvidia.com/gpu", "1"}});
  EXPECT_EQ(world.Show(reservation, "run.ai/reserve_for_gpu_index", "GPU-a"), "");
  EXPECT_EQ(world.node().gpus()[0].milli, 0);
  EXPECT_TRUE(world.node().gpus()[1].idle());
  EXPECT_EQ(world.Show(PodAsking("f", {{"cpu", "1"}}), "gpu-fraction", "0.5"), "");
  EXPECT_TRUE(world.node().gpus()[1].idle()) << "of the reserved GPU";
}

TEST(KaiFractions, CountOnAnyGpuUntilItIsKnownWhich) {
  AgentWorld world(NodeWith({{"nvidia.com/gpu", "2"}}, {}));
  const Json reservation = PodAsking("r", {{"nvidia.com/gpu", "1"}});
  EXPECT_EQ(world.Show(reservation, "run.ai/reserve_for_gpu_index", "-1"), "");
  EXPECT_EQ(world.Show(reservation, "run.ai/reserve_for_gpu_index", "GPU-b"), "");
  EXPECT_EQ(world.node().unattributed(), 1) << "the node does not say its UUIDs";
  EXPECT_EQ(world.node().free_gpu_milli(), 1000);
  EXPECT_TRUE(world.Disputes().empty());
}

TEST(KaiFractions, ThatKaiDoesNotPlaceAreRefused) {
  AgentWorld world(NodeWith({{"nvidia.com/gpu", "2"}}, {}));
  Json pod = PodAsking("f", {{"cpu", "1"}});
  pod["metadata"]["annotations"]["gpu-fraction"] = "0.5";
  EXPECT_NE(world.Decode(pod).refusal.find("annotation gpu-fraction"), std::string::npos);
}

// --- all of them

TEST(Grants, OfAPodThatAsksForNoGpuAreNotBelieved) {
  AgentWorld world(NodeWith({{"nvidia.com/gpu", "2"}}, {{"berth.dev/gpu-uuids", "GPU-a,GPU-b"}}));
  const Json none = PodAsking("forged", {{"cpu", "1"}});
  const std::vector<std::pair<const char*, const char*>> forged = {
      {"hami.io/vgpu-devices-allocated", "GPU-a,NVIDIA,3000,0:;"},
      {"volcano.sh/vgpu-ids-new", "GPU-a,NVIDIA,3000,0:"},
      {"ALIYUN_COM_GPU_MEM_IDX", "0"},
      {"run.ai/reserve_for_gpu_index", "GPU-a"},
      {"scheduling.koordinator.sh/device-allocated",
       R"({"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"100"}}]})"}};
  for (const auto& [key, value] : forged) {
    EXPECT_NE(world.Show(none, key, value).find("want a pod that also asks for GPUs"),
              std::string::npos)
        << key;
    EXPECT_EQ(world.node().free_gpu_milli(), 2000) << key;
  }
}

}  // namespace
}  // namespace berth::test::share_agents_test
