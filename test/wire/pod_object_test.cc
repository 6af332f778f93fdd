// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/pod_object.h"

#include <gtest/gtest.h>

#include "bench/replay/time/sim_clock.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::pod_object_test {
namespace {

using test::Json;

const PodRules& Rules() {
  static const PodRules rules(test::AllDialects(), DefaultConfig().resources);
  return rules;
}

ObservedPod Decode(const Json& pod) {
  auto observed = DecodeObservedPod(test::Padded(pod.dump()), Rules());
  EXPECT_TRUE(observed) << observed.error().message;
  return observed ? *std::move(observed) : ObservedPod();
}

// A pod of two GPUs on n1, with what Berth wrote when it bound it.
Json BoundPod() {
  Json pod = test::PodWithGpus("u", 2);
  pod["kind"] = "Pod";
  pod["metadata"]["resourceVersion"] = "17";
  pod["metadata"]["annotations"]["berth.dev/devices"] =
      R"({"version":1,"node":"n1","containers":{"main":{"gpus":[)"
      R"({"index":1,"milli":1000,"memory_mib":80000},)"
      R"({"index":5,"milli":1000,"memory_mib":80000}]}}})";
  pod["spec"]["nodeName"] = "n1";
  pod["status"]["phase"] = "Running";
  return pod;
}

TEST(PodObject, ABoundPodHasItsPlacement) {
  const ObservedPod observed = Decode(BoundPod());
  EXPECT_EQ(observed.pod.id, (PodId{"u", "ns", "pod-u"}));
  EXPECT_EQ(observed.node, "n1");
  EXPECT_EQ(observed.resource_version, "17");
  EXPECT_EQ(observed.placement, (Placement{"n1", 1000, 0, {{1, 1000, 80'000}, {5, 1000, 80'000}}}));
  EXPECT_EQ(observed.problem, "");
  EXPECT_EQ(observed.pod.refusal, "");
  EXPECT_FALSE(observed.over);
  EXPECT_FALSE(observed.terminating);
}

TEST(PodObject, AFieldOfAnotherTypeIsNamedWithWhatIsThere) {
  const auto wrong = [](const char* part, const Json& patch) {
    Json pod = BoundPod();
    pod[part].merge_patch(patch);
    const auto observed = DecodeObservedPod(test::Padded(pod.dump()), Rules());
    EXPECT_FALSE(observed) << patch;
    return observed ? "" : observed.error().message;
  };
  const Json list = Json::array({"a"});
  const auto text = [](const std::string& place, const std::string& got) {
    return "pod ns/pod-u: " + place + ": want the type that Kubernetes gives it, got " + got;
  };
  const std::string quotes = "; put texts in quotes", in_it = ", or something else in it";
  EXPECT_EQ(wrong("metadata", {{"annotations", {{"berth.dev/gang-size", 4}}}}),
            text("metadata.annotations.berth.dev/gang-size", "4" + quotes));
  EXPECT_EQ(wrong("spec", {{"nodeSelector", {{"gpu", true}}}}),
            text("spec.nodeSelector.gpu", "true" + quotes));
  EXPECT_EQ(wrong("spec", Json::parse(R"({"tolerations":{"key":"a"}})")),
            text("spec.tolerations", "an object" + in_it));
  EXPECT_EQ(wrong("spec", {{"tolerations", list}}), text("spec.tolerations[0]", "\"a\""));
  EXPECT_EQ(wrong("spec", {{"nodeSelector", list}}), text("spec.nodeSelector", "a list" + in_it));
  EXPECT_EQ(wrong("spec", Json::parse(R"({"priority":"x"})")), text("spec.priority", "\"x\""));
  EXPECT_TRUE(wrong("metadata", {{"name", list}}).starts_with("pod: metadata.name: "));
}

TEST(PodObject, OfAResizeThatIsUnderWayTheMostCounts) {
  const auto cpu = [](const Json& status, const char* spec = "4") {
    Json pod = BoundPod();
    pod["spec"]["containers"][0]["resources"]["requests"] = {{"cpu", spec}, {"memory", "1Gi"}};
    pod["status"].update(status);
    return Decode(pod).placement.cpu_milli;
  };
  const std::string name = BoundPod()["spec"]["containers"][0]["name"];
  const auto status = [&name](const char* allocated, const char* actual) {
    return Json{{"containerStatuses",
                 {{{"name", name},
                   {"allocatedResources", {{"cpu", allocated}, {"nvidia.com/gpu", "7"}}},
                   {"resources", {{"requests", {{"cpu", actual}}}}}}}}};
  };
  EXPECT_EQ(cpu(status("60", "60")), 60'000) << "it was made smaller, and still has all of it";
  EXPECT_EQ(cpu(status("4", "60")), 60'000);
  EXPECT_EQ(cpu(status("2", "2")), 4'000) << "it was made larger";
  EXPECT_EQ(cpu(status("a lot", "2")), 4'000);
  Json infeasible = status("4", "4");
  infeasible["conditions"] = {{{"type", "PodResizePending"}, {"reason", "Infeasible"}}};
  EXPECT_EQ(cpu(infeasible, "400"), 4'000) << "the node cannot give it";
  Json other = status("60", "60");
  other["containerStatuses"][0]["name"] = "of-no-container";
  EXPECT_EQ(cpu(other), 4'000);
}

TEST(PodObject, OfAResizeOfAWholePodTheMostCounts) {
  Json pod = BoundPod();
  pod["spec"]["resources"]["requests"] = {{"cpu", "4"}, {"memory", "1Gi"}};
  pod["status"]["allocatedResources"] = {{"cpu", "8"}};
  pod["status"]["resources"]["requests"] = {{"memory", "2Gi"}};
  const ObservedPod observed = Decode(pod);
  EXPECT_EQ(observed.placement.cpu_milli, 8'000);
  EXPECT_EQ(observed.placement.memory_bytes, std::int64_t{2} << 30);
}

TEST(PodObject, APodThatIsNotBoundHasNone) {
  Json pod = test::PodWithGpus("u", 2);
  pod["status"] = {{"phase", "Pending"}};
  const ObservedPod observed = Decode(pod);
  EXPECT_EQ(observed.node, "");
  EXPECT_EQ(observed.placement, Placement());
}

TEST(PodObject, WhatKubeSchedulerSaidIsKeptInAtMost1000Bytes) {
  Json pod = test::PodWithGpus("u", 2);
  Json condition = {{"type", "PodScheduled"},
                    {"status", "False"},
                    {"reason", "Unschedulable"},
                    {"message", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}};
  const auto said = [&pod, &condition] {
    pod["status"] = {{"phase", "Pending"}, {"conditions", Json::array({condition})}};
    return Decode(pod).scheduler_said;
  };
  EXPECT_EQ(said(), "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.");
  condition["message"] = "a\n\x1b[2Jb";
  EXPECT_EQ(said(), "a  [2Jb");
  condition["message"] = std::string(32'768, 'x');
  EXPECT_EQ(said(), std::string(997, 'x') + "...");
  condition["reason"] = "SchedulingGated";
  EXPECT_EQ(said(), "") << "no scheduler has looked at it";
}

TEST(PodObject, PhasesAndDeletionTellWhatItStillHolds) {
  for (const auto& [phase, over] : {std::pair("Pending", false),
                                    {"Running", false},
                                    {"Unknown", false},
                                    {"Succeeded", true},
                                    {"Failed", true}}) {
    Json pod = BoundPod();
    pod["status"]["phase"] = phase;
    EXPECT_EQ(Decode(pod).over, over) << phase;
  }
  Json pod = BoundPod();
  pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_TRUE(Decode(pod).terminating);
  EXPECT_FALSE(Decode(pod).over);
}

TEST(PodObject, APodThatEndsSaysWhetherItWasEvicted) {
  Json pod = BoundPod();
  pod["status"] = {
      {"phase", "Running"},
      {"conditions",
       Json::array(
           {{{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "EvictionByEvictionAPI"}},
            {{"type", "Ready"}, {"reason", "Other"}}})}};
  EXPECT_FALSE(Decode(pod).life.evicted) << "it was not told to end yet";
  pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_TRUE(Decode(pod).life.evicted);
  pod["status"]["conditions"][0]["reason"] = "PreemptionByScheduler";
  EXPECT_FALSE(Decode(pod).life.evicted);
}

TEST(PodObject, AnAnnotationThatIsNotItsOwnIsAProblemAndGrantsNothing) {
  Json pod = BoundPod();
  pod["spec"]["nodeName"] = "n2";
  const ObservedPod observed = Decode(pod);
  EXPECT_EQ(observed.problem,
            "pod ns/pod-u: annotation berth.dev/devices: node: want \"n2\", got \"n1\"");
  EXPECT_EQ(observed.placement, (Placement{"n2", 1000, 0, {}}));
  EXPECT_EQ(observed.pod.shape.gpu_count(), 2);
}

// Berth writes its own record beside those of other agents. Without it the others are forged.
TEST(PodObject, OfAPodThatBerthDecidedAboutOnlyItsOwnRecordIsRead) {
  Json forged = BoundPod();
  Json& annotations = forged["metadata"]["annotations"];
  annotations.erase("berth.dev/devices");
  annotations["hami.io/vgpu-devices-allocated"] = "GPU-a,NVIDIA,80000,100:GPU-b,NVIDIA,80000,100:;";
  const ObservedPod theirs = Decode(forged);
  EXPECT_FALSE(theirs.lacks_devices) << "HAMi's scheduler may have bound it";
  EXPECT_EQ(theirs.placement.grants.size(), 2U);
  annotations["berth.dev/decision"] = "0123456789abcdef";
  for (const char* record :
       {"hami.io/vgpu-devices-allocated", "volcano.sh/vgpu-ids-new",
        "scheduling.koordinator.sh/device-allocated", "run.ai/reserve_for_gpu_index", ""}) {
    Json pod = forged;
    pod["metadata"]["annotations"].erase("hami.io/vgpu-devices-allocated");
    if (*record != 0) {
      pod["metadata"]["annotations"][record] = "GPU-a,NVIDIA,80000,100:GPU-b,NVIDIA,80000,100:;";
    }
    const ObservedPod observed = Decode(pod);
    EXPECT_TRUE(observed.lacks_devices) << record;
    EXPECT_TRUE(observed.placement.grants.empty()) << record;
    EXPECT_EQ(observed.pod.shape.gpus, GpuAsk(WholeGpus{2})) << record;
    EXPECT_EQ(observed.problem, "") << record;
  }
}

TEST(PodObject, NoPodThatBerthBindsLacksItsDevices) {
  Json pod = BoundPod();
  pod["metadata"]["annotations"]["berth.dev/decision"] = "0123456789abcdef";
  EXPECT_FALSE(Decode(pod).lacks_devices);
  pod["metadata"]["annotations"].erase("berth.dev/devices");
  Json waiting = pod;
  waiting["spec"].erase("nodeName");
  EXPECT_FALSE(Decode(waiting).lacks_devices) << "it is not bound, whatever its owner wrote";
  Json without = pod;  // bound by Berth where that binds all pods
  without["spec"]["containers"][0]["resources"] = {{"requests", {{"cpu", "1"}}}};
  EXPECT_FALSE(Decode(without).lacks_devices) << "it asks for no GPU";
}

TEST(PodObject, WhatOnlyTheFilterMindsDoesNotHideABoundPodsGpus) {
  Json pod = BoundPod();
  pod["metadata"]["annotations"]["berth.dev/gang"] = "g";
  const ObservedPod observed = Decode(pod);
  EXPECT_NE(observed.pod.refusal, "");
  EXPECT_EQ(observed.placement.grants.size(), 2u);
  EXPECT_EQ(observed.pod.gang.id.text(), "berth:ns/g");
}

TEST(PodObject, PriorityAndGangAndLabelsAreRead) {
  Json pod = BoundPod();
  EXPECT_EQ(Decode(pod).pod.priority, 0);
  EXPECT_TRUE(Decode(pod).pod.may_preempt);
  EXPECT_EQ(Decode(pod).pod.gang.id.text(), "");
  EXPECT_EQ(Decode(pod).pod.labels, nullptr);
  pod["spec"]["priority"] = -7;
  pod["spec"]["preemptionPolicy"] = "Never";
  pod["spec"]["schedulingGroup"] = {{"podGroupName", "native"}};
  EXPECT_EQ(Decode(pod).pod.priority, -7);
  EXPECT_FALSE(Decode(pod).pod.may_preempt);
  EXPECT_EQ(Decode(pod).pod.gang.id.text(), "kubernetes:ns/native");
  pod["metadata"]["labels"] = {{"scheduling.x-k8s.io/pod-group", "label"}, {"app", "web"}};
  EXPECT_EQ(Decode(pod).pod.gang.id.text(), "coscheduling:ns/label");
  EXPECT_EQ(*Decode(pod).pod.labels,
            (Labels{{"app", "web"}, {"scheduling.x-k8s.io/pod-group", "label"}}));
}

TEST(PodObject, NodeConstraintsAreRead) {
  EXPECT_EQ(Decode(BoundPod()).pod.constraints, nullptr);
  Json pod = BoundPod();
  pod["spec"]["nodeSelector"] = {{"zone", "a"}};
  pod["spec"]["tolerations"] = {
      {{"key", "gpu"}, {"operator", "Exists"}, {"effect", "NoSchedule"}},
      {{"key", "soft"}, {"operator", "Exists"}, {"effect", "PreferNoSchedule"}},
      {{"key", "k"}, {"value", "v"}, {"tolerationSeconds", 300}}};
  pod["spec"]["affinity"] = Json::parse(R"({"podAffinity":{"x":1},"nodeAffinity":{
    "preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1}],
    "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
      {"matchExpressions":[{"key":"rack","operator":"Gt","values":["5"]}]},
      {"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]}]}}})");
  const auto constraints = Decode(pod).pod.constraints;
  ASSERT_NE(constraints, nullptr);
  const NodeConstraints expected{
      {{"zone", LabelOperator::kIn, {"a"}}},
      {{{{{"rack", LabelOperator::kGreater, {"5"}}}, {}},
        {{}, {{"metadata.name", LabelOperator::kIn, {"n1"}}}}}},
      {{"gpu", TolerationOperator::kExists, "", TaintEffect::kNoSchedule},
       {"soft", TolerationOperator::kExists, "", TaintEffect::kPreferNoSchedule},
       {"k", TolerationOperator::kEqual, "v", {}}}};
  EXPECT_TRUE(*constraints == expected);
  pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
     ["nodeSelectorTerms"][0]["matchExpressions"][0]["operator"] = "Near";
  EXPECT_TRUE(Decode(pod).pod.refusal.starts_with(
      "affinity.nodeAffinity.matchExpressions[0].operator: want In, "))
      << Decode(pod).pod.refusal;
}

TEST(PodObject, OfAPodWithoutANodeItIsSaidWhyItHasNone) {
  Json pod = test::PodWithGpus("u", 2);
  pod["status"] = {{"phase", "Pending"}};
  EXPECT_FALSE(Decode(pod).unschedulable);
  EXPECT_EQ(Decode(pod).held_back, "");
  pod["status"]["conditions"] = {{{"type", "PodReadyToStartContainers"}, {"status", "False"}},
                                 {{"type", "PodScheduled"},
                                  {"status", "False"},
                                  {"reason", "Unschedulable"},
                                  {"message", "0/4 nodes are available"}}};
  EXPECT_TRUE(Decode(pod).unschedulable);
  pod["status"]["conditions"][1]["reason"] = "SchedulingGated";
  EXPECT_FALSE(Decode(pod).unschedulable);
  pod["spec"]["schedulingGates"] = Json::array();
  EXPECT_EQ(Decode(pod).held_back, "");
  pod["spec"]["schedulingGates"] = {{{"name", "kueue.x-k8s.io/admission"}}};
  EXPECT_EQ(Decode(pod).held_back, "scheduling gates hold it back: kueue.x-k8s.io/admission");
  pod["spec"]["schedulingGates"].push_back({{"name", "b"}});
  EXPECT_TRUE(Decode(pod).held_back.ends_with("admission, b"));
  EXPECT_EQ(Decode(pod).pod.shape.gpu_count(), 2);
}

// Kueue has topologies of its own, and chooses the nodes before it takes its gate away.
TEST(PodObject, ALevelOfOthersIsTheirsWhileTheirGateHoldsThePod) {
  Json pod = test::PodWithGpus("u", 1);
  pod["metadata"]["annotations"]["kueue.x-k8s.io/podset-required-topology"] =
      "kubernetes.io/hostname";
  EXPECT_NE(Decode(pod).pod.refusal, "");
  pod["spec"]["schedulingGates"] = {{{"name", "kueue.x-k8s.io/topology"}}};
  EXPECT_EQ(Decode(pod).pod.refusal, "");
  pod["metadata"]["annotations"]["berth.dev/required-domain"] = "aisle";
  EXPECT_NE(Decode(pod).pod.refusal.find("\"aisle\" is no topology level"), std::string::npos);
}

TEST(PodObject, OneThatIsBeingDeletedWaitsByItsNameAlone) {
  Json pod = test::PodWithGpus("u", 2);
  pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  const WaitingPod waiting = WaitingOf(Decode(pod));
  EXPECT_EQ(waiting.pod->id.uid, "u");
  EXPECT_FALSE(waiting.pod->shape.wants_gpu());
  EXPECT_TRUE(waiting.held_back.starts_with(kBeingDeleted));
  pod["metadata"].erase("deletionTimestamp");
  EXPECT_EQ(WaitingOf(Decode(pod)).pod->shape.gpu_count(), 2);
}

TEST(PodObject, WhoIsToPlaceAPodAndSinceWhenItIsThere) {
  Json pod = test::PodWithGpus("u", 1);
  EXPECT_EQ(Decode(pod).pod.scheduler, "");
  EXPECT_EQ(Decode(pod).created, std::nullopt);
  pod["spec"]["schedulerName"] = "default-scheduler";
  EXPECT_EQ(Decode(pod).pod.scheduler, "") << "whom nobody names";
  pod["spec"]["schedulerName"] = "berth-scheduler";
  EXPECT_EQ(Decode(pod).pod.scheduler, "berth-scheduler");
  pod["metadata"]["creationTimestamp"] = "2026-08-21T10:00:05Z";
  EXPECT_EQ(Decode(pod).created, SimClock().Wall() + std::chrono::seconds(5));
  for (const char* text : {"", "2026-08-21", "2026-02-30T10:00:05Z", "2026-08-21 10:00:05Z"}) {
    pod["metadata"]["creationTimestamp"] = text;
    EXPECT_EQ(Decode(pod).created, std::nullopt) << text;
  }
  pod["metadata"]["creationTimestamp"] = nullptr;
  EXPECT_EQ(Decode(pod).created, std::nullopt);
}

TEST(PodObject, WhatIsNoPodIsAnError) {
  const auto error = [](const std::string& text) {
    const auto observed = DecodeObservedPod(test::Padded(text), Rules());
    return observed ? "none" : observed.error().message;
  };
  EXPECT_EQ(error(R"({"kind":"Node","metadata":{"name":"n","uid":"u"}})"),
            "kind: want Pod, got \"Node\"");
  EXPECT_EQ(error(R"({"metadata":{"name":"p"}})"),
            "metadata: want a name and a uid, got \"p\" and \"\"");
  for (const char* text :
       {"", "[]", "null", "{", R"({"metadata":7})", R"({"spec":{"priority":""}})"}) {
    EXPECT_TRUE(error(text).starts_with("pod: ")) << text << ": " << error(text);
  }
}

}  // namespace
}  // namespace berth::wire::pod_object_test
