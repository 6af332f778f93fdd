// SPDX-License-Identifier: Apache-2.0
//
// GPUs that Koordinator's koordlet hands out: when it serves a node, what its users ask for, and
// what it reads of a pod that Berth has bound.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "server/dialects/koordinator/koordinator_dialect.h"
#include "test/support/agent_world.h"

namespace berth::test::koordinator_shares_test {
namespace {

constexpr std::int64_t kCardMib = 81'920;

// koordlet's Device, as the golden bodies of its tests have it.
Json CardsOf(const std::string& node, int gpus, const std::vector<int>& sick = {}) {
  Json devices = Json::array();
  for (int minor = 0; minor < gpus; ++minor) {
    const bool healthy = std::ranges::find(sick, minor) == sick.end();
    devices.push_back({{"type", "gpu"},
                       {"id", "GPU-" + std::to_string(minor)},
                       {"minor", minor},
                       {"moduleID", minor + 1},
                       {"health", healthy},
                       {"resources",
                        {{"koordinator.sh/gpu-core", "100"},
                         {"koordinator.sh/gpu-memory", std::to_string(kCardMib) + "Mi"},
                         {"koordinator.sh/gpu-memory-ratio", "100"}}},
                       {"topology",
                        {{"socketID", 0},
                         {"nodeID", minor / 2},
                         {"pcieID", "pci0000:" + std::to_string(minor)},
                         {"busID", "0000:0" + std::to_string(minor) + ":00.0"}}}});
  }
  return {{"kind", "Device"}, {"metadata", {{"name", node}}}, {"spec", {{"devices", devices}}}};
}

// What koord-manager writes into the node's status for so many healthy GPUs.
Json Amounts(int gpus) {
  const std::string percent = std::to_string(100 * gpus);
  return {{"koordinator.sh/gpu", percent},
          {"koordinator.sh/gpu-core", percent},
          {"koordinator.sh/gpu-memory", std::to_string(kCardMib * gpus) + "Mi"},
          {"koordinator.sh/gpu-memory-ratio", percent}};
}

// A node of koordlet's alone, or with NVIDIA's device plugin beside.
Json AloneNode(int gpus, const std::string& name = "n1") {
  return NodeWith(Amounts(gpus), {}, name);
}
Json BesideNode(int gpus, const Texts& annotations = {}) {
  Json amounts = Amounts(gpus);
  amounts["nvidia.com/gpu"] = std::to_string(gpus);
  return NodeWith(amounts, annotations);
}

Json Allocated(const Texts& written) {
  const auto at = written.find("scheduling.koordinator.sh/device-allocated");
  return at == written.end() ? Json() : Json::parse(at->second)["gpu"];
}

Json Percent(const std::string& uid, int percent) {
  return PodAsking(uid, {{"koordinator.sh/gpu", std::to_string(percent)}});
}

class KoordinatorShares : public testing::Test {
 protected:
  KoordinatorShares() { world_.PutDevice(CardsOf("n1", 4)); }

  GpuAsk AskOf(const Json& limits) {
    const PodRequest pod = world_.Decode(PodAsking("a", limits));
    EXPECT_EQ(pod.refusal, "");
    EXPECT_EQ(pod.shape.share_agent, "koordinator");
    return pod.shape.gpus;
  }
  std::string RefusalOf(const Json& limits) {
    return world_.Decode(PodAsking("a", limits)).refusal;
  }

  AgentWorld world_{AloneNode(4)};
};

// --- what nodes have

TEST_F(KoordinatorShares, AreOfTheGpusOfTheDevice) {
  const NodeSpec& spec = world_.node().spec();
  EXPECT_EQ(spec.share_agent, "koordinator");
  EXPECT_TRUE(spec.agent_serves_all);
  EXPECT_EQ(spec.share_isolation, Isolation::kNone);
  ASSERT_EQ(spec.gpus.size(), 4U);
  EXPECT_EQ(spec.gpus[3], (GpuSpec{"GPU-3", kCardMib, true}));
}

TEST_F(KoordinatorShares, AreGivenWhileTheDeviceIsThere) {
  world_.RemoveDevice("n1");
  EXPECT_EQ(world_.node().spec().share_agent, "");
  EXPECT_TRUE(world_.node().spec().agent_lacks.starts_with("has no Device of Koordinator"));
  EXPECT_FALSE(world_.node().spec().gpus[0].healthy);
  EXPECT_FALSE(world_.node().spec().gpus[0].foreign) << "it counts as unhealthy in metrics";
  EXPECT_EQ(world_.Check(Percent("a", 50)), Reason::kShareOfOtherAgent);
  EXPECT_EQ(world_.Check(PodAsking("b", {{"berth.dev/gpu-milli", "100"}})), Reason::kNoGpuOffered);
  world_.PutDevice(CardsOf("n1", 4));
  EXPECT_EQ(world_.node().spec().agent_lacks, "");
  EXPECT_EQ(world_.Check(Percent("a", 50)), Reason::kFits);
  Json stripped = AloneNode(4);  // by koord-manager
  stripped["status"]["allocatable"].erase("koordinator.sh/gpu-core");
  world_.PutNode(stripped);
  EXPECT_EQ(world_.Check(Percent("a", 50)), Reason::kNoGpu);
  world_.PutNode(AloneNode(4));
  EXPECT_EQ(world_.Check(Percent("a", 50)), Reason::kFits);
}

TEST_F(KoordinatorShares, AreNoneOfAGpuThatIsNotHealthy) {
  world_.PutDevice(CardsOf("n1", 4, {0, 2}));
  world_.PutNode(AloneNode(2));  // koord-manager counts the healthy ones
  ASSERT_EQ(world_.node().gpus().size(), 4U) << "by minor all the same";
  EXPECT_EQ(world_.node().healthy_gpus(), 2);
  EXPECT_EQ(Allocated(world_.Bind(Percent("a", 60)))[0]["minor"], 1);
  EXPECT_EQ(Allocated(world_.Bind(Percent("b", 60)))[0]["minor"], 3);
  EXPECT_EQ(world_.Check(Percent("c", 60)), Reason::kShareBusy);
  world_.PutDevice(CardsOf("n1", 4));
  EXPECT_EQ(world_.Check(Percent("c", 60)), Reason::kFits);
}

TEST(KoordinatorBesideNvidia, CountsOnTheSameGpus) {
  AgentWorld world(BesideNode(2));
  EXPECT_EQ(world.node().spec().share_agent, "") << "its Device is not there";
  EXPECT_EQ(world.Check(Percent("a", 50)), Reason::kShareOfOtherAgent);
  EXPECT_EQ(world.Check(PodAsking("a", {{"nvidia.com/gpu", "2"}})), Reason::kFits);
  world.PutDevice(CardsOf("n1", 2));
  EXPECT_EQ(Allocated(world.Bind(Percent("a", 50)))[0]["id"], "GPU-0");
  EXPECT_EQ(world.Check(PodAsking("b", {{"nvidia.com/gpu", "2"}})), Reason::kGpusBusy);
  // A whole GPU, in whose words ever, is pinned by the annotation.
  const Json whole = Allocated(world.Bind(PodAsking("c", {{"nvidia.com/gpu", "1"}})));
  EXPECT_EQ(whole[0]["id"], "GPU-1");
  EXPECT_EQ(whole[0]["resources"]["koordinator.sh/gpu-memory-ratio"], "100");
  // So is a share in Berth's words.
  const Texts ours = world.Bind(PodAsking("d", {{"berth.dev/gpu-milli", "333"}}));
  EXPECT_EQ(Allocated(ours)[0]["resources"]["koordinator.sh/gpu-core"], "34");
  EXPECT_EQ(ours.at("berth.dev/visible-devices"), "GPU-0");
  EXPECT_EQ(world.Check(Percent("e", 20)), Reason::kShareBusy);
}

TEST(KoordinatorBesideNvidia, TellsWhichOfTheMissingGpusIsOutOfOrder) {
  Json node = BesideNode(4);
  node["status"]["allocatable"]["nvidia.com/gpu"] = "3";
  AgentWorld world(node);
  EXPECT_EQ(world.node().healthy_gpus(), 3);
  world.PutDevice(CardsOf("n1", 4, {1}));
  EXPECT_EQ(world.node().healthy_gpus(), 3) << "it is one and the same";
  EXPECT_FALSE(world.node().IsOpen(1));
  world.PutDevice(CardsOf("n1", 4));
  EXPECT_EQ(world.node().healthy_gpus(), 3) << "the device plugin still counts three";
}

TEST(KoordinatorBesideNvidia, DoesNotServeWhereTheDeviceIsOfOtherGpus) {
  AgentWorld fewer(BesideNode(2));
  fewer.PutDevice(CardsOf("n1", 4));
  EXPECT_EQ(fewer.node().spec().share_agent, "");
  EXPECT_EQ(fewer.problem, "want the node's 2 GPUs, got 4");
  EXPECT_EQ(fewer.node().spec().agent_lacks,
            "Koordinator's Device: want the node's 2 GPUs, got 4; read koordlet's log");
  AgentWorld other(BesideNode(2, {{"berth.dev/gpu-uuids", "GPU-1,GPU-0"}}));
  other.PutDevice(CardsOf("n1", 2));
  EXPECT_EQ(other.node().spec().share_agent, "");
  EXPECT_EQ(other.problem, "spec.devices: want GPU-1 as minor 0, as the node says, got GPU-0");
  AgentWorld same(BesideNode(2, {{"berth.dev/gpu-uuids", "GPU-0,GPU-1"}}));
  same.PutDevice(CardsOf("n1", 2));
  EXPECT_EQ(same.node().spec().share_agent, "koordinator");
  EXPECT_EQ(same.problem, "");
}

TEST(KoordinatorNodes, OfOtherVendorsOrCountsAreNotGiven) {
  Json npus = AloneNode(4);
  npus["metadata"]["labels"]["node.koordinator.sh/gpu-vendor"] = "huawei";
  AgentWorld world(npus);
  world.PutDevice(CardsOf("n1", 4));
  EXPECT_EQ(world.Check(Percent("a", 50)), Reason::kNoGpu);
  Json odd = AloneNode(4);
  odd["status"]["allocatable"]["koordinator.sh/gpu-core"] = "150";
  AgentWorld halves(odd);
  EXPECT_EQ(halves.problem, "koordinator.sh/gpu-core: want 100 for each of 1..64 GPUs, got 150");
}

// --- what pods ask for

TEST_F(KoordinatorShares, AreOfOneGpuBelowAHundredPercent) {
  EXPECT_EQ(AskOf({{"koordinator.sh/gpu", "50"}}), GpuAsk(GpuShare{500, 0}));
  EXPECT_EQ(AskOf({{"koordinator.sh/gpu-memory-ratio", "30"}}), GpuAsk(GpuShare{300, 0}));
  EXPECT_EQ(AskOf({{"koordinator.sh/gpu-memory", "4Gi"}}), GpuAsk(GpuShare{0, 4096}));
  EXPECT_EQ(AskOf({{"koordinator.sh/gpu-core", "20"}, {"koordinator.sh/gpu-memory", "4Gi"}}),
            GpuAsk(GpuShare{200, 4096}));
  EXPECT_EQ(AskOf({{"koordinator.sh/gpu-core", "50"}, {"koordinator.sh/gpu-memory-ratio", "50"}}),
            GpuAsk(GpuShare{500, 0}));
  EXPECT_EQ(AskOf({{"koordinator.sh/gpu.shared", "1"},
                   {"koordinator.sh/gpu-core", "50"},
                   {"koordinator.sh/gpu-memory-ratio", "50"}}),
            GpuAsk(GpuShare{500, 0}));
  EXPECT_EQ(AskOf({{"koordinator.sh/gpu.shared", "1"}, {"koordinator.sh/gpu-memory", "1"}}),
            GpuAsk(GpuShare{0, 1}))
      << "bytes";
}

TEST_F(KoordinatorShares, AreOfEachOfSeveralGpusWhereTheAmountsAreLess) {
  EXPECT_EQ(AskOf({{"koordinator.sh/gpu.shared", "2"}, {"koordinator.sh/gpu-memory-ratio", "100"}}),
            GpuAsk(GpuShare{.milli = 500, .count = 2}));
  EXPECT_EQ(AskOf({{"koordinator.sh/gpu.shared", "4"},
                   {"koordinator.sh/gpu-memory", "2Gi"},
                   {"koordinator.sh/gpu-core", "40"}}),
            GpuAsk(GpuShare{.milli = 100, .memory_mib = 512, .count = 4}));
  EXPECT_EQ(AskOf({{"koordinator.sh/gpu-core", "100"}, {"koordinator.sh/gpu-memory-ratio", "200"}}),
            GpuAsk(GpuShare{.milli = 500, .memory_milli = 1000, .count = 2}))
      << "all of the memory, half of the compute";
}

TEST_F(KoordinatorShares, MayHaveOtherPercentOfComputeThanOfMemory) {
  EXPECT_EQ(AskOf({{"koordinator.sh/gpu-core", "50"}, {"koordinator.sh/gpu-memory-ratio", "25"}}),
            GpuAsk(GpuShare{.milli = 500, .memory_milli = 250}));
  const Json third = PodAsking(
      "a", {{"koordinator.sh/gpu-core", "10"}, {"koordinator.sh/gpu-memory-ratio", "33"}});
  const Json resources = Allocated(world_.Bind(third))[0]["resources"];
  EXPECT_EQ(resources, (Json{{"koordinator.sh/gpu-core", "10"},
                             {"koordinator.sh/gpu-memory", "27033Mi"},
                             {"koordinator.sh/gpu-memory-ratio", "33"}}));
  EXPECT_EQ(world_.node().gpus()[0], (GpuFree{.milli = 900, .memory_mib = kCardMib - 27'033}));
}

TEST_F(KoordinatorShares, OfSeveralGpusAreWrittenForEach) {
  const Json two = PodAsking("a", {{"koordinator.sh/gpu.shared", "2"},
                                   {"koordinator.sh/gpu-core", "60"},
                                   {"koordinator.sh/gpu-memory", "16Gi"}});
  const Texts written = world_.Bind(two);
  const Json gpus = Allocated(written);
  ASSERT_EQ(gpus.size(), 2U);
  for (int minor = 0; minor < 2; ++minor) {
    EXPECT_EQ(gpus[static_cast<std::size_t>(minor)],
              (Json{{"minor", minor},
                    {"resources",
                     {{"koordinator.sh/gpu-core", "30"},
                      {"koordinator.sh/gpu-memory", "8192Mi"},
                      {"koordinator.sh/gpu-memory-ratio", "10"}}},
                    {"id", "GPU-" + std::to_string(minor)}}));
  }
  EXPECT_EQ(written.at("scheduling.koordinator.sh/gpu-minors"), "0,1");
  EXPECT_EQ(written.at("berth.dev/visible-devices"), "GPU-0,GPU-1");
  EXPECT_EQ(world_.node().gpus()[1], (GpuFree{.milli = 700, .memory_mib = kCardMib - 8192}));
}

TEST_F(KoordinatorShares, AreWholeGpusByTheHundred) {
  EXPECT_EQ(AskOf({{"koordinator.sh/gpu", "100"}}), GpuAsk(WholeGpus{1}));
  EXPECT_EQ(AskOf({{"koordinator.sh/gpu", "300"}}), GpuAsk(WholeGpus{3}));
  EXPECT_EQ(AskOf({{"koordinator.sh/gpu-memory-ratio", "200"}}), GpuAsk(WholeGpus{2}));
  EXPECT_EQ(AskOf({{"koordinator.sh/gpu-core", "200"}, {"koordinator.sh/gpu-memory-ratio", "200"}}),
            GpuAsk(WholeGpus{2}));
  EXPECT_EQ(AskOf({{"koordinator.sh/gpu.shared", "2"}, {"koordinator.sh/gpu-memory-ratio", "200"}}),
            GpuAsk(WholeGpus{2}));
}

TEST_F(KoordinatorShares, AddUpOverContainersBeforeTheyAreRead) {
  const auto with = [](Json pod, const Json& limits, const char* list = "containers") {
    pod["spec"][list].push_back({{"name", "b"}, {"resources", {{"limits", limits}}}});
    return pod;
  };
  const Json half = {{"koordinator.sh/gpu", "50"}};
  EXPECT_EQ(world_.Decode(with(PodAsking("a", half), {{"koordinator.sh/gpu", "30"}})).shape.gpus,
            GpuAsk(GpuShare{800, 0}));
  EXPECT_EQ(world_.Decode(with(PodAsking("a", half), half)).shape.gpus, GpuAsk(GpuShare{1000, 0}));
  EXPECT_EQ(world_
                .Decode(with(PodAsking("a", {{"koordinator.sh/gpu", "100"}}),
                             {{"koordinator.sh/gpu", "200"}}))
                .shape.gpus,
            GpuAsk(WholeGpus{3}));
  EXPECT_EQ(
      world_.Decode(with(PodAsking("a", half), {{"koordinator.sh/gpu", "70"}}, "initContainers"))
          .shape.gpus,
      GpuAsk(GpuShare{700, 0}))
      << "the larger of the two";
  // As the webhook of koord-manager leaves them, each container counts a GPU of its own.
  const Json shared = {{"koordinator.sh/gpu.shared", "1"},
                       {"koordinator.sh/gpu-memory-ratio", "50"}};
  EXPECT_EQ(world_.Decode(with(PodAsking("a", shared), shared)).shape.gpus,
            GpuAsk(GpuShare{.milli = 500, .count = 2}));
  // Compute of one container, memory of the other.
  EXPECT_EQ(world_
                .Decode(with(PodAsking("a", {{"koordinator.sh/gpu-core", "30"}}),
                             {{"koordinator.sh/gpu-memory-ratio", "30"}}))
                .shape.gpus,
            GpuAsk(GpuShare{300, 0}));
  EXPECT_EQ(world_
                .Decode(with(PodAsking("a", {{"koordinator.sh/gpu", "150"}}),
                             {{"koordinator.sh/gpu", "50"}}))
                .refusal,
            "container main: koordinator.sh/gpu-memory-ratio: want 100 for each GPU in a pod with "
            "2, got 150");
}

TEST_F(KoordinatorShares, ThatItsSchedulerRefusesAreRefusedWithTheWord) {
  EXPECT_EQ(RefusalOf({{"koordinator.sh/gpu-core", "50"}}),
            "koordinator.sh/gpu-core: want koordinator.sh/gpu-memory or "
            "koordinator.sh/gpu-memory-ratio beside it, got none");
  EXPECT_EQ(RefusalOf({{"koordinator.sh/gpu.shared", "1"}}),
            "koordinator.sh/gpu.shared: want koordinator.sh/gpu-memory or "
            "koordinator.sh/gpu-memory-ratio beside it, got none");
  EXPECT_EQ(
      RefusalOf({{"koordinator.sh/gpu-memory", "1Gi"}, {"koordinator.sh/gpu-memory-ratio", "50"}}),
      "koordinator.sh/gpu-memory: want it or koordinator.sh/gpu-memory-ratio, got both");
  EXPECT_EQ(RefusalOf({{"koordinator.sh/gpu", "50"}, {"koordinator.sh/gpu-core", "50"}}),
            "koordinator.sh/gpu: want it alone, got koordinator.sh/gpu-core beside it");
  EXPECT_EQ(
      RefusalOf({{"koordinator.sh/gpu", "150"}}),
      "koordinator.sh/gpu: want 1..100 percent of a GPU, or 100 for each of several, got 150");
  EXPECT_EQ(
      RefusalOf({{"koordinator.sh/gpu.shared", "2"}, {"koordinator.sh/gpu-memory-ratio", "25"}}),
      "koordinator.sh/gpu-memory-ratio: want as many percent of each of 2 GPUs "
      "(koordinator.sh/gpu.shared), 100 at most, got 25");
  EXPECT_NE(
      RefusalOf({{"koordinator.sh/gpu.shared", "1"}, {"koordinator.sh/gpu-memory-ratio", "200"}}),
      "");
  const std::string two_words = "want GPU resources of one agent, got another agent's too";
  EXPECT_EQ(RefusalOf({{"koordinator.sh/gpu", "50"}, {"nvidia.com/gpu", "1"}}),
            "koordinator.sh/gpu: " + two_words);
  EXPECT_EQ(RefusalOf({{"koordinator.sh/gpu", "100"}, {"berth.dev/gpu-milli", "100"}}),
            "koordinator.sh/gpu: " + two_words);
}

TEST_F(KoordinatorShares, ThatBerthDoesNotGiveAreRefusedWithTheWord) {
  EXPECT_EQ(RefusalOf({{"koordinator.sh/gpu-core", "200"}, {"koordinator.sh/gpu-memory", "2Gi"}}),
            "koordinator.sh/gpu-core: want 100 at most of each of 1 GPU, got 200");
  EXPECT_EQ(
      RefusalOf({{"koordinator.sh/gpu-core", "100"}, {"koordinator.sh/gpu-memory-ratio", "300"}}),
      "container main: koordinator.sh/gpu-core: want as much of each of 3 GPUs, in thousandths, "
      "got 100");
  for (const std::string_view key : dialects::kKoordinatorChoices) {
    Json pod = Percent("a", 50);
    pod["metadata"]["annotations"][std::string(key)] = "{}";
    EXPECT_NE(world_.Decode(pod).refusal.find("annotation " + std::string(key)), std::string::npos);
    pod = PodWithGpus("b", 1);
    pod["metadata"]["annotations"][std::string(key)] = "{}";
    EXPECT_EQ(world_.Decode(pod).refusal, "") << "for another agent's pod it means nothing";
  }
}

TEST_F(KoordinatorShares, OfAnyNumberAreAnsweredWithAReason) {
  const std::string huge = "9223372036854775807";
  EXPECT_NE(RefusalOf({{"koordinator.sh/gpu", huge}}), "");
  EXPECT_EQ(RefusalOf({{"koordinator.sh/gpu", "6500"}}),
            "pod asks for more GPUs than any node has");
  EXPECT_NE(RefusalOf({{"koordinator.sh/gpu.shared", huge}, {"koordinator.sh/gpu-memory", huge}}),
            "");
  EXPECT_NE(RefusalOf({{"koordinator.sh/gpu-core", huge}, {"koordinator.sh/gpu-memory", huge}}),
            "");
  EXPECT_EQ(world_.Check(PodAsking("a", {{"koordinator.sh/gpu-memory", huge}})),
            Reason::kShareNeverFits);
}

TEST_F(KoordinatorShares, GoOnlyWhereKoordinatorServes) {
  AgentWorld plain(NodeWith({{"nvidia.com/gpu", "2"}}, {{"berth.dev/gpu-uuids", "GPU-a,GPU-b"}}));
  EXPECT_EQ(plain.Check(Percent("a", 50)), Reason::kShareOfOtherAgent);
  EXPECT_EQ(plain.Check(Percent("a", 200)), Reason::kShareOfOtherAgent);
  AgentWorld places(NodeWith({{"nvidia.com/gpu", "100"}}, {}));
  EXPECT_EQ(places.Check(Percent("a", 100)), Reason::kShareOfOtherAgent);
  EXPECT_EQ(world_.Check(Percent("a", 200)), Reason::kFits);
  EXPECT_EQ(world_.Check(PodAsking("b", {{"nvidia.com/gpu", "1"}})), Reason::kOtherResource)
      << "the kubelet of a node of Koordinator's alone knows none of these";
  EXPECT_EQ(world_.Check(PodAsking("c", {{"aliyun.com/gpu-mem", "2"}})),
            Reason::kShareOfOtherAgent);
  Json kept = Percent("d", 50);
  kept["metadata"]["annotations"]["berth.dev/isolation"] = "memory";
  EXPECT_EQ(world_.Check(kept), Reason::kSharesUnguarded);
}

// --- what is written

TEST_F(KoordinatorShares, AreWrittenAsKoordletReadsThem) {
  const Texts written = world_.Bind(Percent("a", 50));
  EXPECT_EQ(written.at("scheduling.koordinator.sh/device-allocated"),
            R"({"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"50",)"
            R"("koordinator.sh/gpu-memory":"40960Mi","koordinator.sh/gpu-memory-ratio":"50"},)"
            R"("id":"GPU-0"}]})");
  EXPECT_EQ(written.at("scheduling.koordinator.sh/gpu-minors"), "0");
  EXPECT_EQ(written.at("scheduling.koordinator.sh/bind-timestamp"), "1724212800000000000");
  EXPECT_TRUE(written.contains("berth.dev/devices"));
}

TEST_F(KoordinatorShares, ByMemoryHaveItsRatioAndNoComputeOfTheirOwn) {
  const Json alone =
      Allocated(world_.Bind(PodAsking("a", {{"koordinator.sh/gpu-memory", "2000Mi"}})));
  EXPECT_EQ(alone[0]["resources"], (Json{{"koordinator.sh/gpu-memory", "2000Mi"},
                                         {"koordinator.sh/gpu-memory-ratio", "2"}}));
  const Json both = Allocated(world_.Bind(
      PodAsking("b", {{"koordinator.sh/gpu-core", "30"}, {"koordinator.sh/gpu-memory", "500Mi"}})));
  EXPECT_EQ(both[0]["resources"], (Json{{"koordinator.sh/gpu-core", "30"},
                                        {"koordinator.sh/gpu-memory", "500Mi"},
                                        {"koordinator.sh/gpu-memory-ratio", "1"}}));
}

TEST_F(KoordinatorShares, OfWholeGpusAreWrittenForEach) {
  const Texts written = world_.Bind(Percent("a", 300));
  EXPECT_EQ(written.at("scheduling.koordinator.sh/gpu-minors"), "0,1,2");
  const Json gpus = Allocated(written);
  ASSERT_EQ(gpus.size(), 3U);
  EXPECT_EQ(gpus[2], (Json{{"minor", 2},
                           {"resources",
                            {{"koordinator.sh/gpu-core", "100"},
                             {"koordinator.sh/gpu-memory", "81920Mi"},
                             {"koordinator.sh/gpu-memory-ratio", "100"}}},
                           {"id", "GPU-2"}}));
}

TEST_F(KoordinatorShares, AreReadBackAsTheyWereBooked) {
  const std::string key = "scheduling.koordinator.sh/device-allocated";
  const std::vector<Json> pods = {
      Percent("a", 35), Percent("b", 100), PodAsking("c", {{"koordinator.sh/gpu-memory", "500Mi"}}),
      PodAsking("d", {{"koordinator.sh/gpu-core", "10"}, {"koordinator.sh/gpu-memory", "9Gi"}})};
  AgentWorld other(AloneNode(4));
  other.PutDevice(CardsOf("n1", 4));
  for (const Json& pod : pods) {
    EXPECT_EQ(other.Show(pod, key, world_.Bind(pod).at(key)), "");
  }
  for (std::size_t gpu = 0; gpu < 4; ++gpu) {
    EXPECT_EQ(other.node().gpus()[gpu].memory_mib, world_.node().gpus()[gpu].memory_mib) << gpu;
    EXPECT_NEAR(other.node().gpus()[gpu].milli, world_.node().gpus()[gpu].milli, 10) << gpu;
  }
}

// --- what its scheduler gave beside

TEST_F(KoordinatorShares, ThatItsSchedulerGaveLeaveTheRest) {
  const std::string key = "scheduling.koordinator.sh/device-allocated";
  const std::string little =
      R"({"gpu":[{"minor":1,"id":"GPU-1","resources":{"koordinator.sh/gpu-memory":"100Mi",)"
      R"("koordinator.sh/gpu-memory-ratio":"0"}}]})";
  EXPECT_EQ(world_.Show(PodAsking("o", {{"koordinator.sh/gpu-memory", "100Mi"}}), key, little), "");
  EXPECT_EQ(world_.node().gpus()[1].memory_mib, kCardMib - 100);
  EXPECT_FALSE(world_.node().gpus()[1].idle());
  EXPECT_EQ(world_.Check(Percent("a", 400)), Reason::kGpusBusy);
  EXPECT_EQ(world_.Check(Percent("a", 300)), Reason::kFits);
  EXPECT_EQ(Allocated(world_.Bind(Percent("b", 90)))[0]["minor"], 1) << "the fullest that fits";
}

TEST_F(KoordinatorShares, OfPodsThatAskForOtherDevicesAloneAreNoProblem) {
  const std::string key = "scheduling.koordinator.sh/device-allocated";
  const Json rdma = PodAsking("r", {{"koordinator.sh/rdma", "100"}});
  EXPECT_EQ(world_.Show(rdma, key, R"({"rdma":[{"minor":0,"resources":{}}]})"), "");
  const std::string forged =
      R"({"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"50"}}]})";
  EXPECT_NE(world_.Show(rdma, key, forged).find("want a pod that also asks for GPUs"),
            std::string::npos);
  EXPECT_EQ(world_.node().free_gpu_milli(), 4000);
}

TEST_F(KoordinatorShares, ThatMeetOnAGpuAreTold) {
  const std::string key = "scheduling.koordinator.sh/device-allocated";
  ASSERT_FALSE(world_.Bind(Percent("ours", 60)).empty());
  const std::string theirs =
      R"({"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"60",)"
      R"("koordinator.sh/gpu-memory":"49152Mi","koordinator.sh/gpu-memory-ratio":"60"}}]})";
  EXPECT_EQ(world_.Show(Percent("theirs", 60), key, theirs), "");
  ASSERT_EQ(world_.Disputes().size(), 1U);
  EXPECT_EQ(world_.Disputes()[0].pod.uid, "theirs");
  EXPECT_EQ(world_.Check(Percent("a", 400)), Reason::kGpusBusy);
}

}  // namespace
}  // namespace berth::test::koordinator_shares_test
