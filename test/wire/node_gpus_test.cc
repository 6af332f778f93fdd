// SPDX-License-Identifier: Apache-2.0
//
// Nodes as the kubelet, NVIDIA's device plugin and GPU Feature Discovery write them, and what pods
// learn about them.
#include "scoring/reason.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scoring/registry.h"
#include "server/wire/node/node_json.h"
#include "server/wire/pod/pod_object.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::node_gpus_test {
namespace {

using test::Json;
using test::PodAsking;
using test::PodWithGpus;
using test::ReadNode;
using test::TestService;

// A machine with 8 A100; that many are healthy.
Json EightA100(int allocatable) {
  return {
      {"kind", "Node"},
      {"metadata",
       {{"name", "a100"},
        {"annotations", {{"berth.dev/gpu-uuids", "g0,g1,g2,g3,g4,g5,g6,g7"}}},
        {"labels",
         {{"nvidia.com/gpu.count", "8"},
          {"nvidia.com/gpu.memory", "81920"},
          {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB"},
          {"nvidia.com/gpu.replicas", "1"},
          {"nvidia.com/gpu.sharing-strategy", "none"}}}}},
      {"status",
       {{"capacity", {{"cpu", "96"}, {"memory", "900Gi"}, {"nvidia.com/gpu", "8"}}},
        {"allocatable",
         {{"cpu", "95"}, {"memory", "880Gi"}, {"nvidia.com/gpu", std::to_string(allocatable)}}}}}};
}

// A machine with 4 T4 that are shared by four each.
Json FourSharedT4() {
  return {{"kind", "Node"},
          {"metadata",
           {{"name", "t4"},
            {"labels",
             {{"nvidia.com/gpu.count", "4"},
              {"nvidia.com/gpu.memory", "15360"},
              {"nvidia.com/gpu.product", "Tesla-T4-SHARED"},
              {"nvidia.com/gpu.replicas", "4"},
              {"nvidia.com/gpu.sharing-strategy", "time-slicing"}}}}},
          {"status",
           {{"capacity", {{"cpu", "32"}, {"memory", "128Gi"}, {"nvidia.com/gpu", "16"}}},
            {"allocatable", {{"cpu", "32"}, {"memory", "128Gi"}, {"nvidia.com/gpu", "16"}}}}}};
}

TEST(SharedGpus, HaveNamesAndAreChosenWhereAnAgentCarriesThatOut) {
  Json node = FourSharedT4();
  const auto places = [&node] { return ReadNode(node).spec.places.uuids; };
  Json& annotations = node["metadata"]["annotations"];
  annotations["berth.dev/gpu-uuids"] = "g0,g1,g2,g3";
  EXPECT_EQ(places(), (std::vector<std::string>{"g0", "g1", "g2", "g3"}));
  EXPECT_FALSE(ReadNode(node).spec.carries_out);
  annotations["berth.dev/carries-out"] = "nvidia.com/gpu";
  const NodeSpec spec = ReadNode(node).spec;
  EXPECT_TRUE(spec.carries_out);
  TestService service({spec});
  for (int pod = 0; pod < 6; ++pod) {
    ASSERT_EQ(service.Place(PodWithGpus("p-" + std::to_string(pod), 1), "t4"), "");
  }
  const auto snapshot = service.state().Current();
  const auto on = snapshot->node(0).places_on();
  EXPECT_EQ(std::vector<int>(on.begin(), on.end()), (std::vector{2, 2, 1, 1}));
  EXPECT_EQ(snapshot->node(0).places_taken(), 6);
  annotations["berth.dev/gpu-uuids"] = "g0,g1,g2";
  EXPECT_TRUE(places().empty()) << "the node has four";
}

// "" where the node passes the filter, else what the pod sees, with "never: " before it where no
// eviction helps, as among pods of one priority.
std::string Refusal(TestService& service, const Json& pod, const std::string& node) {
  const Json answer = service.Ask("filter", test::ArgsWithNames(pod, Json::array({node})));
  for (const auto& [map, prefix] :
       {std::pair("FailedNodes", ""), {"FailedAndUnresolvableNodes", "never: "}}) {
    if (answer[map].is_object() && answer[map].contains(node)) {
      return prefix + answer[map][node].get<std::string>();
    }
  }
  return "";
}

std::string Never(Reason reason) { return "never: " + std::string(TextOf(reason)); }

std::string MetricOf(TestService& service, const std::string& series) {
  const std::string text = service.Call("GET", "/metrics").body;
  const std::size_t at = text.find("\n" + series + " ");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + series.size() + 2;
  return text.substr(begin, text.find('\n', begin) - begin);
}

void Becomes(TestService& service, const Json& node) {
  ASSERT_TRUE(service.state().Apply(std::vector<ClusterEvent>{NodeUpserted{ReadNode(node).spec}}));
}

TEST(SickGpu, OfAPlainNodeIsCountedAndTheOtherSevenGoOn) {
  TestService service({ReadNode(EightA100(8)).spec});
  for (int pod = 0; pod < 4; ++pod) {
    ASSERT_EQ(service.Place(PodWithGpus("pair-" + std::to_string(pod), 2), "a100"), "");
  }
  Becomes(service, EightA100(7));
  EXPECT_EQ(MetricOf(service, R"(berth_gpus{model="NVIDIA-A100-SXM4-80GB",state="unhealthy"})"),
            "1");
  EXPECT_EQ(MetricOf(service, R"(berth_gpus{model="NVIDIA-A100-SXM4-80GB",state="free"})"), "0");
  const auto snapshot = service.state().Current();
  EXPECT_TRUE(snapshot->node(0).spec().links.known()) << "of all eight, as before";
  EXPECT_EQ(snapshot->node(0).spec().links.matrix().gpu_count(), 8);

  ASSERT_TRUE(service.state().Apply(std::vector<ClusterEvent>{PodGone{"pair-3"}}));
  EXPECT_EQ(Refusal(service, PodWithGpus("two", 2), "a100"), Never(Reason::kGpusBusy));
  EXPECT_EQ(Refusal(service, PodWithGpus("eight", 8), "a100"), Never(Reason::kTooFewGpus));
  EXPECT_EQ(service.Place(PodWithGpus("one", 1), "a100"), "");
  EXPECT_EQ(Refusal(service, PodWithGpus("another", 1), "a100"), Never(Reason::kGpusBusy));
  EXPECT_EQ(Refusal(service, PodAsking("share", {{"berth.dev/gpu-milli", "1"}}), "a100"),
            Never(Reason::kShareBusy));

  Becomes(service, EightA100(8));
  EXPECT_EQ(service.Place(PodWithGpus("another", 1), "a100"), "");
}

TEST(SickGpu, MakesNoRoomForAShareOnTheLastOne) {
  TestService service({ReadNode(EightA100(8)).spec});
  ASSERT_EQ(service.Place(PodWithGpus("all", 8), "a100"), "");
  Becomes(service, EightA100(7));
  EXPECT_EQ(Refusal(service, PodAsking("share", {{"berth.dev/gpu-milli", "100"}}), "a100"),
            Never(Reason::kShareBusy));
}

TEST(SickGpu, AllOfThemAreADevicePluginThatOffersNoneAndComesBack) {
  TestService service({ReadNode(EightA100(8)).spec});
  ASSERT_EQ(service.Place(PodWithGpus("six", 6), "a100"), "");
  Becomes(service, EightA100(0));
  EXPECT_EQ(Refusal(service, PodWithGpus("p", 1), "a100"), Never(Reason::kNoGpuOffered));
  EXPECT_EQ(Refusal(service, PodAsking("share", {{"berth.dev/gpu-milli", "1"}}), "a100"),
            Never(Reason::kNoGpuOffered));
  Becomes(service, EightA100(8));
  EXPECT_EQ(Refusal(service, PodWithGpus("p", 3), "a100"), Never(Reason::kGpusBusy));
  EXPECT_EQ(Refusal(service, PodWithGpus("p", 2), "a100"), "");
}

TEST(SharedGpus, GiveOnePlaceToAPodAndSayWhyNotMore) {
  Config config = DefaultConfig();
  config.shares.several_replicas = SeveralReplicas::kRefuse;
  TestService service({ReadNode(FourSharedT4(), config).spec});
  const std::string several = Never(Reason::kOnePlaceEach);
  EXPECT_EQ(Refusal(service, PodWithGpus("sixteen", 16), "t4"), several);
  EXPECT_EQ(Refusal(service, PodWithGpus("two", 2), "t4"), several);
  const std::string no_shares = Never(Reason::kPlacesOnly);
  EXPECT_EQ(Refusal(service, PodAsking("share", {{"berth.dev/gpu-milli", "100"}}), "t4"),
            no_shares);
  EXPECT_EQ(Refusal(service, PodAsking("mem", {{"berth.dev/gpu-memory-mib", "100"}}), "t4"),
            no_shares);
  for (int pod = 0; pod < 16; ++pod) {
    ASSERT_EQ(service.Place(PodWithGpus(std::to_string(pod), 1), "t4"), "") << pod;
  }
  EXPECT_EQ(Refusal(service, PodWithGpus("17", 1), "t4"), Never(Reason::kGpusBusy));
  EXPECT_EQ(MetricOf(service, R"(berth_gpu_places{model="Tesla-T4-SHARED",state="taken"})"), "16");
  EXPECT_EQ(MetricOf(service, "berth_pods_without_devices"), "0");
  ASSERT_TRUE(service.state().Apply(std::vector<ClusterEvent>{PodGone{"3"}}));
  EXPECT_EQ(Refusal(service, PodWithGpus("17", 1), "t4"), "");
  EXPECT_EQ(MetricOf(service, R"(berth_gpu_places{model="Tesla-T4-SHARED",state="free"})"), "1");
}

TEST(SharedGpus, ArePlacedUnderEveryPolicy) {
  for (const ProfileSpec& profile : BuiltinProfiles()) {
    TestService service({ReadNode(FourSharedT4()).spec, ReadNode(EightA100(8)).spec}, nullptr,
                        profile.name);
    EXPECT_EQ(service.Place(PodWithGpus("p", 1), "t4"), "") << profile.name;
    const Json scores = service.Ask(
        "prioritize", test::ArgsWithNames(PodWithGpus("q", 1), Json::array({"a100", "t4"})));
    EXPECT_EQ(scores.size(), 2U) << profile.name;
  }
}

// What counts as a GPU with several users, and what does not.
TEST(SharedGpus, AreToldByAnyOfTheirLabelsOrByTheirNumber) {
  const auto places = [](const Json& labels, int capacity) {
    Json node = EightA100(8);
    node["metadata"]["labels"] = labels;
    node["metadata"].erase("annotations");  // UUIDs are trusted more than labels
    node["status"]["capacity"]["nvidia.com/gpu"] = std::to_string(capacity);
    node["status"]["allocatable"]["nvidia.com/gpu"] = std::to_string(capacity);
    const NodeSpec spec = ReadNode(node).spec;
    EXPECT_EQ(spec.gpus.empty(), spec.places.count > 0);
    EXPECT_EQ(static_cast<int>(spec.gpus.size()) + spec.places.count, capacity);
    return spec.places.count;
  };
  EXPECT_EQ(places({{"nvidia.com/gpu.replicas", "10"}}, 40), 40);
  EXPECT_EQ(places({{"nvidia.com/gpu.sharing-strategy", "mps"}}, 40), 40);
  EXPECT_EQ(places({{"nvidia.com/gpu.product", "NVIDIA-A10-SHARED"}}, 8), 8);
  EXPECT_EQ(places({{"nvidia.com/gpu.count", "4"}}, 8), 8) << "more devices than GPUs";
  EXPECT_EQ(places({}, 80), 80) << "8 GPUs by 10, and no labels";
  EXPECT_EQ(places({}, 65), 65);
  EXPECT_EQ(places({{"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED"},
                    {"nvidia.com/gpu.count", "56"},
                    {"nvidia.com/gpu.replicas", "2"}},
                   112),
            112);
  EXPECT_EQ(places({}, 64), 0);
  EXPECT_EQ(places({{"nvidia.com/gpu.count", "7"}}, 8), 0) << "one has fallen off the bus";
  EXPECT_EQ(places({{"nvidia.com/gpu.count", "8"}}, 8), 0);
  EXPECT_EQ(places({{"nvidia.com/gpu.replicas", "1"}}, 8), 0);
  EXPECT_EQ(places({{"nvidia.com/gpu.replicas", "0"}}, 8), 0);
  EXPECT_EQ(places({{"nvidia.com/gpu.sharing-strategy", "none"}}, 8), 0);
  EXPECT_EQ(places({{"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"},
                    {"nvidia.com/gpu.count", "1"}},
                   8),
            0)
      << "each is a MIG device; that the label is old is said by nvidia_dialect.h";
}

TEST(SharedGpus, BeyondWhatAMaskHoldsAreANodeThatIsThere) {
  Json node = EightA100(8);
  for (const char* list : {"capacity", "allocatable"}) {
    node["status"][list]["nvidia.com/gpu"] = "80";
  }
  TestService service({ReadNode(node).spec});
  EXPECT_EQ(Refusal(service, PodWithGpus("two", 2), "a100"), Never(Reason::kOnePlaceEach));
  EXPECT_EQ(service.Place(PodWithGpus("one", 1), "a100"), "");
  EXPECT_EQ(service.Place(PodAsking("cpu", {{"cpu", "1"}}), "a100"), "");
}

// A node of HAMi's device plugin that shares its GPUs among ten users each.
Json HamiCoreNode(const std::string& registered) {
  Json node = EightA100(8);
  node["metadata"]["name"] = "hami";
  node["metadata"]["labels"] = {{"gpu", "on"}};
  node["metadata"]["annotations"]["hami.io/node-nvidia-register"] = registered;
  for (const char* list : {"capacity", "allocatable"}) {
    node["status"][list]["nvidia.com/gpu"] = "80";
  }
  return node;
}

TEST(HamiCore, GpusAreLeftToHamisScheduler) {
  Json registered = Json::array();
  for (int gpu = 0; gpu < 8; ++gpu) {
    registered.push_back({{"id", "GPU-" + std::to_string(gpu)},
                          {"index", gpu},
                          {"count", 10},
                          {"devmem", 81920},
                          {"devcore", 100},
                          {"type", "NVIDIA-NVIDIA A100-SXM4-80GB"},
                          {"mode", "hami-core"},
                          {"health", true}});
  }
  std::string older;
  for (int gpu = 0; gpu < 8; ++gpu) {
    older += "GPU-" + std::to_string(gpu) + ",10,81920,100,NVIDIA-NVIDIA A100-SXM4-80GB,0,true:";
  }
  for (const std::string& text : {registered.dump(), older, std::string("[{]")}) {
    TestService service({ReadNode(HamiCoreNode(text)).spec});
    EXPECT_EQ(Refusal(service, PodWithGpus("p", 1), "hami"), Never(Reason::kGpusForeign));
    EXPECT_EQ(Refusal(service, PodAsking("cpu", {{"cpu", "1"}}), "hami"), "");
    // A pod that HAMi's scheduler has placed counts there, by what it takes of nvidia.com/gpu.
    Json theirs = PodAsking("theirs", {{"nvidia.com/gpu", "2"}, {"nvidia.com/gpumem", "3000"}});
    theirs["spec"]["nodeName"] = "hami";
    const auto observed = DecodeObservedPod(test::Padded(theirs.dump()), service.rules());
    ASSERT_TRUE(observed) << observed.error().message;
    ASSERT_TRUE(service.state().Apply(
        std::vector<ClusterEvent>{PodBound{observed->pod, observed->placement}}));
    EXPECT_EQ(service.state().Current()->node(0).free_places(), 78);
    EXPECT_EQ(service.state().Current()->CountUnattributed(), 0U);
  }
}

TEST(SeveralVendors, AreNotOnePot) {
  Config config = DefaultConfig();
  config.resources.push_back({"amd.com/gpu", ResourceMeaning::kWholeGpus, "gpu"});
  Json amd = EightA100(8);
  amd["metadata"]["name"] = "mi300";
  amd["metadata"].erase("labels");
  for (const char* list : {"capacity", "allocatable"}) {
    amd["status"][list].erase("nvidia.com/gpu");
    amd["status"][list]["amd.com/gpu"] = "8";
  }
  const Node nvidia_node(std::make_shared<const NodeSpec>(ReadNode(EightA100(8), config).spec));
  const Node amd_node(std::make_shared<const NodeSpec>(ReadNode(amd, config).spec));
  EXPECT_EQ(amd_node.spec().gpus.size(), 8U);
  const PodRules rules(test::AllDialects(), config.resources);
  const auto read = [&rules](const Json& requests) {
    auto pod = DecodeObservedPod(test::Padded(PodAsking("p", requests).dump()), rules);
    EXPECT_TRUE(pod) << pod.error().message;
    return pod ? std::move(pod->pod) : PodRequest();
  };
  const PodRequest wants_amd = read({{"amd.com/gpu", "1"}, {"nvidia.com/gpu", "0"}});
  EXPECT_EQ(wants_amd.refusal, "");
  EXPECT_EQ(FirstObjection(amd_node, wants_amd.shape), Reason::kFits);
  EXPECT_EQ(FirstObjection(nvidia_node, wants_amd.shape), Reason::kOtherResource);
  const PodRequest wants_nvidia = read({{"nvidia.com/gpu", "2"}});
  EXPECT_EQ(FirstObjection(nvidia_node, wants_nvidia.shape), Reason::kFits);
  EXPECT_EQ(FirstObjection(amd_node, wants_nvidia.shape), Reason::kOtherResource);
  const PodRequest share = read({{"berth.dev/gpu-milli", "100"}});
  EXPECT_EQ(FirstObjection(amd_node, share.shape), Reason::kSharesNotCarriedOut)
      << "a container learns its GPU in NVIDIA's words";
  EXPECT_EQ(FirstObjection(nvidia_node, share.shape), Reason::kFits);
  const std::string refusal = read({{"nvidia.com/gpu", "1"}, {"amd.com/gpu", "1"}}).refusal;
  EXPECT_NE(refusal.find("amd.com/gpu"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("want one of the two"), std::string::npos) << refusal;
  Json two_containers = PodAsking("p", {{"nvidia.com/gpu", "1"}});
  two_containers["spec"]["containers"].push_back(
      {{"name", "b"}, {"resources", {{"limits", {{"amd.com/gpu", "1"}}}}}});
  EXPECT_NE(DecodeObservedPod(test::Padded(two_containers.dump()), rules)->pod.refusal, "");
}

TEST(SeveralVendors, OnOneNodeAreBothCountedAndTheLargerIsChosen) {
  Config config = DefaultConfig();
  config.resources.push_back({"amd.com/gpu", ResourceMeaning::kWholeGpus, "gpu"});
  Json node = EightA100(8);
  node["status"]["allocatable"]["amd.com/gpu"] = "2";
  const DecodedNode decoded = ReadNode(node, config);
  EXPECT_EQ(decoded.spec.gpus.size(), 8U);
  EXPECT_EQ(decoded.spec.gpu_resource, "nvidia.com/gpu");
  EXPECT_EQ(decoded.problem, "");
  EXPECT_EQ(decoded.spec.other_gpus, (OtherResources{{"amd.com/gpu", 2}}));
  config.resources = {{"nvidia.com/gpu", ResourceMeaning::kWholeGpus, "gpu"}};
  EXPECT_EQ(ReadNode(EightA100(8), config).spec.gpu_resource, "nvidia.com/gpu")
      << "GPUs of other agents have other resources";
}

TEST(AksOverlay, ItsModelLabelIsRecognised) {
  Config config = DefaultConfig();
  config.node_labels.gpu_model = "gpu-model";
  Json node = EightA100(8);
  node["metadata"]["labels"] = {{"gpu-model", "A100-SXM4-40GB"},
                                {"kubernetes.azure.com/agentpool", "gpua100"}};
  const NodeSpec whole = ReadNode(node, config).spec;
  EXPECT_EQ(whole.gpu_model, "A100-SXM4-40GB");
  ASSERT_EQ(whole.gpus.size(), 8U);
  EXPECT_EQ(whole.gpus[0].memory_mib, 40'192);
  EXPECT_TRUE(whole.links.known());

  for (const char* list : {"capacity", "allocatable"}) {
    node["status"][list]["nvidia.com/gpu"] = "0";
    node["status"][list]["nvidia.com/mig-1g.5gb"] = "56";
  }
  const NodeSpec cut = ReadNode(node, config).spec;
  ASSERT_TRUE(cut.mig.known());
  EXPECT_EQ(cut.mig->product->name(), "A100-40GB");
  EXPECT_EQ(cut.mig->gpus.size(), 8U);
}

TEST(AksPool, GotItsProfileWhenItWasMadeAndKeepsIt) {
  Json node = EightA100(0);
  node["status"]["capacity"]["nvidia.com/gpu"] = "0";
  node["status"]["allocatable"]["nvidia.com/mig-1g.10gb"] = "56";
  Json& labels = node["metadata"]["labels"];
  EXPECT_FALSE(ReadNode(node).spec.mig->fixed);
  labels["kubernetes.azure.com/agentpool"] = "gpua100";
  EXPECT_TRUE(ReadNode(node).spec.mig->fixed);
  labels["nvidia.com/mig.config.state"] = "success";
  EXPECT_FALSE(ReadNode(node).spec.mig->fixed) << "NVIDIA's MIG manager cuts these";
}

}  // namespace
}  // namespace berth::wire::node_gpus_test
