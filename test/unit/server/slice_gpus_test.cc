// SPDX-License-Identifier: Apache-2.0
//
// Whole GPUs of ResourceSlices, from the JSON of slices, classes, taint rules and claims to the
// verbs about pods that ask for them by the name of a resource.
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "bench/replay/time/sim_clock.h"
#include "cluster/state/audit.h"
#include "scoring/admission.h"
#include "scoring/explain/node_report.h"
#include "scoring/registry.h"
#include "server/dialects/dra/device_claims.h"
#include "server/dialects/dra/device_class_json.h"
#include "server/extender/extender.h"
#include "server/extender/inquiry.h"
#include "server/why/explain_json.h"
#include "server/wire/api/api_json.h"
#include "server/wire/pod/pod_object.h"
#include "test/support/bind_now.h"
#include "test/support/builders.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::test::slice_gpus_test {
namespace {

using dialects::DeviceClaims;
using std::chrono::seconds;

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr const char* kOfGpus =
    "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'";

Json TextJson(const std::string& text) { return {{"string", text}}; }

// As NVIDIA's driver publishes it.
Json GpuJson(const std::string& node, int index,
             const std::string& product = "NVIDIA H100 80GB HBM3") {
  const std::string number = std::to_string(index);
  return {{"name", "gpu-" + number},
          {"attributes",
           {{"type", TextJson("gpu")},
            {"uuid", TextJson("GPU-" + node + "-" + number)},
            {"productName", TextJson(product)},
            {"numaNode", {{"int", index / 4}}},
            {"driverVersion", {{"version", "580.65.6"}}},
            {"resource.kubernetes.io/pcieRoot", TextJson("pci0000:" + number)}}},
          {"capacity", {{"memory", {{"value", "80Gi"}}}}}};
}

Json SliceJson(const std::string& name, const std::string& node, Json devices, int generation = 1,
               int slices = 1) {
  return {{"kind", "ResourceSlice"},
          {"metadata", {{"name", name}}},
          {"spec",
           {{"driver", "gpu.nvidia.com"},
            {"nodeName", node},
            {"pool", {{"name", node}, {"generation", generation}, {"resourceSliceCount", slices}}},
            {"devices", std::move(devices)}}}};
}

Json ClaimJson(const std::string& name, const std::string& node, const std::vector<int>& gpus,
               const std::string& pod = "") {
  Json results = Json::array();
  for (const int gpu : gpus) {
    results.push_back({{"driver", "gpu.nvidia.com"},
                       {"pool", node},
                       {"device", "gpu-" + std::to_string(gpu)},
                       {"request", "container-0-request-0"}});
  }
  Json metadata = {{"name", name}, {"namespace", "default"}};
  if (!pod.empty()) {
    metadata["annotations"] = {{"resource.kubernetes.io/extended-resource-claim", "true"}};
    metadata["ownerReferences"] = {
        {{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", "p"}, {"uid", pod}, {"controller", true}}};
  }
  return {{"kind", "ResourceClaim"},
          {"metadata", std::move(metadata)},
          {"status", {{"allocation", {{"devices", {{"results", std::move(results)}}}}}}}};
}

class SliceGpus : public testing::Test {
 protected:
  template <class T>
  static T Decoded(const std::function<Result<T>(const PaddedText&)>& decode, const Json& json) {
    auto read = decode(PaddedText(json.dump()));
    EXPECT_TRUE(read) << read.error().message;
    return read ? *std::move(read) : T();
  }
  void PutSlice(const Json& json) {
    all_.slices().Put(Decoded<dialects::ResourceSlice>(dialects::DecodeResourceSlice, json));
  }
  void PutClaim(const Json& json) {
    all_.claims().Put(Decoded<dialects::ResourceClaim>(dialects::DecodeResourceClaim, json));
  }
  void DropClaim(const std::string& name) { all_.claims().Remove("default", name); }
  // Returns what is wrong with it.
  std::string PutClass(const std::string& name, const std::string& resource,
                       const std::vector<std::string>& selectors) {
    Json json = {{"kind", "DeviceClass"},
                 {"metadata", {{"name", name}}},
                 {"spec", {{"selectors", Json::array()}}}};
    if (!resource.empty()) json["spec"]["extendedResourceName"] = resource;
    for (const std::string& selector : selectors) {
      json["spec"]["selectors"].push_back({{"cel", {{"expression", selector}}}});
    }
    std::string problem;
    auto read = dialects::DecodeDeviceClass(PaddedText(json.dump()), problem);
    EXPECT_TRUE(read);
    if (read) all_.classes().Put(*std::move(read));
    return problem;
  }
  void PutRule(const std::string& name, const Json& selector, const std::string& effect) {
    std::string problem;
    auto read = dialects::DecodeDeviceTaintRule(
        PaddedText(Json{{"kind", "DeviceTaintRule"},
                        {"metadata", {{"name", name}}},
                        {"spec", {{"deviceSelector", selector}, {"taint", {{"effect", effect}}}}}}
                       .dump()),
        problem);
    ASSERT_TRUE(read);
    all_.taint_rules().Put(*std::move(read));
  }
  void Apply(const ClusterEvent& event) { ASSERT_TRUE(state_.Apply(std::span(&event, 1))); }

  // A node without GPUs of a device plugin whose slices have 8.
  void AddDraNode(const std::string& name, int gpus = 8) {
    Apply(NodeUpserted{ANode(name).Spec()});
    Json devices = Json::array();
    for (int gpu = 0; gpu < gpus; ++gpu) devices.push_back(GpuJson(name, gpu));
    PutSlice(SliceJson(name + "-s", name, devices));
  }

  [[nodiscard]] const Node& On(const std::string& name) {
    now_ = state_.Current();
    return now_->node(now_->names().Find(name));
  }
  [[nodiscard]] int Idle(const std::string& name) {
    int idle = 0;
    for (int gpu = 0; gpu < static_cast<int>(On(name).gpus().size()); ++gpu) {
      const GpuFree& free =
          now_->node(now_->names().Find(name)).gpus()[static_cast<std::size_t>(gpu)];
      EXPECT_GE(free.milli, 0) << "GPU " << gpu << " is held twice";
      idle += now_->node(now_->names().Find(name)).IsOpen(gpu) && free.idle() ? 1 : 0;
    }
    return idle;
  }
  static PodRequest Pod(APod pod, const std::string& resource = kGpu) {
    PodRequest request = pod.Request();
    request.shape.gpu_resource = resource;
    request.device_class = "gpu.nvidia.com";
    return request;
  }
  std::vector<Reason> Filter(const PodRequest& pod) {
    std::vector<NodeIndex> nodes(state_.Current()->size());
    std::iota(nodes.begin(), nodes.end(), NodeIndex{0});
    return extender_.Filter(extender_.Now(), pod, nodes).reasons;
  }
  Status Bind(const PodRequest& pod, const std::string& node) {
    return BindNow(extender_, {pod.id.namespace_name, pod.id.name, pod.id.uid, node});
  }
  std::vector<int> GpusOf(const std::string& uid) {
    std::vector<int> gpus;
    const auto record = state_.FindPod(uid);
    for (const DeviceGrant& grant :
         record ? record->placement.grants : std::vector<DeviceGrant>()) {
      gpus.push_back(grant.gpu);
    }
    return gpus;
  }
  void ExpectClean() {
    const AuditReport report = Audit(state_.Everything(), clock_.Now(), seconds(0));
    EXPECT_EQ(report.double_grants, 0U);
    EXPECT_EQ(report.differences, 0U);
    EXPECT_EQ(report.unknown_devices, 0U);
  }

  static constexpr Reason kFits = Reason::kFits;
  SimClock clock_;
  ClusterState state_;
  MigOffers offers_;
  DeviceClasses classes_;
  DeviceOffers devices_;
  OpenClaims open_;
  std::vector<std::string> told_;
  DeviceClaims all_{{state_, offers_, classes_, devices_, open_},
                    true,
                    [this](std::string_view, std::string_view object, const std::string& why) {
                      told_.push_back(std::string(object) + ": " + why);
                    }};
  WaitingPods waiting_;
  std::vector<Placement> bound_;
  std::vector<std::string> written_;
  ScriptedBinder binder_{[this](const PodRequest& pod, const Placement& placement) {
    bound_.push_back(placement);
    auto text =
        wire::EncodeBinding(pod, placement, On(placement.node).spec(), "d", {}, *AllDialects());
    written_.push_back(text ? *text : text.error().message);
    return Status();
  }};
  SilentSink sink_;
  NodeDomains domains_{{{"rack", {"rack"}}}};
  GangTable gangs_{{state_, waiting_, domains_}};
  Extender extender_{{.state = state_,
                      .binder = binder_,
                      .sink = sink_,
                      .clock = clock_,
                      .domains = &domains_,
                      .behind_scheduler = true,
                      .gangs = &gangs_,
                      .waiting = &waiting_},
                     {.engine = EngineOf("best-fit"),
                      .reservation_time = seconds(30),
                      .gangs = {.conventions = {"berth"}}}};
  std::shared_ptr<const Snapshot> now_;
};

TEST_F(SliceGpus, FillTheNode) {
  EXPECT_EQ(PutClass("gpu.nvidia.com", kGpu, {kOfGpus}), "");
  AddDraNode("n");
  const NodeSpec& spec = On("n").spec();
  ASSERT_EQ(spec.gpus.size(), 8U);
  EXPECT_EQ(spec.gpus[3], (GpuSpec{"GPU-n-3", 80 * 1024, true}));
  EXPECT_EQ(spec.gpu_model, "NVIDIA-H100-80GB-HBM3");
  EXPECT_TRUE(spec.links.known());
  EXPECT_TRUE(spec.links.knows_numa()) << "the devices say it";
  ASSERT_EQ(spec.by_claims.size(), 2U);
  EXPECT_TRUE(spec.GivesGpusAs(kGpu));
  EXPECT_TRUE(spec.GivesGpusAs("deviceclass.resource.kubernetes.io/gpu.nvidia.com"));
  EXPECT_FALSE(spec.GivesGpusAs("amd.com/gpu"));
  all_.slices().Remove("", "n-s");
  EXPECT_TRUE(On("n").spec().gpus.empty());
  EXPECT_TRUE(On("n").spec().by_claims.empty());
}

TEST_F(SliceGpus, AreTheNodesOnlyWhereNoDevicePluginOffersSome) {
  PutClass("gpu.nvidia.com", kGpu, {kOfGpus});
  AddDraNode("n");
  Apply(NodeUpserted{ANode("n").Gpus(4).Spec()});
  EXPECT_EQ(On("n").spec().gpus.size(), 4U);
  NodeSpec away = ANode("n").Gpus(4).Spec();
  away.missing = 4;
  Apply(NodeUpserted{away});
  EXPECT_EQ(On("n").spec().gpus.size(), 8U) << "nothing of it is allocatable";
  EXPECT_EQ(On("n").spec().missing, 0);
  PutSlice(SliceJson("n-s", "n", Json::array({GpuJson("n", 0)})));
  EXPECT_EQ(On("n").spec().gpus.size(), 1U);
  Apply(NodeUpserted{ANode("n").Gpus(4).Spec()});
  EXPECT_EQ(On("n").spec().gpus.size(), 4U);
  EXPECT_TRUE(On("n").spec().by_claims.empty());
}

// No name leads to them: nothing is missing there, and nobody has to start a device plugin.
TEST_F(SliceGpus, WithoutADeviceClassThatNamesThemClaimsAloneGetThem) {
  AddDraNode("n");
  NodeSpec away = ANode("away").Gpus(8).Missing(8).Spec();
  AddDraNode("away");
  Apply(NodeUpserted{away});
  for (const char* name : {"n", "away"}) {
    EXPECT_TRUE(IsGpuNode(On(name).spec()));
    const NodeReport report = ReportOf(On(name));
    EXPECT_EQ(wire::NotesOn(report), std::vector<std::string>()) << "it is as it should be";
    const std::string says = "offers its 8 GPUs by ResourceClaims alone: ask by a claim";
    EXPECT_NE(wire::TextOf(report).find(says), std::string::npos) << wire::TextOf(report);
    EXPECT_EQ(wire::TextOf(report).find("device plugin"), std::string::npos);
    const PodRequest pod = APod("p").Whole(1).Request();
    EXPECT_TRUE(LackText(On(name), pod, FirstObjection(On(name), pod.shape)).starts_with(says));
  }
  PutClass("gpu.nvidia.com", kGpu, {kOfGpus});
  for (const char* name : {"n", "away"}) EXPECT_EQ(Idle(name), 8);
  Apply(NodeUpserted{ANode("away").Gpus(8).Spec()});
  EXPECT_EQ(On("away").spec().beside.in_slices, 0) << "its device plugin offers them";
  all_.slices().Remove("", "n-s");
  EXPECT_FALSE(IsGpuNode(On("n").spec()));
}

// Those of AMD's driver are placed by kube-scheduler alone, and are there all the same.
TEST_F(SliceGpus, DevicesOfOtherDriversAreToldWithTheirClaims) {
  const auto of_amd = [](Json json) {
    for (Json& device : json["spec"]["devices"]) device["attributes"].erase("uuid");
    json["spec"]["driver"] = "gpu.amd.com";
    return json;
  };
  Apply(NodeUpserted{ANode("n").Spec()});
  const std::string model = "AMD_Instinct_MI300X_OAM";
  PutSlice(of_amd(SliceJson("s", "n", {GpuJson("n", 0, model), GpuJson("n", 1, model)})));
  Json claim = ClaimJson("c", "n", {1});
  claim["status"]["allocation"]["devices"]["results"][0]["driver"] = "gpu.amd.com";
  PutClaim(claim);
  EXPECT_TRUE(IsGpuNode(On("n").spec()));
  EXPECT_FALSE(On("n").spec().has_gpus());
  const std::string text = wire::TextOf(ReportOf(On("n")));
  for (const char* said : {"offers its 2 GPUs by ResourceClaims alone",
                           "\n  2 AMD_Instinct_MI300X_OAM of gpu.amd.com\n",
                           "\n  gpu.amd.com/gpu-1: held by claim default/c\n"}) {
    EXPECT_NE(text.find(said), std::string::npos) << said << ": " << text;
  }
  // The pool of NVIDIA's driver has the same name, and its GPU 1 is another one.
  PutClass("gpu.nvidia.com", kGpu, {kOfGpus});
  AddDraNode("n");
  EXPECT_EQ(Idle("n"), 8);
  DropClaim("c");
  all_.slices().Remove("", "s");
  EXPECT_EQ(wire::TextOf(ReportOf(On("n"))).find("amd"), std::string::npos);
  Apply(NodeUpserted{ANode("m").Spec()});
  PutSlice({{"kind", "ResourceSlice"},
            {"metadata", {{"name", "nic"}}},
            {"spec",
             {{"driver", "dra.net"},
              {"nodeName", "m"},
              {"pool", {{"name", "m"}, {"generation", 1}, {"resourceSliceCount", 1}}},
              {"devices", {{{"name", "eth0"}}}}}}});
  EXPECT_FALSE(IsGpuNode(On("m").spec()));
}

TEST_F(SliceGpus, AreTakenInTheOrderInWhichTheyArePublished) {
  PutClass("gpu.nvidia.com", kGpu, {kOfGpus});
  Apply(NodeUpserted{ANode("n").Spec()});
  PutSlice(SliceJson("b", "n", {GpuJson("n", 1), GpuJson("n", 0)}, 1, 2));
  EXPECT_EQ(Idle("n"), 0) << "a slice of the pool is missing";
  PutSlice(SliceJson("a", "n", {GpuJson("n", 3), GpuJson("n", 2)}, 1, 2));
  EXPECT_EQ(On("n").spec().by_claims.back().order, (std::vector{3, 2, 1, 0}));
  const PodRequest pod = Pod(APod("p").Whole(2));
  EXPECT_EQ(Filter(pod), std::vector{kFits});
  ASSERT_TRUE(Bind(pod, "n"));
  EXPECT_EQ(GpusOf(pod.id.uid), (std::vector{2, 3}));
  ASSERT_EQ(written_.size(), 1U);
  EXPECT_EQ(written_[0].find("berth.dev/devices"), std::string::npos) << "the claim says it";
}

TEST_F(SliceGpus, TaintsOfSlicesAndOfRulesCloseThem) {
  PutClass("gpu.nvidia.com", kGpu, {kOfGpus});
  Apply(NodeUpserted{ANode("n").Spec()});
  Json sick = GpuJson("n", 0);
  sick["taints"] = {{{"key", "xid"}, {"effect", "NoSchedule"}}};
  PutSlice(SliceJson("s", "n", {sick, GpuJson("n", 1), GpuJson("n", 2)}));
  EXPECT_EQ(Idle("n"), 2);
  PutRule("r", {{"driver", "gpu.nvidia.com"}, {"pool", "n"}, {"device", "gpu-1"}}, "NoExecute");
  EXPECT_EQ(Idle("n"), 1);
  PutRule("other", {{"pool", "m"}}, "NoExecute");
  PutRule("shown", Json::object(), "None");
  EXPECT_EQ(Idle("n"), 1);
  EXPECT_EQ(Filter(Pod(APod("p").Whole(2))), std::vector{Reason::kTooFewGpus});
  all_.taint_rules().Remove("", "r");
  EXPECT_EQ(Idle("n"), 2);
  PutRule("all", Json::object(), "NoSchedule");
  EXPECT_EQ(Idle("n"), 0);
  EXPECT_EQ(VerdictOf(Filter(Pod(APod("p").Whole(1)))[0]), Verdict::kUnresolvable);
}

TEST_F(SliceGpus, AClaimTakesThePlaceOfWhatWasForeseen) {
  PutClass("gpu.nvidia.com", kGpu, {kOfGpus});
  AddDraNode("n");
  const PodRequest pod = Pod(APod("p").Whole(2));
  Filter(pod);
  ASSERT_TRUE(Bind(pod, "n"));
  EXPECT_EQ(GpusOf(pod.id.uid), (std::vector{0, 1}));
  EXPECT_EQ(Idle("n"), 6);
  PutClaim(ClaimJson("c", "n", {4, 5}, pod.id.uid));
  EXPECT_EQ(GpusOf(pod.id.uid), (std::vector{4, 5})) << "kube-scheduler took others";
  EXPECT_EQ(Idle("n"), 6);
  Apply(PodBound{pod, {"n", 0, 0, {}}, true, false, true});
  EXPECT_EQ(GpusOf(pod.id.uid), (std::vector{4, 5})) << "nothing is written on the pod";
  EXPECT_EQ(state_.DisputeCount(), 0U);
  EXPECT_EQ(On("n").unattributed(), 0);
  ExpectClean();
  Apply(PodGone{pod.id.uid});
  EXPECT_EQ(Idle("n"), 6) << "the claim is there";
  DropClaim("c");
  EXPECT_EQ(Idle("n"), 8);
}

TEST_F(SliceGpus, APodIsBoundWhoseClaimHasTheLastGpus) {
  PutClass("gpu.nvidia.com", kGpu, {kOfGpus});
  AddDraNode("n", 2);
  const PodRequest pod = Pod(APod("p").Whole(2));
  EXPECT_EQ(Filter(pod), std::vector{kFits});
  PutClaim(ClaimJson("c", "n", {0, 1}, pod.id.uid));
  const Status bound = Bind(pod, "n");
  ASSERT_TRUE(bound) << bound.error().message;
  EXPECT_EQ(GpusOf(pod.id.uid), (std::vector{0, 1}));
  EXPECT_EQ(Idle("n"), 0);
  ExpectClean();
}

TEST_F(SliceGpus, OneThatIsForeseenGivesWayToTheClaimOfAnother) {
  PutClass("gpu.nvidia.com", kGpu, {kOfGpus});
  AddDraNode("n", 4);
  const PodRequest first = Pod(APod("a").Whole(2)), second = Pod(APod("b").Whole(2));
  for (const PodRequest& pod : {first, second}) {
    Filter(pod);
    ASSERT_TRUE(Bind(pod, "n"));
  }
  EXPECT_EQ(Idle("n"), 0);
  PutClaim(ClaimJson("b", "n", {0, 1}, second.id.uid));
  EXPECT_EQ(Idle("n"), 0) << "the first has the others";
  ExpectClean();
  PutClaim(ClaimJson("a", "n", {2, 3}, first.id.uid));
  EXPECT_EQ(GpusOf(first.id.uid), (std::vector{2, 3}));
  ExpectClean();
}

TEST_F(SliceGpus, NodesOfBothKindsAreJudgedAlike) {
  PutClass("gpu.nvidia.com", kGpu, {kOfGpus});
  AddDraNode("dra", 8);
  NodeSpec plugin = ANode("plugin").Gpus(8).Spec();
  plugin.gpu_resource = kGpu;
  Apply(NodeUpserted{plugin});
  PutClaim(ClaimJson("c", "dra", {0, 1, 2, 3, 4, 5}));
  const PodRequest pod = Pod(APod("p").Whole(2));
  EXPECT_EQ(Filter(pod), (std::vector{kFits, kFits}));
  const auto scores = extender_.Prioritize(extender_.Now(), pod, std::vector<NodeIndex>{0, 1});
  EXPECT_GT(scores[0], scores[1]) << "best fit: the node with two left";
  EXPECT_EQ(Filter(Pod(APod("large").Whole(8))), (std::vector{Reason::kGpusHeld, kFits}));
  EXPECT_EQ(Inquiry(extender_, extender_.Now()).Explain(pod).by_claim, 0U);
}

// Its claim is written before it is bound, and the next ones are asked about before that.
TEST_F(SliceGpus, APodWhoseBindIsUnderWayIsFollowedByTheNext) {
  PutClass("gpu.nvidia.com", kGpu, {kOfGpus});
  for (const char* const name : {"a", "b", "c"}) AddDraNode(name);
  const auto scores_of = [&](const std::vector<NodeIndex>& nodes) {
    return extender_.Prioritize(extender_.Now(), Pod(APod("p").Whole(1)), nodes);
  };
  EXPECT_EQ(scores_of({0, 1, 2}), (std::vector<std::uint8_t>{10, 9, 9}));
  const auto told = Inquiry(extender_, extender_.Now()).Explain(Pod(APod("p").Whole(1)));
  ASSERT_EQ(told.best.size(), 3U);
  EXPECT_EQ(told.best[0].node, 0U);
  EXPECT_EQ(told.best[0].place, 1U);
  EXPECT_EQ(told.best[1].place, 2U) << "as Prioritize has it";
  EXPECT_EQ(told.best[2].place, 2U);
  EXPECT_EQ(scores_of({1, 2}), (std::vector<std::uint8_t>{10, 9})) << "a is full by now";
  PutClaim(ClaimJson("x", "c", {0, 1}));
  EXPECT_EQ(scores_of({0, 1, 2}), (std::vector<std::uint8_t>{9, 9, 10})) << "best fit";
  EXPECT_EQ(extender_.Prioritize(extender_.Now(), APod("no-claim").Whole(1).Request(),
                                 std::vector<NodeIndex>{0, 1}),
            (std::vector<std::uint8_t>{10, 10}));
}

TEST_F(SliceGpus, PodsThatSayMoreOfTheirGpusMayGoThere) {
  PutClass("gpu.nvidia.com", kGpu, {kOfGpus});
  AddDraNode("n");
  EXPECT_EQ(Filter(Pod(APod("model").Whole(2).Models({"NVIDIA-H100-80GB-HBM3"}))),
            std::vector{kFits});
  EXPECT_EQ(Filter(Pod(APod("other").Whole(2).Models({"A100"}))),
            std::vector{Reason::kModelMismatch});
  PodRequest one_numa = Pod(APod("numa").Whole(4));
  one_numa.shape.links.numa = NumaWish::kRequired;
  EXPECT_EQ(Filter(one_numa), std::vector{kFits});
  PutClaim(ClaimJson("c", "n", {0}));
  EXPECT_EQ(Filter(one_numa), std::vector{Reason::kLinkedHeld})
      << "kube-scheduler will take 1 to 4, of two NUMA nodes";
  EXPECT_EQ(Filter(Pod(APod("share").Share(500))), std::vector{Reason::kSharesNotCarriedOut});
}

TEST_F(SliceGpus, WhatIsNotReadIsLeftToKubeScheduler) {
  EXPECT_NE(PutClass("odd", kGpu,
                     {std::string(kOfGpus) + " && device.attributes['gpu.nvidia.com']" +
                      ".productName.ofTomorrow('NVIDIA H100')"}),
            "");
  AddDraNode("n");
  EXPECT_TRUE(On("n").spec().by_claims.empty());
  EXPECT_EQ(Filter(Pod(APod("p").Whole(2))), std::vector{kFits});
  EXPECT_EQ(Inquiry(extender_, extender_.Now()).Explain(Pod(APod("p").Whole(2))).by_claim, 1U);
  PutClass(
      "h100", "example.com/h100",
      {kOfGpus, "device.attributes[\"gpu.nvidia.com\"].productName.startsWith(\"NVIDIA H100\")"});
  EXPECT_TRUE(On("n").spec().GivesGpusAs("example.com/h100"));
  EXPECT_FALSE(On("n").spec().GivesGpusAs(kGpu));
  EXPECT_EQ(Filter(Pod(APod("p").Whole(9))), std::vector{kFits}) << "kube-scheduler decides";
  EXPECT_EQ(Filter(Pod(APod("q").Whole(9), "example.com/h100")), std::vector{Reason::kTooFewGpus});
  PutClass("any", "nvidia.com/any", {"device.driver == 'gpu.nvidia.com'"});
  EXPECT_FALSE(On("n").spec().GivesGpusAs("nvidia.com/any")) << "MIG devices too";
  PutClass("fails", "nvidia.com/fails",
           {kOfGpus, "device.attributes['gpu.nvidia.com'].none == 'x'"});
  EXPECT_FALSE(On("n").spec().GivesGpusAs("nvidia.com/fails"));
  EXPECT_EQ(all_.unknown_pools(), 1U);
}

TEST_F(SliceGpus, DevicesWithoutUuidsAndMoreThanANodeCanHaveAreReported) {
  PutClass("gpu.nvidia.com", kGpu, {kOfGpus});
  Apply(NodeUpserted{ANode("n").Spec()});
  Json nameless = GpuJson("n", 0);
  nameless["attributes"].erase("uuid");
  PutSlice(SliceJson("s", "n", {nameless, GpuJson("n", 1)}));
  EXPECT_TRUE(On("n").spec().by_claims.empty());
  EXPECT_EQ(all_.unknown_pools(), 1U);
  Json many = Json::array();
  for (int gpu = 0; gpu < 100; ++gpu) many.push_back(GpuJson("n", gpu));
  PutSlice(SliceJson("s", "n", many));
  EXPECT_TRUE(On("n").spec().by_claims.empty());
  EXPECT_EQ(all_.unknown_pools(), 1U);
  PutSlice(SliceJson("s", "n", Json::array({GpuJson("n", 1)})));
  EXPECT_EQ(all_.unknown_pools(), 0U);
  EXPECT_EQ(On("n").spec().gpus.size(), 1U);
}

TEST_F(SliceGpus, ManyDevicesAreBounded) {
  PutClass("gpu.nvidia.com", kGpu, {kOfGpus});
  Apply(NodeUpserted{ANode("n").Spec()});
  std::vector<dialects::ResourceSlice> slices;
  for (int s = 0; s < 80; ++s) {
    Json devices = Json::array();
    for (int d = 0; d < 125; ++d) {
      devices.push_back({{"name", "d-" + std::to_string(s * 125 + d)},
                         {"attributes", {{"type", TextJson("mig")}}}});
    }
    slices.push_back(Decoded<dialects::ResourceSlice>(
        dialects::DecodeResourceSlice, SliceJson("s" + std::to_string(s), "n", devices, 1, 80)));
  }
  all_.slices().Reset(std::move(slices));
  EXPECT_TRUE(On("n").spec().by_claims.empty());
  EXPECT_EQ(all_.unknown_pools(), 1U);
}

TEST_F(SliceGpus, AGangIsPlannedThere) {
  PutClass("gpu.nvidia.com", kGpu, {kOfGpus});
  AddDraNode("n");
  AddDraNode("o");
  const auto member = [](const std::string& name) {
    return Pod(APod(name).Whole(8).Gang("berth:default/train").GangSize(2));
  };
  EXPECT_FALSE(GetsClaimAnywhere(*state_.Current(), member("a")));
  EXPECT_EQ(Filter(member("a")), (std::vector(2, Reason::kGangIncomplete)));
}

// Claims, pods, slices and taints come and go in any order. Whatever happens, no GPU is held twice,
// and what is held at last is what claims and pods without claims have.
TEST_F(SliceGpus, AnyOrderOfEventsEndsTheSame) {
  PutClass("gpu.nvidia.com", kGpu, {kOfGpus});
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::string node = "n" + std::to_string(seed);
    AddDraNode(node);
    std::map<std::string, std::vector<int>> claims;  // by pod
    std::map<std::string, int> pods;                 // known; how many GPUs
    std::uint64_t taken = 0;
    for (int step = 0; step < 60; ++step) {
      const std::string name = node + "-p" + std::to_string(random.Below(6));
      const PodRequest pod = Pod(APod(name).Whole(1 + static_cast<int>(random.Below(3))));
      const std::string& uid = pod.id.uid;
      switch (random.Below(6)) {
        case 0:  // its claim is allocated
          if (!claims.contains(uid)) {
            const int count = pods.contains(uid) ? pods[uid] : pod.shape.gpu_count();
            std::vector<int> gpus;
            for (int gpu = 0; gpu < 8 && static_cast<int>(gpus.size()) < count; ++gpu) {
              if ((taken >> gpu & 1) == 0) gpus.push_back(gpu);
            }
            if (static_cast<int>(gpus.size()) < count) break;
            for (const int gpu : gpus) taken |= std::uint64_t{1} << gpu;
            PutClaim(ClaimJson("c-" + uid, node, gpus, uid));
            claims[uid] = gpus;
          }
          break;
        case 1:  // the pod is bound by Berth
          if (!pods.contains(uid) && !claims.contains(uid)) {
            Filter(pod);
            if (Bind(pod, node)) pods[uid] = pod.shape.gpu_count();
          }
          break;
        case 2:  // it is gone, and then its claim
          if (pods.erase(uid) > 0) Apply(PodGone{uid});
          if (claims.contains(uid)) {
            for (const int gpu : claims[uid]) taken &= ~(std::uint64_t{1} << gpu);
            claims.erase(uid);
            DropClaim("c-" + uid);
          }
          break;
        case 3:  // the watch shows it
          if (pods.contains(uid)) {
            const PodRequest same = Pod(APod(name).Whole(pods[uid]));
            Apply(PodBound{same, {node, 0, 0, {}}, true, false, true});
          }
          break;
        case 4:  // the driver publishes anew, in two steps
          all_.slices().Remove("", node + "-s");
          {
            Json devices = Json::array();
            for (int gpu = 7; gpu >= 0; --gpu) devices.push_back(GpuJson(node, gpu));
            PutSlice(SliceJson(node + "-s", node, devices, step + 2));
          }
          break;
        default:
          Apply(NodeRemoved{node});
          Apply(NodeUpserted{ANode(node).Spec()});
      }
      ASSERT_EQ(On(node).spec().gpus.size(), 8U);
      int wanted = 0;
      for (const auto& [held, gpus] : claims) wanted += static_cast<int>(gpus.size());
      for (const auto& [held, count] : pods) wanted += claims.contains(held) ? 0 : count;
      int held = 0;
      for (const GpuFree& free : On(node).gpus()) held += (1000 - free.milli) / 1000;
      ASSERT_EQ(held, wanted) << "step " << step;
      for (const auto& [owner, gpus] : claims) {
        if (!pods.contains(owner)) continue;
        EXPECT_EQ(GpusOf(owner), gpus);
      }
    }
    const AuditReport report = Audit(state_.Everything(), clock_.Now(), seconds(0));
    EXPECT_EQ(report.differences, 0U);
    Apply(NodeRemoved{node});
    for (const auto& [uid, count] : pods) Apply(PodGone{uid});
    for (const auto& [uid, gpus] : claims) DropClaim("c-" + uid);
    all_.slices().Remove("", node + "-s");
  }
}

TEST(SliceGpuPods, AResourceOfAClassOfWholeGpusAsksForThem) {
  DeviceClasses classes;
  const wire::PodRules rules(AllDialects(), DefaultConfig().resources, {}, nullptr, &classes);
  DeviceClass whole;
  whole.name = "gpu.nvidia.com";
  whole.extended_resource = "example.com/gpus";
  whole.whole = true;
  classes.Put(whole);
  for (const std::string name :
       {"example.com/gpus", "deviceclass.resource.kubernetes.io/gpu.nvidia.com"}) {
    const PaddedText text(PodAsking("p", {{name, "2"}}).dump());
    const auto observed = wire::DecodeObservedPod(text, rules);
    ASSERT_TRUE(observed);
    EXPECT_EQ(observed->pod.shape.gpu_count(), 2) << name;
    EXPECT_EQ(observed->pod.shape.gpu_resource, name);
    EXPECT_EQ(observed->pod.device_class, "gpu.nvidia.com");
  }
}

}  // namespace
}  // namespace berth::test::slice_gpus_test
