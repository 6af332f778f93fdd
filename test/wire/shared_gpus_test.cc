// SPDX-License-Identifier: Apache-2.0
//
// Nodes that share their GPUs, as the kubelet, NVIDIA's device plugin and GPU Feature Discovery
// 0.20 publish them; what is booked there; and pods that say what they need.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "scoring/reason.h"
#include "scoring/registry.h"
#include "server/wire/node/node_json.h"
#include "server/wire/pod/pod_object.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::shared_gpus_test {
namespace {

using test::ArgsWithNames;
using test::Json;
using test::PodAsking;
using test::PodWithGpus;
using test::ReadNode;
using test::TestService;

// A node with so many devices of the resource, and labels nvidia.com/KEY.
Json ANodeWith(const std::string& name, const std::string& resource, int devices,
               const std::map<std::string, std::string>& labels) {
  Json node = {{"kind", "Node"}, {"metadata", {{"name", name}, {"labels", Json::object()}}}};
  for (const auto& [key, value] : labels) node["metadata"]["labels"]["nvidia.com/" + key] = value;
  for (const char* list : {"capacity", "allocatable"}) {
    node["status"][list] = {{"cpu", "64"}, {"memory", "256Gi"}};
    node["status"][list][resource] = std::to_string(devices);
  }
  return node;
}

Json WholeA100(const std::string& name, int gpus = 8) {
  return ANodeWith(name, "nvidia.com/gpu", gpus,
                   {{"gpu.count", std::to_string(gpus)},
                    {"gpu.memory", "81920"},
                    {"gpu.product", "NVIDIA-A100-SXM4-80GB"},
                    {"gpu.replicas", "1"},
                    {"gpu.sharing-strategy", "none"},
                    {"mps.capable", "false"}});
}

// 4 T4 with so many users each.
Json SlicedT4(const std::string& name, int replicas = 4) {
  return ANodeWith(name, "nvidia.com/gpu", 4 * replicas,
                   {{"gpu.count", "4"},
                    {"gpu.memory", "15360"},
                    {"gpu.product", "Tesla-T4-SHARED"},
                    {"gpu.replicas", std::to_string(replicas)},
                    {"gpu.sharing-strategy", "time-slicing"},
                    {"mps.capable", "false"}});
}

// The same with renameByDefault: the product has no suffix then.
Json RenamedT4(const std::string& name) {
  Json node = SlicedT4(name);
  node["metadata"]["labels"]["nvidia.com/gpu.product"] = "Tesla-T4";
  for (const char* list : {"capacity", "allocatable"}) {
    node["status"][list]["nvidia.com/gpu"] = "0";  // the kubelet keeps names that are gone
    node["status"][list]["nvidia.com/gpu.shared"] = "16";
  }
  return node;
}

// 2 L4 with so many clients each.
Json MpsL4(const std::string& name, int replicas = 8, const std::string& driver = "570") {
  return ANodeWith(name, "nvidia.com/gpu", 2 * replicas,
                   {{"cuda.driver-version.major", driver},
                    {"gpu.count", "2"},
                    {"gpu.memory", "24576"},
                    {"gpu.product", "NVIDIA-L4-SHARED"},
                    {"gpu.replicas", std::to_string(replicas)},
                    {"gpu.sharing-strategy", "mps"},
                    {"mps.capable", "true"}});
}

// 8 A100 of 7 slices each, under MIG's strategy single.
Json SlicesOfA100(const std::string& name) {
  return ANodeWith(name, "nvidia.com/gpu", 56,
                   {{"gpu.count", "56"},
                    {"gpu.memory", "4864"},
                    {"gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"},
                    {"gpu.replicas", "1"},
                    {"gpu.sharing-strategy", "none"},
                    {"gpu.slices.gi", "1"},
                    {"mig.strategy", "single"}});
}

// A40, and nobody says how they are shared.
Json SomehowA40(const std::string& name) {
  return ANodeWith(name, "nvidia.com/gpu", 8,
                   {{"gpu.count", "4"}, {"gpu.memory", "46068"}, {"gpu.product", "NVIDIA-A40"}});
}

// Places of time slicing: a container gets several.
GpuPlaces Sliced(int count, int gpus, std::int64_t memory_mib) {
  GpuPlaces places{count, false, gpus, memory_mib, GpuSharing::kTimeSlicing};
  places.several = true;
  return places;
}

std::vector<NodeSpec> Specs(const std::vector<Json>& nodes) {
  std::vector<NodeSpec> specs;
  for (const Json& node : nodes) specs.push_back(ReadNode(node).spec);
  return specs;
}

Json Annotated(Json pod, const std::string& key, const std::string& value) {
  pod["metadata"]["annotations"][key] = value;
  return pod;
}

// "" where the node passes the filter, else what the pod sees.
std::string Refusal(const TestService& service, const Json& pod, const std::string& node) {
  const Json answer = service.Ask("filter", ArgsWithNames(pod, Json::array({node})));
  for (const char* map : {"FailedNodes", "FailedAndUnresolvableNodes"}) {
    if (answer[map].is_object() && answer[map].contains(node)) return answer[map][node];
  }
  return "";
}

void ABoundPod(TestService& service, Json pod, const std::string& node) {
  pod["spec"]["nodeName"] = node;
  const auto observed = DecodeObservedPod(test::Padded(pod.dump()), service.rules());
  ASSERT_TRUE(observed) << observed.error().message;
  ASSERT_TRUE(service.state().Apply(
      std::vector<ClusterEvent>{PodBound{observed->pod, observed->placement}}));
}

int FreePlaces(TestService& service) { return service.state().Current()->node(0).free_places(); }

std::string MetricOf(const TestService& service, const std::string& series) {
  const std::string text = service.Call("GET", "/metrics").body;
  const std::size_t at = text.find("\n" + series + " ");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + series.size() + 2;
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(SharedGpus, FourT4WithFourUsersAreFourGpusWithFourPlacesEach) {
  const DecodedNode node = ReadNode(SlicedT4("t4"));
  EXPECT_EQ(node.problem, "");
  EXPECT_TRUE(node.spec.gpus.empty());
  EXPECT_EQ(node.spec.places, Sliced(16, 4, 3840));
}

TEST(SharedGpus, APlaceCostsItsPartOfTheMemory) {
  TestService service({ReadNode(SlicedT4("t4")).spec});
  for (int pod = 0; pod < 3; ++pod) {
    ASSERT_EQ(service.Place(PodWithGpus(std::to_string(pod), 1), "t4"), "");
  }
  const Json snapshot = Json::parse(service.Call("GET", "/debug/snapshot").body);
  EXPECT_EQ(snapshot["nodes"][0]["places"], (Json{{"count", 16},
                                                  {"foreign", false},
                                                  {"taken", 3},
                                                  {"gpus", 4},
                                                  {"memory_mib", 3840},
                                                  {"sharing", "time-slicing"},
                                                  {"several", true}}));
  const std::string memory = R"(berth_gpu_place_memory_bytes{model="Tesla-T4-SHARED",state=)";
  EXPECT_EQ(std::stod(MetricOf(service, memory + "\"taken\"}")), 3 * 3840.0 * (1 << 20));
  EXPECT_EQ(std::stod(MetricOf(service, memory + "\"free\"}")), 13 * 3840.0 * (1 << 20));
}

TEST(SharedGpus, TimeSlicingHasNoLimitOfPlaces) {
  const NodeSpec spec = ReadNode(SlicedT4("t4", 100)).spec;
  EXPECT_EQ(spec.places, Sliced(400, 4, 153));
}

TEST(SharedGpus, OfMpsHaveNoMorePlacesThanAGpuHasClients) {
  EXPECT_EQ(ReadNode(MpsL4("l4", 8)).spec.places,
            (GpuPlaces{16, false, 2, 3072, GpuSharing::kMps}));
  EXPECT_EQ(ReadNode(MpsL4("l4", 48)).spec.places,
            (GpuPlaces{96, false, 2, 512, GpuSharing::kMps}));
  const DecodedNode more = ReadNode(MpsL4("l4", 64));
  EXPECT_EQ(more.spec.places, (GpuPlaces{96, false, 2, 384, GpuSharing::kMps}));
  EXPECT_EQ(more.problem,
            "nvidia.com/gpu.replicas: want at most 48 clients of MPS on a GPU, got 64; Berth "
            "ignores the others");
  EXPECT_EQ(ReadNode(MpsL4("l4", 64, "610")).spec.places.count, 120);
  EXPECT_EQ(ReadNode(MpsL4("l4", 60, "610")).problem, "");
  Json sick = MpsL4("l4", 64);
  sick["status"]["allocatable"]["nvidia.com/gpu"] = "64";
  EXPECT_EQ(ReadNode(sick).spec.missing, 48) << "one of the two";
}

TEST(SharedGpus, SayHowByOneLabelOrTheOther) {
  Json older = MpsL4("l4");
  older["metadata"]["labels"].erase("nvidia.com/gpu.sharing-strategy");
  EXPECT_EQ(ReadNode(older).spec.places.sharing, GpuSharing::kMps);
  EXPECT_EQ(ReadNode(SomehowA40("a40")).spec.places,
            (GpuPlaces{8, false, 4, 23'034, GpuSharing::kUnknown}));
  Json bare = ANodeWith("n", "nvidia.com/gpu", 80, {});
  EXPECT_EQ(ReadNode(bare).spec.places, (GpuPlaces{80, false})) << "nobody says of how many GPUs";
}

TEST(SharedGpus, OfMigDevicesAreOnTheseDevices) {
  Json node = SlicesOfA100("mig");
  Json& labels = node["metadata"]["labels"];
  labels["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED";
  labels["nvidia.com/gpu.replicas"] = "2";
  labels["nvidia.com/gpu.sharing-strategy"] = "time-slicing";
  for (const char* list : {"capacity", "allocatable"}) {
    node["status"][list]["nvidia.com/gpu"] = "112";
  }
  EXPECT_EQ(ReadNode(node).spec.places, Sliced(112, 56, 2432));
}

TEST(RenamedGpus, AreAskedForByTheirOwnName) {
  TestService service(Specs({RenamedT4("renamed"), WholeA100("whole")}));
  const NodeSpec& spec = service.state().Current()->node(0).spec();
  EXPECT_EQ(spec.places, Sliced(16, 4, 3840));
  EXPECT_EQ(spec.gpu_resource, "nvidia.com/gpu.shared");
  const Json shared = PodAsking("shared", {{"nvidia.com/gpu.shared", "1"}});
  const std::string other(TextOf(Reason::kOtherResource));
  EXPECT_EQ(Refusal(service, PodWithGpus("plain", 1), "renamed"), other);
  EXPECT_EQ(Refusal(service, shared, "whole"), other);
  EXPECT_EQ(service.Place(PodWithGpus("plain", 1), "whole"), "");
  EXPECT_EQ(service.Place(shared, "renamed"), "");
  EXPECT_EQ(FreePlaces(service), 15);
  const Json both = PodAsking("both", {{"nvidia.com/gpu.shared", "1"}, {"nvidia.com/gpu", "1"}});
  EXPECT_EQ(Refusal(service, both, "renamed"),
            "pod asks for nvidia.com/gpu.shared and for nvidia.com/gpu: want one of the two");
}

TEST(SharedGpus, GiveAPlaceToEachContainerOfAPod) {
  const auto pod_of = [](const std::string& name, int containers, const char* gpus = "1") {
    Json pod = PodWithGpus(name, 1);
    Json& list = pod["spec"]["containers"];
    list = Json::array();
    for (int i = 0; i < containers; ++i) {
      list.push_back({{"name", "c" + std::to_string(i)},
                      {"resources", {{"limits", {{"nvidia.com/gpu", gpus}}}}}});
    }
    return pod;
  };
  TestService service(Specs({SlicedT4("t4")}));
  EXPECT_EQ(Refusal(service, pod_of("of-two", 2, "2"), "t4"), "") << "time slicing serves several";
  Config config = DefaultConfig();
  config.shares.several_replicas = SeveralReplicas::kRefuse;
  TestService refusing({ReadNode(SlicedT4("t4"), config).spec});
  EXPECT_EQ(Refusal(refusing, pod_of("of-two", 2, "2"), "t4"), TextOf(Reason::kOnePlaceEach));
  EXPECT_EQ(Refusal(service, pod_of("many", 17), "t4"), TextOf(Reason::kTooFewGpus));
  EXPECT_EQ(Refusal(service, Annotated(pod_of("linked", 2), "berth.dev/link", "required"), "t4"),
            TextOf(Reason::kNeverLinked));
  ASSERT_EQ(service.Place(pod_of("fourteen", 14), "t4"), "");
  EXPECT_EQ(FreePlaces(service), 2);
  EXPECT_EQ(Refusal(service, pod_of("three", 3), "t4"), TextOf(Reason::kGpusBusy));
  EXPECT_EQ(service.Place(pod_of("two", 2), "t4"), "");
  EXPECT_EQ(FreePlaces(service), 0);
}

TEST(SharedGpus, ThatOthersGaveAreCounted) {
  TestService service(Specs({SlicedT4("t4")}));
  ABoundPod(service, PodWithGpus("one", 1), "t4");
  ABoundPod(service, PodWithGpus("three", 3), "t4");
  ABoundPod(service, Annotated(PodWithGpus("unread", 2), "berth.dev/isolation", "?"), "t4");
  EXPECT_EQ(FreePlaces(service), 10) << "several places, or a need that cannot be read, are places";
  EXPECT_EQ(service.state().Current()->CountUnattributed(), 0U);

  TestService renamed(Specs({RenamedT4("renamed")}));
  ABoundPod(renamed, PodAsking("a", {{"nvidia.com/gpu.shared", "2"}}), "renamed");
  EXPECT_EQ(FreePlaces(renamed), 14);
}

TEST(SharedGpus, KeepWhatIsHeldWhenTheyBecomeSharedAndBack) {
  TestService service(Specs({WholeA100("n", 4)}));
  ASSERT_EQ(service.Place(PodWithGpus("three", 3), "n"), "");
  Json shared = SlicedT4("n");
  ASSERT_TRUE(
      service.state().Apply(std::vector<ClusterEvent>{NodeUpserted{ReadNode(shared).spec}}));
  EXPECT_EQ(FreePlaces(service), 13);
  ABoundPod(service, PodWithGpus("one", 1), "n");
  ASSERT_TRUE(service.state().Apply(
      std::vector<ClusterEvent>{NodeUpserted{ReadNode(WholeA100("n", 4)).spec}}));
  EXPECT_EQ(Refusal(service, PodWithGpus("next", 1), "n"), TextOf(Reason::kGpusBusy));
}

// --- What pods need

TEST(Isolation, IsWhatTheNodeHasOrThePodIsToldWhatItLacks) {
  const TestService service(Specs(
      {SomehowA40("a40"), MpsL4("l4"), SlicesOfA100("mig"), SlicedT4("t4"), WholeA100("whole")}));
  using enum Reason;
  const std::map<std::string, std::map<std::string, Reason>> wanted = {
      {"none", {{"a40", kFits}, {"l4", kFits}, {"mig", kFits}, {"t4", kFits}, {"whole", kFits}}},
      {"memory",
       {{"a40", kGpusUncertain},
        {"l4", kFits},
        {"mig", kFits},
        {"t4", kTimeSliced},
        {"whole", kFits}}},
      {"hardware",
       {{"a40", kGpusUncertain},
        {"l4", kNotItsOwn},
        {"mig", kFits},
        {"t4", kNotItsOwn},
        {"whole", kFits}}}};
  for (const auto& [isolation, nodes] : wanted) {
    const Json pod = Annotated(PodWithGpus("p", 1), "berth.dev/isolation", isolation);
    for (const auto& [node, reason] : nodes) {
      EXPECT_EQ(Refusal(service, pod, node), TextOf(reason)) << isolation << " on " << node;
    }
  }
}

TEST(Isolation, IsThatOfMigDevicesAlsoWhereThereAreMoreThanGpusCanBe) {
  Json node = SlicesOfA100("mig");
  node["metadata"]["labels"]["nvidia.com/gpu.count"] = "112";
  for (const char* list : {"capacity", "allocatable"}) {
    node["status"][list]["nvidia.com/gpu"] = "112";
  }
  const TestService service(Specs({node}));
  const Json pod = Annotated(PodWithGpus("p", 1), "berth.dev/isolation", "hardware");
  EXPECT_EQ(Refusal(service, pod, "mig"), "");
}

TEST(Isolation, OfAShareIsNobodysOnAPlainNode) {
  const TestService service(
      Specs({Annotated(WholeA100("whole", 1), "berth.dev/gpu-uuids", "GPU-a")}));
  const Json share = PodAsking("p", {{"berth.dev/gpu-milli", "500"}});
  EXPECT_EQ(Refusal(service, Annotated(share, "berth.dev/isolation", "none"), "whole"), "");
  EXPECT_EQ(Refusal(service, Annotated(share, "berth.dev/isolation", "memory"), "whole"),
            TextOf(Reason::kSharesUnguarded));
  EXPECT_EQ(Refusal(service, Annotated(share, "berth.dev/isolation", "hardware"), "whole"),
            "annotation berth.dev/isolation: want memory or none for a share of a GPU, got "
            "\"hardware\"");
}

TEST(Isolation, OfAMigDeviceIsGoneWhereItHasSeveralUsers) {
  Json plain = ANodeWith("plain", "nvidia.com/mig-1g.5gb", 14,
                         {{"gpu.product", "NVIDIA-A100-SXM4-40GB"},
                          {"gpu.count", "2"},
                          {"mig-1g.5gb.count", "14"},
                          {"mig.strategy", "mixed"}});
  Json shared = ANodeWith("shared", "nvidia.com/mig-1g.5gb.shared", 28,
                          {{"gpu.product", "NVIDIA-A100-SXM4-40GB"},
                           {"gpu.count", "2"},
                           {"mig-1g.5gb.count", "14"},
                           {"mig-1g.5gb.replicas", "2"},
                           {"mig-1g.5gb.sharing-strategy", "time-slicing"},
                           {"mig.strategy", "mixed"}});
  const TestService service(Specs({plain, shared}));
  const Json device = PodAsking("d", {{"nvidia.com/mig-1g.5gb", "1"}});
  const Json user = PodAsking("u", {{"nvidia.com/mig-1g.5gb.shared", "1"}});
  EXPECT_EQ(Refusal(service, Annotated(device, "berth.dev/isolation", "hardware"), "plain"), "");
  EXPECT_EQ(Refusal(service, user, "shared"), "");
  EXPECT_EQ(Refusal(service, Annotated(user, "berth.dev/isolation", "memory"), "shared"),
            TextOf(Reason::kTimeSliced));
  EXPECT_EQ(Refusal(service, Annotated(user, "berth.dev/isolation", "hardware"), "shared"),
            TextOf(Reason::kNotItsOwn));
}

TEST(MinGpuMemory, CountsForWholeGpusSlicesAndPlacesAlike) {
  const TestService service(Specs({MpsL4("l4"), SlicesOfA100("mig"), SlicedT4("t4"),
                                   WholeA100("whole"), ANodeWith("z", "nvidia.com/gpu", 2, {})}));
  const auto at_least = [&](const std::string& gib, const std::string& node) {
    return Refusal(service, Annotated(PodWithGpus("p", 1), "berth.dev/min-gpu-memory-gib", gib),
                   node);
  };
  const std::string small(TextOf(Reason::kGpuTooSmall));
  EXPECT_EQ(at_least("80", "whole"), "");
  EXPECT_EQ(at_least("81", "whole"), small);
  EXPECT_EQ(at_least("4", "mig"), "") << "4864 MiB";
  EXPECT_EQ(at_least("5", "mig"), small);
  EXPECT_EQ(at_least("3", "t4"), "") << "a quarter of 15 GiB";
  EXPECT_EQ(at_least("4", "t4"), small);
  EXPECT_EQ(at_least("3", "l4"), "") << "an eighth of 24 GiB";
  EXPECT_EQ(at_least("4", "l4"), small);
  EXPECT_EQ(at_least("1", "z"), TextOf(Reason::kGpuMemoryUnknown));
}

TEST(GpuNeeds, ThatCannotBeReadRefuseThePodAndSayWhatIsWanted) {
  const TestService service(Specs({WholeA100("whole")}));
  const auto told = [&](const Json& pod, const std::string& key, const std::string& value) {
    return Refusal(service, Annotated(pod, key, value), "whole");
  };
  const Json gpu = PodWithGpus("p", 1);
  const std::string isolation = "berth.dev/isolation", memory = "berth.dev/min-gpu-memory-gib";
  EXPECT_EQ(told(gpu, isolation, "Hardware"),
            "annotation berth.dev/isolation: want one of hardware, memory, none, got \"Hardware\"");
  EXPECT_EQ(told(gpu, isolation, ""),
            "annotation berth.dev/isolation: want one of hardware, memory, none, got \"\"");
  for (const char* bad : {"0", "-1", "80Gi", "", "100001", "1.5"}) {
    EXPECT_TRUE(
        told(gpu, memory, bad)
            .starts_with(
                "annotation berth.dev/min-gpu-memory-gib: want an integer from 1 to 100000, got "))
        << bad << ": " << told(gpu, memory, bad);
  }
  const std::string beside =
      "annotation berth.dev/min-gpu-memory-gib: want a pod that also asks for whole GPUs "
      "(nvidia.com/gpu); shares and MIG profiles state their memory themselves";
  EXPECT_EQ(told(PodAsking("s", {{"berth.dev/gpu-milli", "100"}}), memory, "8"), beside);
  EXPECT_EQ(told(PodAsking("m", {{"nvidia.com/mig-1g.10gb", "1"}}), memory, "8"), beside);
}

// Eight nodes as many have them: some whole, some shared in one way or another.
std::vector<Json> MixedCluster() {
  return {SomehowA40("a-somehow"), SlicedT4("b-sliced"),   SlicedT4("c-sliced", 10),
          MpsL4("d-mps"),          SlicesOfA100("e-mig"),  WholeA100("f-whole"),
          WholeA100("g-whole", 4), WholeA100("h-whole", 2)};
}

std::map<std::string, int> ScoresOf(const TestService& service, const Json& pod) {
  Json names = Json::array();
  for (const Json& node : MixedCluster()) names.push_back(node["metadata"]["name"]);
  std::map<std::string, int> scores;
  for (const Json& entry : service.Ask("prioritize", ArgsWithNames(pod, names))) {
    scores[entry["Host"]] = entry["Score"];
  }
  return scores;
}

// The worst of the nodes with whole GPUs, and the best of the others.
std::pair<int, int> WorstWholeAndBestPart(const TestService& service, const Json& pod) {
  const auto scores = ScoresOf(service, pod);
  EXPECT_EQ(scores.size(), 8U);
  std::pair<int, int> result{10, 0};
  for (const auto& [node, score] : scores) {
    if (node.ends_with("-whole")) {
      result.first = std::min(result.first, score);
    } else {
      result.second = std::max(result.second, score);
    }
  }
  return result;
}

TEST(PlainPods, GetWholeGpusBeforePartsUnderEveryPolicy) {
  for (const ProfileSpec& profile : BuiltinProfiles()) {
    const TestService service(Specs(MixedCluster()), nullptr, profile.name);
    const auto [worst_whole, best_part] = WorstWholeAndBestPart(service, PodWithGpus("plain", 1));
    EXPECT_GT(worst_whole, best_part) << profile.name;
  }
}

TEST(PlainPods, GetPartsWhereNoWholeGpuIsLeft) {
  TestService service(Specs(MixedCluster()));
  ASSERT_EQ(service.Place(PodWithGpus("eight", 8), "f-whole"), "");
  ASSERT_EQ(service.Place(PodWithGpus("four", 4), "g-whole"), "");
  ASSERT_EQ(service.Place(PodWithGpus("two", 2), "h-whole"), "");
  EXPECT_EQ(service.Place(PodWithGpus("plain", 1), "b-sliced"), "");
}

TEST(PodsThatSayWhatTheyNeed, AreLeftToThePolicy) {
  const TestService service(Specs(MixedCluster()), nullptr, "expected-waste");
  for (const auto& [key, value] : {std::pair("berth.dev/isolation", "none"),
                                   {"berth.dev/isolation", "memory"},
                                   {"berth.dev/min-gpu-memory-gib", "3"}}) {
    const auto [worst_whole, best_part] =
        WorstWholeAndBestPart(service, Annotated(PodWithGpus("p", 1), key, value));
    EXPECT_LT(worst_whole, best_part) << key << " " << value;
  }
}

}  // namespace
}  // namespace berth::wire::shared_gpus_test
