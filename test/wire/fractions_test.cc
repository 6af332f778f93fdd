// SPDX-License-Identifier: Apache-2.0
//
// Shares whose memory NVIDIA's driver limits (kai-gpu-fractioning): what pods ask for, which nodes
// are open for them, what is written with the Binding and what others have written.
#include <array>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "scoring/explain/node_report.h"
#include "test/support/agent_world.h"

namespace berth::test::fractions_test {
namespace {

const std::string kOfMain = "nvidia.com/container.main.";
const std::string kReady = "gpu-fractioning.nvidia.com/Ready";
constexpr std::int64_t kGpuMib = 81'920;

Json NodeThatIs(const Texts& conditions, int gpus = 2, bool uuids = true) {
  std::string names;
  for (int gpu = 0; gpu < gpus; ++gpu) names += (gpu > 0 ? ",GPU-" : "GPU-") + std::to_string(gpu);
  Json node = NodeWith({{"nvidia.com/gpu", std::to_string(gpus)}},
                       uuids ? Texts{{"berth.dev/gpu-uuids", names}} : Texts());
  node["metadata"]["labels"] = {{"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB"},
                                {"nvidia.com/gpu.memory", std::to_string(kGpuMib)}};
  node["status"]["conditions"] = Json::array();
  for (const auto& [type, status] : conditions) {
    node["status"]["conditions"].push_back({{"type", type}, {"status", status}});
  }
  return node;
}
Json ReadyNode(int gpus = 2, bool uuids = true) {
  return NodeThatIs({{kReady, "True"}}, gpus, uuids);
}

// As kube-scheduler sends it: the share is said by annotations alone.
Json Asking(const std::string& uid, const Texts& annotations) {
  Json pod = PodAsking(uid, {{"cpu", "1"}});
  for (const auto& [key, value] : annotations) pod["metadata"]["annotations"][key] = value;
  return pod;
}
Json Fraction(const std::string& uid, const std::string& request, const std::string& mode = "") {
  Texts annotations = {{kOfMain + "gpu-memory.request", request}};
  if (!mode.empty()) annotations[kOfMain + "gpu-compute.mode"] = mode;
  return Asking(uid, annotations);
}

GpuAsk AskOf(const Texts& annotations) {
  AgentWorld world(ReadyNode());
  const PodRequest pod = world.Decode(Asking("a", annotations));
  EXPECT_EQ(pod.refusal, "");
  return pod.shape.gpus;
}
std::string RefusalOf(const Json& pod) {
  AgentWorld world(ReadyNode());
  return world.Decode(pod).refusal;
}

TEST(Fractions, AreAskedForByMemoryInWholeMib) {
  const auto share = [](std::int64_t mib) { return GpuAsk(GpuShare{.memory_mib = mib}); };
  const std::string request = kOfMain + "gpu-memory.request", limit = kOfMain + "gpu-memory.limit";
  EXPECT_EQ(AskOf({{request, "8Gi"}}), share(8192));
  EXPECT_EQ(AskOf({{request, "8Gi"}, {limit, "16Gi"}}), share(8192)) << "the request is packed";
  EXPECT_EQ(AskOf({{limit, "16Gi"}}), share(16'384));
  EXPECT_EQ(AskOf({{request, "1000M"}}), share(954)) << "rounded up";
  EXPECT_EQ(AskOf({{request, "1048577"}}), share(2));
  EXPECT_EQ(AskOf({{request, "1Mi"}}), share(1));
  EXPECT_EQ(AskOf({{request, "8Gi"}, {"gpu-fraction-num-devices", "2"}}),
            GpuAsk(GpuShare{.memory_mib = 8192, .count = 2}));
  for (const char* most : {"7Ei", "9Ei", "9223372036854775807", "99999999999999999999"}) {
    EXPECT_EQ(AskOf({{request, most}}), AskOf({{request, "4Pi"}})) << most;
    EXPECT_EQ(AskOf({{limit, most}}), AskOf({{request, "4Pi"}})) << most;
  }
  EXPECT_EQ(AskOf({{"nvidia.com/container.main.gpus.devices", "GPU-0"}}), GpuAsk(NoGpu{}))
      << "devices alone ask for nothing";
}

TEST(Fractions, ThatNobodyCouldGiveAreRefusedInPlainWords) {
  const std::string request = kOfMain + "gpu-memory.request";
  const auto refusal = [](const Texts& annotations) { return RefusalOf(Asking("a", annotations)); };
  EXPECT_EQ(refusal({{request, "8 GB"}}),
            "annotation " + request +
                ": want a quantity such as \"500m\", \"4\" or \"16Gi\", got \"8 GB\"");
  EXPECT_EQ(refusal({{request, "1023Ki"}}),
            "annotation " + request + ": want 1Mi or more, got \"1023Ki\"");
  EXPECT_EQ(refusal({{request, "-1Gi"}}),
            "annotation " + request + ": want 1Mi or more, got \"-1Gi\"");
  EXPECT_EQ(refusal({{request, "16Gi"}, {kOfMain + "gpu-memory.limit", "8Gi"}}),
            "annotation " + request + ": want no more than the limit, 8192Mi, got 16384Mi");
  EXPECT_EQ(
      refusal({{request, "8Gi"}, {kOfMain + "gpu-compute.mode", "mps"}}),
      "annotation " + kOfMain + "gpu-compute.mode: want time-slicing or sm-sharing, got \"mps\"");
  // The agent lets no container with an empty one be created.
  EXPECT_EQ(
      refusal({{request, "8Gi"}, {kOfMain + "gpu-compute.mode", " "}}),
      "annotation " + kOfMain + "gpu-compute.mode: want time-slicing or sm-sharing, got \"\"");
  EXPECT_EQ(refusal({{request, "8Gi"}, {kOfMain + "gpu-compute.mode", " sm-sharing "}}), "");
  EXPECT_EQ(refusal({{"nvidia.com/container.other.gpu-memory.request", "8Gi"}}),
            "annotation nvidia.com/container.other.gpu-memory.request: the pod has no container of "
            "that name");
  EXPECT_EQ(refusal({{request, "8Gi"}, {kOfMain + "gpu-compute.request", "0.5"}}),
            "annotation " + kOfMain + "gpu-compute.request: not known to this version of berth");
  EXPECT_EQ(refusal({{request, "8Gi"}, {"gpu-fraction-num-devices", "0"}}),
            "annotation gpu-fraction-num-devices: want an integer from 1 to 64, got \"0\"");
  Json two = Fraction("a", "8Gi");
  two["spec"]["containers"].push_back({{"name", "second"}});
  two["metadata"]["annotations"]["nvidia.com/container.second.gpu-memory.limit"] = "8Gi";
  EXPECT_EQ(
      RefusalOf(two),
      "annotation nvidia.com/container.second.gpu-memory.limit: want a share in one container "
      "of a pod, got it beside that of container main");
}

TEST(Fractions, AreNotAskedForBesideOtherGpus) {
  for (const char* resource :
       {"nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "berth.dev/gpu-milli", "nvidia.com/gpumem"}) {
    Json pod = Fraction("a", "8Gi");
    Json other = PodAsking("b", {{resource, "1"}})["spec"]["containers"][0];
    other["name"] = "other";
    pod["spec"]["containers"].push_back(other);
    EXPECT_EQ(RefusalOf(pod),
              "annotation " + kOfMain +
                  "gpu-memory.request: want no other GPUs in the pod, got some in container other")
        << resource;
  }
  Json marked = Fraction("a", "8Gi");
  marked["spec"]["containers"][0]["resources"]["limits"]["berth.dev/gpu-memory-mib"] = "0";
  EXPECT_EQ(RefusalOf(marked), "") << "a name for kube-scheduler's managedResources";
}

TEST(Fractions, AreGivenOnlyWhereTheNodeSaysThatItIsReady) {
  const Json pod = Fraction("a", "8Gi");
  const auto check = [&pod](const Json& node) { return AgentWorld(node).Check(pod); };
  EXPECT_EQ(check(ReadyNode()), Reason::kFits);
  EXPECT_EQ(check(NodeThatIs({{"gpu-sharing.nvidia.com/Ready", "True"}})), Reason::kFits);
  EXPECT_EQ(check(NodeThatIs({})), Reason::kShareOfOtherAgent);
  EXPECT_EQ(check(NodeThatIs({{kReady, "False"}})), Reason::kShareAgentNotReady);
  EXPECT_EQ(check(NodeThatIs({{kReady, "Unknown"}})), Reason::kShareAgentNotReady);
  EXPECT_EQ(check(NodeThatIs({{"gpu-sharing.nvidia.com/Ready", "True"}, {kReady, "False"}})),
            Reason::kShareAgentNotReady)
      << "the newer name decides";
  EXPECT_EQ(TextOf(Reason::kShareAgentNotReady),
            "node(s) had an agent for GPU shares that was not ready");
  Json annotated = NodeThatIs({});
  annotated["metadata"]["annotations"][kReady] = "True";
  EXPECT_EQ(check(annotated), Reason::kShareOfOtherAgent) << "no condition";
  Json replicas = NodeThatIs({{kReady, "True"}});
  replicas["metadata"]["labels"]["nvidia.com/gpu.replicas"] = "2";
  EXPECT_NE(check(replicas), Reason::kFits);
}

TEST(Fractions, OpenAndCloseWithTheCondition) {
  AgentWorld world(NodeThatIs({{kReady, "False"}}));
  EXPECT_EQ(world.Check(Fraction("a", "8Gi")), Reason::kShareAgentNotReady);
  world.PutNode(ReadyNode());
  EXPECT_FALSE(world.Bind(Fraction("a", "8Gi")).empty());
  world.PutNode(NodeThatIs({{kReady, "False"}}));
  EXPECT_EQ(world.Check(Fraction("b", "8Gi")), Reason::kShareAgentNotReady);
  EXPECT_EQ(world.node().gpus()[0].memory_mib, kGpuMib - 8192) << "what is given stays given";
}

TEST(Fractions, NameTheirGpuWithTheBindingAndAreReadBackTheSame) {
  AgentWorld world(ReadyNode());
  const Json pod = Fraction("a", "60Gi", "sm-sharing");
  const Texts written = world.Bind(pod);
  EXPECT_EQ(written.at(kOfMain + "gpus.devices"), "GPU-0");
  EXPECT_TRUE(written.contains("berth.dev/devices"));
  EXPECT_EQ(world.Bind(Fraction("b", "60Gi")).at(kOfMain + "gpus.devices"), "GPU-1");
  EXPECT_EQ(world.Check(Fraction("c", "60Gi")), Reason::kShareBusy);

  AgentWorld again(ReadyNode());
  for (const auto& [key, value] : written) {
    EXPECT_TRUE(key.starts_with("berth.dev/") || key.starts_with("nvidia.com/")) << key;
  }
  Json bound = pod;
  for (const auto& [key, value] : written) bound["metadata"]["annotations"][key] = value;
  EXPECT_EQ(again.Show(bound, kOfMain + "gpus.devices", "GPU-0"), "");
  EXPECT_EQ(again.node().gpus()[0], world.node().gpus()[0]);
  EXPECT_EQ(again.Check(Fraction("c", "8Gi")), Reason::kFits);
  EXPECT_EQ(again.Bind(Fraction("c", "8Gi")).at(kOfMain + "gpus.devices"), "GPU-1")
      << "the mode is read back too";
}

TEST(Fractions, AreNamedByIndexWhereTheNodeSaysNoUuids) {
  AgentWorld world(ReadyNode(2, false));
  EXPECT_EQ(world.Bind(Fraction("a", "80Gi")).at(kOfMain + "gpus.devices"), "0");
  EXPECT_EQ(world.Bind(Fraction("b", "80Gi")).at(kOfMain + "gpus.devices"), "1");
  Json several = Fraction("c", "1Mi");
  several["metadata"]["annotations"]["gpu-fraction-num-devices"] = "2";
  AgentWorld named(ReadyNode());
  EXPECT_EQ(named.Bind(several).at(kOfMain + "gpus.devices"), "GPU-0,GPU-1");
}

TEST(Fractions, OfInitContainersAreNamedForThese) {
  AgentWorld world(ReadyNode());
  Json pod = Asking("a", {{"nvidia.com/container.first.gpu-memory.request", "8Gi"}});
  pod["spec"]["initContainers"] = Json::array({{{"name", "first"}}});
  EXPECT_EQ(world.Bind(pod).at("nvidia.com/container.first.gpus.devices"), "GPU-0");
}

TEST(Fractions, OfTwoModesNeverShareAGpu) {
  AgentWorld world(ReadyNode());
  EXPECT_EQ(world.Bind(Fraction("a", "8Gi", "sm-sharing")).at(kOfMain + "gpus.devices"), "GPU-0");
  EXPECT_EQ(world.Bind(Fraction("b", "8Gi", "time-slicing")).at(kOfMain + "gpus.devices"), "GPU-1");
  EXPECT_EQ(world.Bind(Fraction("c", "8Gi")).at(kOfMain + "gpus.devices"), "GPU-1")
      << "without a mode it is time-slicing";
  EXPECT_EQ(world.Bind(Fraction("d", "8Gi", "sm-sharing")).at(kOfMain + "gpus.devices"), "GPU-0");
  world.Remove("b");
  world.Remove("c");
  EXPECT_EQ(world.Bind(Fraction("e", "70Gi", "sm-sharing")).at(kOfMain + "gpus.devices"), "GPU-1");
  EXPECT_EQ(world.Check(Fraction("f", "1Gi")), Reason::kShareBusy);
  const PodRequest waits = world.Decode(Fraction("f", "1Gi"));
  const std::string lack = LackText(world.node(), waits, Reason::kShareBusy);
  EXPECT_NE(lack.find("2 GPUs shared in another way"), std::string::npos) << lack;
  Placement forced = PlacementFor(world.node(), waits.shape, {GpuBit(0), 1, 1024});
  EXPECT_FALSE(world.node().CanTake(forced, waits)) << "a bind that was decided before";
}

TEST(Fractions, AreNeverBesideWholeGpusAndOtherShares) {
  AgentWorld world(ReadyNode());
  EXPECT_FALSE(world.Bind(PodWithGpus("whole", 1)).empty());
  EXPECT_EQ(world.Bind(Fraction("a", "8Gi")).at(kOfMain + "gpus.devices"), "GPU-1");
  EXPECT_EQ(world.Check(PodWithGpus("b", 1)), Reason::kGpusBusy);
  EXPECT_EQ(world.Check(PodAsking("c", {{"berth.dev/gpu-milli", "100"}})),
            Reason::kShareOfOtherAgent)
      << "shares of Berth reach their container by another way";
  world.PutNode(NodeThatIs({{kReady, "False"}}));
  EXPECT_EQ(world.Check(PodAsking("c", {{"berth.dev/gpu-milli", "100"}})), Reason::kShareBusy)
      << "one GPU is whole, and the other has a share that is limited";
  world.Remove("whole");
  EXPECT_EQ(world.Check(PodAsking("c", {{"berth.dev/gpu-milli", "100"}})), Reason::kFits);

  AgentWorld before(NodeThatIs({}));
  EXPECT_FALSE(before.Bind(PodAsking("own", {{"berth.dev/gpu-milli", "100"}})).empty());
  before.PutNode(ReadyNode());
  EXPECT_EQ(before.Bind(Fraction("a", "8Gi")).at(kOfMain + "gpus.devices"), "GPU-1");
}

TEST(Fractions, ExcludeNvidiasNriPlugin) {
  Json node = ReadyNode();
  node["metadata"]["labels"]["berth.dev/nri"] = "k8s.device-plugin.nvidia.com";
  AgentWorld world(node);
  EXPECT_EQ(world.problem,
            "label berth.dev/nri: has no effect while GPU fractioning is ready on the node; want "
            "one of both");
  const Texts written = world.Bind(Fraction("a", "8Gi"));
  EXPECT_TRUE(written.contains(kOfMain + "gpus.devices"));
  EXPECT_FALSE(written.contains("nvidia.cdi.k8s.io/container.main"));
}

TEST(Fractions, NeedUuidsBesideMigDevices) {
  Json node = ReadyNode(2, false);
  node["metadata"]["labels"]["nvidia.com/mig.strategy"] = "mixed";
  node["metadata"]["labels"]["nvidia.com/gpu.count"] = "3";
  node["status"]["allocatable"]["nvidia.com/mig-1g.10gb"] = "7";
  AgentWorld world(node);
  EXPECT_NE(world.problem.find("GPU shares: want berth.dev/gpu-uuids"), std::string::npos)
      << world.problem;
  EXPECT_EQ(world.Check(Fraction("a", "8Gi")), Reason::kShareOfOtherAgent);
}

TEST(Fractions, OfKaiCountInTheBooks) {
  for (const bool by_uuid : {true, false}) {
    AgentWorld world(ReadyNode());
    const std::string devices = by_uuid ? "GPU-1" : "1";
    EXPECT_EQ(world.Show(Fraction("kai", "60Gi"), kOfMain + "gpus.devices", devices), "");
    EXPECT_EQ(world.node().gpus()[0].memory_mib, kGpuMib);
    EXPECT_EQ(world.node().gpus()[1].memory_mib, kGpuMib - 61'440);
    EXPECT_EQ(world.Bind(Fraction("a", "60Gi")).at(kOfMain + "gpus.devices"), "GPU-0");
    EXPECT_EQ(world.Check(PodWithGpus("b", 1)), Reason::kGpusBusy);
    EXPECT_EQ(world.Check(Fraction("c", "1Gi", "sm-sharing")), Reason::kShareBusy);
    world.Remove("kai");
    EXPECT_EQ(world.node().gpus()[1].memory_mib, kGpuMib);
  }
  AgentWorld world(ReadyNode());
  Json both = Fraction("kai", "8Gi");
  both["metadata"]["annotations"]["gpu-fraction-num-devices"] = "2";
  EXPECT_EQ(world.Show(both, kOfMain + "gpus.devices", "GPU-1,GPU-0"), "");
  for (const GpuFree& gpu : world.node().gpus()) EXPECT_EQ(gpu.memory_mib, kGpuMib - 8192);
}

TEST(Fractions, OfKaiMayBeOnTheGpuThatKaiReserves) {
  AgentWorld world(ReadyNode());
  EXPECT_EQ(world.Show(PodWithGpus("holds", 1), "run.ai/reserve_for_gpu_index", "GPU-1"), "");
  EXPECT_EQ(world.Show(Fraction("kai", "60Gi"), kOfMain + "gpus.devices", "GPU-1"), "");
  EXPECT_EQ(world.Audit().double_grants, 0U);
  EXPECT_EQ(world.node().FindPod("kai")->placement.grants.front().gpu, 1) << "whichever came first";
  EXPECT_EQ(world.Check(PodWithGpus("whole", 1)), Reason::kFits) << "GPU-0 is idle";
  EXPECT_EQ(world.Bind(Fraction("a", "8Gi")).at(kOfMain + "gpus.devices"), "GPU-0");
  const Json gpu = {{"index", 0}, {"milli", 1000}, {"memory_mib", kGpuMib}};
  Json devices = {{"version", 1}, {"node", "n1"}};
  devices["containers"]["main"]["gpus"] = Json::array({gpu});
  EXPECT_EQ(world.Show(PodWithGpus("other", 1), "berth.dev/devices", devices.dump()), "");
  EXPECT_EQ(world.Audit().double_grants, 1U) << "this one is nobody's to share";
}

TEST(Fractions, ThatWereInventedAreNotBelieved) {
  AgentWorld world(ReadyNode());
  Json pending = Fraction("a", "8Gi");
  pending["metadata"]["annotations"][kOfMain + "gpus.devices"] = "GPU-1";
  const wire::ObservedPod observed = world.Observe(pending);
  EXPECT_TRUE(observed.placement.grants.empty());
  EXPECT_EQ(world.Bind(pending).at(kOfMain + "gpus.devices"), "GPU-0") << "written over";

  // Of one that is bound: no more than it asks for, and only of the container that asks.
  EXPECT_NE(world.Show(Fraction("b", "8Gi"), kOfMain + "gpus.devices", "GPU-0,GPU-1"), "");
  Json other = Fraction("c", "8Gi");
  other["spec"]["containers"].push_back({{"name", "a"}});
  other["metadata"]["annotations"]["nvidia.com/container.a.gpus.devices"] = "GPU-0";
  EXPECT_EQ(world.Show(other, kOfMain + "gpus.devices", "GPU-1"), "");
  EXPECT_EQ(world.node().FindPod("c")->placement.grants.front().gpu, 1);
  Json plain = PodAsking("d", {{"cpu", "1"}});
  EXPECT_NE(world.Show(plain, kOfMain + "gpus.devices", "GPU-1"), "");
  EXPECT_TRUE(world.node().FindPod("d")->placement.grants.empty());
}

TEST(Fractions, ThatCannotBeReadHoldAllOfTheirGpuOnceTheyRun) {
  AgentWorld world(ReadyNode());
  EXPECT_EQ(world.Show(Fraction("a", "zz"), kOfMain + "gpus.devices", "GPU-1"), "");
  EXPECT_EQ(world.node().gpus()[1].milli, 0);
  EXPECT_EQ(world.Bind(Fraction("b", "8Gi")).at(kOfMain + "gpus.devices"), "GPU-0");
  world.Remove("a");
  EXPECT_EQ(world.Show(Fraction("c", "8Gi", "mps"), kOfMain + "gpus.devices", "GPU-1"), "");
  EXPECT_EQ(world.Bind(Fraction("d", "8Gi")).at(kOfMain + "gpus.devices"), "GPU-0")
      << "another mode";
}

TEST(Fractions, OfUnknownGpusKeepTheOtherModeAway) {
  AgentWorld world(ReadyNode(1));
  EXPECT_NE(world.Show(Fraction("kai", "8Gi"), kOfMain + "gpus.devices", "GPU-x,GPU-y"), "");
  EXPECT_EQ(world.Check(Fraction("a", "8Gi", "sm-sharing")), Reason::kShareBusy);
  EXPECT_EQ(world.Check(Fraction("a", "8Gi")), Reason::kFits);
}

TEST(Fractions, AreAnsweredToKubeSchedulerLikeThis) {
  Json off = NodeThatIs({{kReady, "False"}});
  off["metadata"]["name"] = "off";
  Json without = NodeThatIs({});
  without["metadata"]["name"] = "without";
  TestService service({ReadNode(ReadyNode(1)).spec, ReadNode(off).spec, ReadNode(without).spec});
  const Json names = {"n1", "off", "without"};
  const Json answer = service.Ask("filter", ArgsWithNames(Fraction("1", "60Gi"), names));
  EXPECT_EQ(answer["NodeNames"], Json({"n1"}));
  EXPECT_EQ(answer["FailedAndUnresolvableNodes"]["off"],
            "node(s) had an agent for GPU shares that was not ready");
  EXPECT_EQ(answer["FailedAndUnresolvableNodes"]["without"],
            "node(s) had no agent for GPU shares of the resource that the pod asks for");
  EXPECT_EQ(service.Ask("bind", BindingArgs("1", "n1"))["Error"], "");
  const Json full = service.Ask("filter", ArgsWithNames(Fraction("2", "60Gi"), names));
  EXPECT_EQ(full["FailedAndUnresolvableNodes"]["n1"], "node(s) had no GPU with enough free share");
  EXPECT_EQ(service.Ask("filter", ArgsWithNames(Fraction("3", "8Gi"), {"n1"}))["NodeNames"],
            Json({"n1"}));
  EXPECT_EQ(
      service.Ask("filter", ArgsWithNames(Fraction("4", "8Gi", "sm-sharing"), {"n1"}))["NodeNames"],
      Json::array());
}

// What was given, by GPU: by the annotations alone, however Berth counts.
struct Held {
  std::int64_t mib = 0;
  bool whole = false;
  std::map<std::string, int> ways;  // how many pods of each mode, and of Berth's own shares
};

TEST(Fractions, NeverExceedAGpuNorMeetInTwoModes) {
  std::mt19937 random(49);
  const auto below = [&random](int end) {
    return std::uniform_int_distribution<int>(0, end - 1)(random);
  };
  int given = 0, refused = 0;
  for (int round = 0; round < 60; ++round) {
    const int gpus = 1 + below(4);
    AgentWorld world(ReadyNode(gpus, below(4) > 0));
    std::map<std::string, std::pair<Json, Texts>> there;
    for (int step = 0; step < 60; ++step) {
      if (below(8) == 0) {
        world.PutNode(NodeThatIs({{kReady, below(2) == 0 ? "True" : "False"}}, gpus));
      }
      if (!there.empty() && below(3) == 0) {
        const auto gone = std::next(there.begin(), below(static_cast<int>(there.size())));
        world.Remove(gone->first);
        there.erase(gone);
      } else {
        const std::string uid = std::to_string(round) + "-" + std::to_string(step);
        const int kind = below(8);
        const std::string mib = std::to_string(1 + below(50'000)) + "Mi";
        Json pod = Fraction(uid, mib, kind % 2 == 0 ? "sm-sharing" : "time-slicing");
        if (kind == 6) pod = PodWithGpus(uid, 1);
        if (kind == 7) pod = PodAsking(uid, {{"berth.dev/gpu-milli", "300"}});
        const Texts written =
            world.Bind(pod, 0, below(2) == 0 ? DeviceRule::kTightest : DeviceRule::kRandom);
        (written.empty() ? refused : given)++;
        if (!written.empty()) there[uid] = {pod, written};
      }
      std::map<int, Held> held;
      for (const auto& [uid, pod] : there) {
        const PodRequest request = world.Decode(pod.first);
        const Json devices = Json::parse(pod.second.at("berth.dev/devices"));
        for (const Json& gpu : devices["containers"]["main"]["gpus"]) {
          Held& of = held[gpu["index"].get<int>()];
          if (const auto* const share = std::get_if<GpuShare>(&request.shape.gpus)) {
            of.mib += share->memory_mib > 0 ? share->memory_mib : kGpuMib * 3 / 10;
            ++of.ways[std::to_string(static_cast<int>(request.shape.share_mode))];
          } else {
            of.whole = true;
          }
          const auto written = pod.second.find(kOfMain + "gpus.devices");
          if (written == pod.second.end()) continue;
          const std::string index = std::to_string(gpu["index"].get<int>());
          EXPECT_TRUE(written->second == index || written->second == "GPU-" + index);
        }
      }
      for (const auto& [gpu, of] : held) {
        ASSERT_LE(of.mib, kGpuMib);
        ASSERT_LE(of.ways.size() + (of.whole ? 1 : 0), 1U) << "round " << round << ", GPU " << gpu;
      }
    }
  }
  EXPECT_GT(given, 500);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace berth::test::fractions_test
