// SPDX-License-Identifier: Apache-2.0
#include "server/kube/watch/kubelet_refusals.h"

#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/replay/time/sim_clock.h"
#include "scoring/judgement.h"
#include "server/kube/watch/cluster_sync.h"
#include "test/support/builders.h"
#include "test/support/dialects.h"

namespace berth::kube::kubelet_refusals_test {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using test::ANode;
using test::APod;

constexpr const char* kNoHealthyGpus =
    "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices "
    "nvidia.com/gpu, which is unexpected";

// Nodes of 8 GPUs and the watch of their pods: "dead" admits none, "numa" (whose policy is
// single-numa-node, with 4 GPUs on each) none of more than 4, "well" all.
class KubeletRefusalsTest : public testing::Test {
 protected:
  KubeletRefusalsTest() {
    Show(ANode("dead").Gpus(8));
    Show(ANode("numa").Gpus(8));
    Show(ANode("well").Gpus(8));
  }
  static NodeSpec SpecOf(const ANode& node) {
    NodeSpec spec = node.Spec();
    spec.gpu_resource = "nvidia.com/gpu";
    return spec;
  }
  void Show(const ANode& node) {
    const ClusterEvent event = NodeUpserted{SpecOf(node)};
    ASSERT_TRUE(state_.Apply(std::span(&event, 1)));
  }
  [[nodiscard]] Reason ReasonOf(const std::string& node, const APod& pod = APod("p").Whole(1)) {
    const auto snapshot = state_.Current();
    const std::vector<NodeIndex> nodes = {snapshot->names().Find(node)};
    return ReasonsAnew(*snapshot, {.pod = pod.Request(), .candidates = nodes}).front();
  }

  // What the next pods ask for.
  struct Ask {
    int gpus = 1;
    int cpu = 0;
    int containers = 1;
    std::string other = {};  // it asks for one of these too
    std::string namespace_name = "ns";
  };
  [[nodiscard]] Json PodOn(const std::string& name, const std::string& node,
                           const std::string& phase, int version) const {
    Json asked = {{"nvidia.com/gpu", std::to_string(ask_.gpus / ask_.containers)},
                  {"cpu", std::to_string(ask_.cpu)}};
    if (!ask_.other.empty()) asked[ask_.other] = "1";
    Json pod = {{"kind", "Pod"}};
    for (int i = 0; i < ask_.containers; ++i) {
      pod["spec"]["containers"].push_back(
          {{"name", "m" + std::to_string(i)},
           {"resources", {{"limits", asked}, {"requests", asked}}}});
    }
    pod["metadata"] = {{"name", name},
                       {"namespace", ask_.namespace_name},
                       {"uid", "uid-" + name},
                       {"resourceVersion", std::to_string(version)}};
    pod["spec"]["nodeName"] = node;
    pod["status"]["phase"] = phase;
    return pod;
  }
  static PaddedText Text(const Json& object) { return PaddedText(object.dump()); }
  // This process binds a pod.
  void Bind(const std::string& name, const std::string& node) {
    const auto pod = wire::DecodeObservedPod(Text(PodOn(name, node, "Pending", 1)), rules_);
    ASSERT_TRUE(pod);
    Placement placement = pod->placement;
    const auto snapshot = state_.Current();
    const Node& on = snapshot->node(snapshot->names().Find(node));
    for (int gpu = 0; gpu < 8; ++gpu) {
      const bool idle = on.gpus()[static_cast<std::size_t>(gpu)].idle() && on.IsOpen(gpu);
      if (idle && std::ssize(placement.grants) < ask_.gpus) {
        placement.grants.push_back({gpu, kMilliPerGpu, 0});
      }
    }
    ASSERT_TRUE(state_.Reserve(pod->pod, placement, Instant::max()));
    ASSERT_TRUE(state_.Confirm(pod->pod.id.uid));
  }
  // The pod is shown on its node, whichever scheduler bound it.
  void ShowOn(const std::string& name, const std::string& node) {
    sink_.Changed(Text(PodOn(name, node, "Pending", ++version_)));
  }
  void Refuse(const std::string& name, const std::string& node, const std::string& reason) {
    Json failed = PodOn(name, node, "Failed", ++version_);
    failed["status"]["reason"] = reason;
    failed["status"]["message"] = message_;
    api_[name] = failed;
    // It leaves the watch as it was.
    sink_.Deleted(Text(PodOn(name, node, "Pending", version_)));
  }
  void Run(const std::string& name, const std::string& node) {
    sink_.Changed(Text(PodOn(name, node, "Running", ++version_)));
  }
  // A pod is bound and shown, and its kubelet does as it does.
  void Place(const std::string& name, const std::string& node) {
    Bind(name, node);
    ShowOn(name, node);
    if (node == "dead") {
      Refuse(name, node, "UnexpectedAdmissionError");
    } else if (node == "numa" && ask_.gpus / ask_.containers > 4) {
      Refuse(name, node, "TopologyAffinityError");
    } else {
      Run(name, node);
    }
    refusals_.Look();
  }
  void End(const std::string& name, const std::string& node) {
    Json pod = PodOn(name, node, "Running", ++version_);
    pod["metadata"]["deletionTimestamp"] = "2026-08-21T10:00:00Z";
    sink_.Deleted(Text(pod));
  }
  // A pod that asks for that, as filter knows it.
  [[nodiscard]] PodRequest Asking(const Ask& ask) {
    const Ask before = std::exchange(ask_, ask);
    const auto pod = wire::DecodeObservedPod(Text(PodOn("asks", "", "Pending", 1)), rules_);
    ask_ = before;
    return pod->pod;
  }
  [[nodiscard]] Reason ReasonOf(const std::string& node, const Ask& ask) {
    const auto snapshot = state_.Current();
    const std::vector<NodeIndex> nodes = {snapshot->names().Find(node)};
    const PodRequest pod = Asking(ask);
    return ReasonsAnew(*snapshot, {.pod = pod, .candidates = nodes}).front();
  }

  Ask ask_;
  std::string message_ = kNoHealthyGpus;
  SimClock clock_;
  ClusterState state_;
  const wire::PodRules rules_{test::AllDialects(), DefaultConfig().resources};
  std::map<std::string, Json> api_;  // the pods that have failed
  std::vector<std::string> log_;
  bool answers_ = true;
  int asked_ = 0;
  KubeletRefusals refusals_{
      {.state = state_,
       .clock = clock_,
       .why_not_admitted = [this](const PodId& pod) -> std::optional<std::string> {
         ++asked_;
         if (!answers_) return std::nullopt;
         const auto found = api_.find(pod.name);
         if (found == api_.end()) return "";
         return wire::DecodeObservedPod(Text(found->second), rules_)->not_admitted;
       },
       .log =
           [this](bool, std::string_view event, std::string_view text) {
             log_.push_back(std::string(event) + " " + std::string(text));
           }}};
  PodSink sink_{state_, rules_, [](auto, auto, const std::string&) {}, {}, nullptr, &refusals_};
  int version_ = 0;
};

TEST_F(KubeletRefusalsTest, AfterTwoInARowTheNodeGetsNoPodsWithGpus) {
  Place("a", "dead");
  EXPECT_EQ(ReasonOf("dead"), Reason::kFits) << "one may be an accident";
  Place("b", "dead");
  EXPECT_EQ(ReasonOf("dead"), Reason::kRefusesGpuPods);
  EXPECT_EQ(ReasonOf("dead", APod("cpu").Cpu(1)), Reason::kFits) << "it is about GPUs";
  EXPECT_EQ(ReasonOf("well"), Reason::kFits);
  EXPECT_EQ(refusals_.stats().refused, 2U);
  EXPECT_EQ(refusals_.stats().closed, 1U);
  ASSERT_EQ(log_.size(), 2U);
  EXPECT_EQ(
      log_[1],
      "pod_not_admitted node dead: its kubelet rejected pod ns/b (UnexpectedAdmissionError: "
      "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices "
      "nvidia.com/gpu, which is unexpected), 2 in a row: Berth binds no GPU pods there for 10 "
      "minutes");
}

// pytorch/ci-infra pull request 1058: "rejected 554 pods over 1h46m". A job that packs sends its
// next pod to the dead node as long as that fits, every second.
TEST_F(KubeletRefusalsTest, ADeadGpuCostsThreePodsInTheTimeInWhichItCost554) {
  int lost = 0;
  for (seconds time{0}; time < hours(1) + minutes(46); time += seconds(1)) {
    clock_.Advance(seconds(1));
    if (ReasonOf("dead") == Reason::kFits) Place("p" + std::to_string(lost++), "dead");
    refusals_.Look();
  }
  EXPECT_LE(lost, 3);
  EXPECT_GE(lost, 3) << "it is tried again, or nobody would learn that it is well";
}

TEST_F(KubeletRefusalsTest, TheFirstPodThatRunsHealsIt) {
  Place("a", "dead");
  Place("b", "dead");
  clock_.Advance(minutes(10));
  refusals_.Look();
  EXPECT_EQ(ReasonOf("dead"), Reason::kFits);
  sink_.Changed(Text(PodOn("c", "dead", "Pending", ++version_)));
  sink_.Changed(Text(PodOn("c", "dead", "Running", ++version_)));
  refusals_.Look();
  Place("d", "dead");
  EXPECT_EQ(ReasonOf("dead"), Reason::kFits) << "the count begins anew";
}

TEST_F(KubeletRefusalsTest, ANodeThatPublishesOtherGpusIsTriedAtOnce) {
  Place("a", "dead");
  Place("b", "dead");
  NodeSpec spec = SpecOf(ANode("dead").Gpus(8));
  spec.missing = 1;  // its device plugin has found the dead one
  const ClusterEvent event = NodeUpserted{spec};
  ASSERT_TRUE(state_.Apply(std::span(&event, 1)));
  EXPECT_EQ(ReasonOf("dead"), Reason::kRefusesGpuPods) << "until somebody looks";
  refusals_.Look();
  EXPECT_EQ(ReasonOf("dead"), Reason::kFits);
}

TEST_F(KubeletRefusalsTest, APodThatIsDeletedBeforeItRunsIsNoRefusal) {
  for (const char* name : {"a", "b", "c"}) {
    sink_.Changed(Text(PodOn(name, "well", "Pending", ++version_)));
    sink_.Deleted(Text(PodOn(name, "well", "Pending", ++version_)));
    refusals_.Look();
  }
  EXPECT_EQ(refusals_.stats().refused, 0U);
  EXPECT_EQ(ReasonOf("well"), Reason::kFits);
}

TEST_F(KubeletRefusalsTest, APodThatRanAndFailedIsNotAskedAbout) {
  for (const char* name : {"a", "b", "c"}) {
    sink_.Changed(Text(PodOn(name, "well", "Running", ++version_)));
    api_[name] = PodOn(name, "well", "Failed", ++version_);
    api_[name]["status"]["reason"] = "OutOfcpu";
    sink_.Deleted(Text(PodOn(name, "well", "Running", version_)));
    refusals_.Look();
  }
  EXPECT_EQ(refusals_.stats().refused, 0U);
}

TEST_F(KubeletRefusalsTest, AnotherMachineOfThatNameBeginsAnew) {
  Place("a", "dead");
  Place("b", "dead");
  const ClusterEvent gone = NodeRemoved{"dead"};
  ASSERT_TRUE(state_.Apply(std::span(&gone, 1)));
  refusals_.Look();
  Show(ANode("dead").Gpus(8));
  EXPECT_EQ(ReasonOf("dead"), Reason::kFits);
  Place("c", "dead");
  EXPECT_EQ(ReasonOf("dead"), Reason::kFits);
}

TEST_F(KubeletRefusalsTest, AnotherMachineThatComesBetweenTwoLooksBeginsAnewToo) {
  Place("a", "dead");
  Place("b", "dead");
  const ClusterEvent gone = NodeRemoved{"dead"};
  ASSERT_TRUE(state_.Apply(std::span(&gone, 1)));
  Show(ANode("dead").Gpus(8));
  refusals_.Look();
  EXPECT_EQ(refusals_.stats().closed, 0U);
  Place("c", "dead");
  EXPECT_EQ(ReasonOf("dead"), Reason::kFits);
  Place("d", "dead");
  EXPECT_EQ(ReasonOf("dead"), Reason::kRefusesGpuPods) << "two in a row of this one";
}

// A control plane that is upgraded: each question would wait for its deadline.
TEST_F(KubeletRefusalsTest, AsksASilentApiServerOnceALook) {
  answers_ = false;
  for (const char* name : {"a", "b", "c"}) Place(name, "dead");
  EXPECT_EQ(asked_, 3) << "three looks";
  EXPECT_EQ(refusals_.stats().refused, 0U);
  answers_ = true;
  refusals_.Look();
  EXPECT_EQ(refusals_.stats().refused, 3U) << "and none is forgotten";
  EXPECT_EQ(ReasonOf("dead"), Reason::kRefusesGpuPods);
}

// A leader that is deposed hears nothing more of these nodes: an alert would stay for hours.
TEST_F(KubeletRefusalsTest, WithATermEndsWhatWasLearnedInIt) {
  Place("a", "dead");
  Place("b", "dead");
  ASSERT_EQ(ReasonOf("dead"), Reason::kRefusesGpuPods);
  refusals_.BeginAnew();
  refusals_.Look();
  EXPECT_EQ(ReasonOf("dead"), Reason::kFits);
  EXPECT_EQ(refusals_.stats().closed, 0U);
  EXPECT_EQ(refusals_.stats().refused, 2U) << "since the process began";
  Place("c", "dead");
  EXPECT_EQ(ReasonOf("dead"), Reason::kFits) << "the first one of this term";
  Place("d", "dead");
  EXPECT_EQ(ReasonOf("dead"), Reason::kRefusesGpuPods);
}

TEST_F(KubeletRefusalsTest, NobodyAsksAboutPodsThatWereToldToEnd) {
  Json pod = PodOn("a", "well", "Pending", ++version_);
  sink_.Changed(Text(pod));
  pod["metadata"]["deletionTimestamp"] = "2026-08-21T10:00:00Z";
  sink_.Deleted(Text(pod));
  refusals_.Look();
  EXPECT_EQ(asked_, 0);
}

TEST_F(KubeletRefusalsTest, AHeartbeatOfTheNodeDoesNotOpenIt) {
  Place("a", "dead");
  Place("b", "dead");
  Show(ANode("dead").Gpus(8));
  refusals_.Look();
  EXPECT_EQ(ReasonOf("dead"), Reason::kRefusesGpuPods);
}

// --- what counts

// Anybody who may create pods can name the node in them, and have its kubelet refuse them rightly.
// What they say of themselves in annotations is theirs to write.
TEST_F(KubeletRefusalsTest, PodsThatThisProcessDidNotBindCloseNoNode) {
  for (int i = 0; i < 7; ++i) Place("full-" + std::to_string(i), "well");
  asked_ = 0;
  ask_ = {.gpus = 8};
  for (const char* name : {"a", "b", "c"}) {
    Json pod = PodOn(name, "well", "Pending", ++version_);
    pod["metadata"]["annotations"] = {{"berth.dev/decision", "0123456789abcdef"}};
    sink_.Changed(Text(pod));
    Refuse(name, "well", "OutOfnvidia.com/gpu");
    refusals_.Look();
  }
  EXPECT_EQ(ReasonOf("well"), Reason::kFits);
  EXPECT_EQ(refusals_.stats().refused, 0U);
  EXPECT_EQ(asked_, 0) << "nor do they cost a question";
}

// A pod bound past Berth came first: the kubelet has nothing left for the one that Berth bound.
TEST_F(KubeletRefusalsTest, WhereMoreIsBoundThanTheNodeHasARefusalDoesNotCount) {
  for (const char* name : {"a", "b", "c"}) {
    Bind(name, "well");
    ask_.gpus = 8;
    ShowOn("of-a-tenant-" + std::string(name), "well");
    ask_.gpus = 1;
    ShowOn(name, "well");
    Refuse(name, "well", "OutOfnvidia.com/gpu");
    refusals_.Look();
    End("of-a-tenant-" + std::string(name), "well");
  }
  EXPECT_EQ(ReasonOf("well"), Reason::kFits);
  EXPECT_EQ(refusals_.stats().refused, 3U) << "it is counted and logged all the same";
  ASSERT_EQ(log_.size(), 3U);
  EXPECT_TRUE(
      log_[0].ends_with(", which does not count: pods on the node ask for more than it has"))
      << log_[0];
}

// A kubelet that starts may know pods that have ended for a moment: it refuses all that were bound
// while it was away ("Available: 0").
TEST_F(KubeletRefusalsTest, PodsThatAreRefusedTogetherAreOneRefusal) {
  const std::vector<std::string> names = {"a", "b", "c", "d", "e", "f"};
  for (const std::string& name : names) {
    Bind(name, "well");
    ShowOn(name, "well");
  }
  for (const std::string& name : names) Refuse(name, "well", "UnexpectedAdmissionError");
  refusals_.Look();
  EXPECT_EQ(refusals_.stats().refused, 6U);
  EXPECT_EQ(ReasonOf("well"), Reason::kFits);
  Place("next", "well");
  Place("after", "well");
  EXPECT_EQ(ReasonOf("well"), Reason::kFits);
}

// A checkpoint from before a restart of the kubelet names pods that have ended. It is put right in
// seconds.
TEST_F(KubeletRefusalsTest, ThatSayDevicesAreInUsePauseTheNodeBrieflyAtFirst) {
  message_ =
      "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
      "Requested: 1, Available: 0, which is unexpected";
  Place("a", "dead");
  Place("b", "dead");
  EXPECT_EQ(ReasonOf("dead"), Reason::kRefusesGpuPods);
  EXPECT_TRUE(log_.back().ends_with("Berth binds no GPU pods there for 30 seconds")) << log_.back();
  clock_.Advance(seconds(30));
  refusals_.Look();
  EXPECT_EQ(ReasonOf("dead"), Reason::kFits);
  Place("c", "dead");
  EXPECT_EQ(ReasonOf("dead"), Reason::kRefusesGpuPods) << "it was no checkpoint";
  EXPECT_TRUE(log_.back().ends_with("for 10 minutes")) << log_.back();
  clock_.Advance(minutes(10));
  refusals_.Look();
  ShowOn("d", "dead");
  Run("d", "dead");
  refusals_.Look();
  Place("e", "dead");
  EXPECT_EQ(ReasonOf("dead"), Reason::kFits) << "the count begins anew";
}

TEST_F(KubeletRefusalsTest, AFlawThatStaysIsFoundAlthoughPodsCameTogether) {
  for (const char* const batch : {"a", "b"}) {
    for (const char* const name : {"1", "2", "3"}) {
      Bind(std::string(batch) + name, "dead");
      ShowOn(std::string(batch) + name, "dead");
    }
    for (const char* const name : {"1", "2", "3"}) {
      Refuse(std::string(batch) + name, "dead", "UnexpectedAdmissionError");
    }
    refusals_.Look();
  }
  EXPECT_EQ(ReasonOf("dead"), Reason::kRefusesGpuPods);
}

TEST_F(KubeletRefusalsTest, WhereTheNodeChangedFromBindToRefusalItDoesNotCount) {
  NodeSpec spec = SpecOf(ANode("well").Gpus(8));
  for (const char* name : {"a", "b", "c"}) {
    Bind(name, "well");
    ShowOn(name, "well");
    ++spec.ready_since;  // its kubelet was away
    const ClusterEvent event = NodeUpserted{spec};
    ASSERT_TRUE(state_.Apply(std::span(&event, 1)));
    Refuse(name, "well", "UnexpectedAdmissionError");
    refusals_.Look();
  }
  EXPECT_EQ(ReasonOf("well"), Reason::kFits);
  EXPECT_EQ(refusals_.stats().refused, 3U);
}

TEST_F(KubeletRefusalsTest, AKubeletThatStartsAnewBeginsAnew) {
  Place("a", "dead");
  Place("b", "dead");
  ASSERT_EQ(ReasonOf("dead"), Reason::kRefusesGpuPods);
  NodeSpec spec = SpecOf(ANode("dead").Gpus(8));
  spec.ready_since = 1;
  const ClusterEvent event = NodeUpserted{spec};
  ASSERT_TRUE(state_.Apply(std::span(&event, 1)));
  refusals_.Look();
  EXPECT_EQ(ReasonOf("dead"), Reason::kFits);
}

// --- by what was asked for

TEST_F(KubeletRefusalsTest, ANodeThatRefusesSixGpusStillTakesFour) {
  message_ = "Resources cannot be allocated with Topology locality";
  ask_ = {.gpus = 6, .cpu = 4};
  int lost = 0;
  for (int i = 0; i < 8; ++i) {
    if (ReasonOf("numa", ask_) != Reason::kFits) continue;
    Place("six-" + std::to_string(i), "numa");
    ++lost;
  }
  EXPECT_EQ(lost, 2) << "of 8";
  EXPECT_EQ(ReasonOf("numa", {.gpus = 6, .cpu = 4}), Reason::kAskRefused);
  EXPECT_EQ(ReasonOf("numa", {.gpus = 6, .cpu = 5}), Reason::kAskRefused);
  EXPECT_EQ(ReasonOf("numa", {.gpus = 4, .cpu = 4}), Reason::kFits);
  EXPECT_EQ(ReasonOf("numa", {.gpus = 6, .cpu = 3}), Reason::kFits)
      << "it may have been refused for its CPUs";
  EXPECT_EQ(ReasonOf("numa", {.gpus = 6, .cpu = 4, .containers = 2}), Reason::kFits)
      << "each container may have its own NUMA node";
  EXPECT_EQ(ReasonOf("well", {.gpus = 6, .cpu = 4}), Reason::kFits);
  EXPECT_EQ(refusals_.stats().closed, 0U);
  EXPECT_EQ(refusals_.stats().closed_asks, 1U);
  ASSERT_EQ(log_.size(), 2U);
  EXPECT_EQ(
      log_[1],
      "pod_not_admitted node numa: its kubelet rejected pod ns/six-1 (TopologyAffinityError: "
      "Resources cannot be allocated with Topology locality), 2 in a row: Berth binds no pods "
      "with 6 GPUs, CPU 4 and memory 0 MiB or more there for 10 minutes");
}

// What kubelets say where something is short that is no GPU.
constexpr const char* kOfElse[] = {
    "Allocate failed due to [memorymanager] failed to get the default NUMA affinity, no NUMA nodes "
    "with enough memory is available, which is unexpected",
    "Allocate failed due to not enough cpus available to satisfy request: requested=70, "
    "available=64, which is unexpected",
    "Allocate failed due to requested number of devices unavailable for rdma/hca. Requested: 1, "
    "Available: 0, which is unexpected",
    "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu.shared. "
    "Requested: 1, Available: 0, which is unexpected",
    "Allocate failed due to rpc error: code = Unknown desc = no VF left, which is unexpected"};

// kubernetes#120733, #138495: a Deployment of pods that no kubelet admits makes one after the
// other.
TEST_F(KubeletRefusalsTest, PodsThatAreRefusedForSomethingElseCloseNoNodeForPodsThatAskForLess) {
  int number = 0;
  for (const char* const message : kOfElse) {
    Show(ANode("n" + std::to_string(++number)).Gpus(8).Cpu(640));
    const std::string node = "n" + std::to_string(number);
    message_ = message;
    int lost = 0;
    for (int i = 0; i < 6; ++i) {
      const Ask web = {.cpu = 70, .other = "rdma/hca", .namespace_name = "web"};
      if (ReasonOf(node, web) != Reason::kFits) continue;
      ask_ = web;
      const std::string name = "web-" + std::to_string(number * 10 + i);
      Bind(name, node);
      ShowOn(name, node);
      Refuse(name, node, "UnexpectedAdmissionError");
      refusals_.Look();
      ++lost;
    }
    EXPECT_EQ(lost, 2) << message;
    EXPECT_EQ(ReasonOf(node, {.cpu = 70, .other = "rdma/hca"}), Reason::kAskRefused) << message;
    EXPECT_EQ(ReasonOf(node, {.cpu = 70}), Reason::kFits) << message;
    EXPECT_EQ(ReasonOf(node, {.cpu = 4, .other = "rdma/hca"}), Reason::kFits) << message;
    EXPECT_EQ(ReasonOf(node, {}), Reason::kFits) << message;
  }
  EXPECT_EQ(refusals_.stats().closed, 0U);
  ASSERT_FALSE(log_.empty());
  EXPECT_TRUE(
      log_.back().ends_with("2 in a row: Berth binds no pods with 1 GPU, 1 rdma/hca, CPU "
                            "70 and memory 0 MiB or more there for 10 minutes"))
      << log_.back();
}

TEST_F(KubeletRefusalsTest, OneNamespaceClosesNoNodeWhateverItsPodsAskFor) {
  message_ = "Allocate failed due to rpc error: code = Unknown desc = no, which is unexpected";
  for (int i = 0; i < 12; ++i) {
    ask_ = {.gpus = 2 + i % 3, .cpu = 10 + i % 4, .namespace_name = "evil"};
    Place("p" + std::to_string(i), "dead");
  }
  EXPECT_EQ(refusals_.stats().closed, 0U);
  EXPECT_EQ(ReasonOf("dead", {}), Reason::kFits);
}

TEST_F(KubeletRefusalsTest, WhereNobodySaysWhyDifferentAsksOfTwoNamespacesCloseTheNode) {
  message_ = "Allocate failed due to rpc error: code = Unknown desc = no, which is unexpected";
  ask_ = {.gpus = 1, .cpu = 8, .namespace_name = "a"};
  Place("a", "dead");
  ask_ = {.gpus = 2, .cpu = 4, .namespace_name = "b"};
  Place("b", "dead");
  EXPECT_EQ(ReasonOf("dead", {}), Reason::kRefusesGpuPods);
  EXPECT_TRUE(
      log_.back().ends_with("), as was a different one of another namespace: Berth binds "
                            "no GPU pods there for 10 minutes"))
      << log_.back();
  clock_.Advance(minutes(10));
  refusals_.Look();
  EXPECT_EQ(ReasonOf("dead", {}), Reason::kFits);
  Place("c", "dead");
  EXPECT_EQ(ReasonOf("dead", {}), Reason::kRefusesGpuPods) << "at once, and for longer";
  EXPECT_TRUE(log_.back().ends_with("for 120 minutes")) << log_.back();
}

TEST_F(KubeletRefusalsTest, AnotherResourceThatBothAskForMayBeWhatIsShort) {
  message_ = "Allocate failed due to rpc error: code = Unknown desc = no, which is unexpected";
  ask_ = {.gpus = 1, .other = "rdma/hca", .namespace_name = "a"};
  Place("a", "dead");
  ask_ = {.gpus = 2, .other = "rdma/hca", .namespace_name = "b"};
  Place("b", "dead");
  EXPECT_EQ(ReasonOf("dead", {}), Reason::kFits);
}

TEST_F(KubeletRefusalsTest, APodThatRunsBetweenTwoNamespacesShowsThatTheGpusAreWell) {
  message_ = "Allocate failed due to rpc error: code = Unknown desc = no, which is unexpected";
  ask_ = {.gpus = 1, .cpu = 8, .namespace_name = "a"};
  Place("a", "dead");
  ask_ = {};
  ShowOn("runs", "dead");
  Run("runs", "dead");
  refusals_.Look();
  ask_ = {.gpus = 2, .cpu = 4, .namespace_name = "b"};
  Place("b", "dead");
  EXPECT_EQ(ReasonOf("dead", {}), Reason::kFits);
}

// What more was refused is no word on those who ask for less.
TEST_F(KubeletRefusalsTest, ALargeAskThatWasRefusedDoesNotCountAgainstASmallOne) {
  ask_ = {.gpus = 6, .cpu = 64};
  Place("large-1", "numa");
  Place("large-2", "numa");
  ask_ = {.gpus = 6, .cpu = 4};
  Place("small", "numa");
  EXPECT_EQ(ReasonOf("numa", ask_), Reason::kFits) << "once may be an accident";
  EXPECT_EQ(ReasonOf("numa", {.gpus = 6, .cpu = 64}), Reason::kAskRefused);
  Place("small-2", "numa");
  EXPECT_EQ(ReasonOf("numa", ask_), Reason::kAskRefused);
}

TEST_F(KubeletRefusalsTest, ANamespaceWithManyAsksDoesNotDriveOutThoseOfOthers) {
  ask_ = {.gpus = 5, .cpu = 1};
  Place("a", "numa");
  Place("b", "numa");
  for (int cpu = 40; cpu > 20; --cpu) {
    ask_ = {.gpus = 6, .cpu = cpu, .namespace_name = "many"};
    Place("m" + std::to_string(cpu), "numa");
    clock_.Advance(seconds(1));
  }
  EXPECT_EQ(ReasonOf("numa", {.gpus = 5, .cpu = 1}), Reason::kAskRefused);
}

TEST_F(KubeletRefusalsTest, ItIsTriedAgainAndThenForLonger) {
  ask_ = {.gpus = 6};
  int lost = 0;
  for (minutes time{0}; time < hours(20); time += minutes(1)) {
    clock_.Advance(minutes(1));
    if (ReasonOf("numa", ask_) == Reason::kFits) Place("p" + std::to_string(lost++), "numa");
    refusals_.Look();
  }
  EXPECT_EQ(lost, 6) << "2, after 10 minutes, 2 hours, 6 hours, 6 hours";
}

TEST_F(KubeletRefusalsTest, APodThatAsksForTheSameAndRunsHealsIt) {
  ask_ = {.gpus = 6};
  Place("a", "numa");
  Place("b", "numa");
  ask_ = {.gpus = 2};
  Place("small", "numa");
  EXPECT_EQ(ReasonOf("numa", {.gpus = 6}), Reason::kAskRefused) << "that says nothing";
  ask_ = {.gpus = 6};
  ShowOn("past-berth", "numa");
  Run("past-berth", "numa");
  refusals_.Look();
  EXPECT_EQ(refusals_.stats().closed_asks, 0U);
  End("past-berth", "numa");
  EXPECT_EQ(ReasonOf("numa", {.gpus = 6}), Reason::kFits);
}

// Two GPUs on each NUMA node were taken; one of the pods goes.
TEST_F(KubeletRefusalsTest, OnceAPodWithGpusHasLeftItIsTriedAgain) {
  ask_ = {.gpus = 2};
  Place("left", "numa");
  Place("right", "numa");
  ask_ = {.gpus = 4};
  for (const char* name : {"a", "b"}) {
    Bind(name, "numa");
    ShowOn(name, "numa");
    Refuse(name, "numa", "TopologyAffinityError");
    refusals_.Look();
  }
  EXPECT_EQ(ReasonOf("numa", {.gpus = 4}), Reason::kAskRefused);
  ask_ = {.gpus = 2};
  End("left", "numa");
  refusals_.Look();
  EXPECT_EQ(ReasonOf("numa", {.gpus = 4}), Reason::kFits);
}

TEST_F(KubeletRefusalsTest, WhatIsRememberedOfANodeIsBounded) {
  for (int cpu = 1; cpu <= 20; ++cpu) {
    ask_ = {.gpus = 5 + cpu % 4, .cpu = cpu};
    for (const char* const name : {"a", "b"}) Place(name + std::to_string(cpu), "numa");
  }
  for (int containers = 2; containers <= 8; ++containers) {
    ask_ = {.gpus = containers, .cpu = 1, .containers = containers};
    for (const char* const name : {"c", "d"}) {
      Bind(name + std::to_string(containers), "numa");
      ShowOn(name + std::to_string(containers), "numa");
      Refuse(name + std::to_string(containers), "numa", "TopologyAffinityError");
      refusals_.Look();
    }
  }
  const auto snapshot = state_.Current();
  const RefusedAsks asks = snapshot->node(snapshot->names().Find("numa")).spec().refused_asks;
  ASSERT_NE(asks, nullptr);
  EXPECT_EQ(asks->size(), kMostRefusedAsks);
  EXPECT_EQ(ReasonOf("numa", {.gpus = 8, .cpu = 1, .containers = 8}), Reason::kAskRefused)
      << "the last stay";
}

TEST_F(KubeletRefusalsTest, OfTooManyPodsTheFirstAreNotAskedAbout) {
  Bind("a", "dead");
  const auto start = refusals_.Begins("uid-a", "dead");
  ASSERT_TRUE(start);
  const int pods = static_cast<int>(KubeletRefusals::kMostWaiting) + 50;
  for (int i = 0; i < pods; ++i) {
    refusals_.Vanished({"uid-" + std::to_string(i), "ns", "p" + std::to_string(i)}, *start);
  }
  for (int looks = 0; looks < pods; ++looks) refusals_.Look();
  EXPECT_EQ(asked_, static_cast<int>(KubeletRefusals::kMostWaiting));
}

TEST_F(KubeletRefusalsTest, AnotherMachineOfThatNameTakesThemAll) {
  ask_ = {.gpus = 6};
  Place("a", "numa");
  Place("b", "numa");
  const ClusterEvent gone = NodeRemoved{"numa"};
  ASSERT_TRUE(state_.Apply(std::span(&gone, 1)));
  Show(ANode("numa").Gpus(8));
  EXPECT_EQ(ReasonOf("numa", {.gpus = 6}), Reason::kFits);
  refusals_.Look();
  EXPECT_EQ(refusals_.stats().closed_asks, 0U);
}

}  // namespace
}  // namespace berth::kube::kubelet_refusals_test
