// SPDX-License-Identifier: Apache-2.0
#include "server/kube/kubelet_refusals.h"

#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scoring/judgement.h"
#include "server/kube/cluster_sync.h"
#include "test/support/builders.h"
#include "test/support/dialects.h"

namespace berth::kube {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using test::ANode;
using test::APod;

// Two nodes of 8 GPUs, of which "dead" admits nothing, and the watch of their pods.
class KubeletRefusalsTest : public testing::Test {
 protected:
  KubeletRefusalsTest() {
    Show(ANode("dead").Gpus(8));
    Show(ANode("well").Gpus(8));
  }
  void Show(const ANode& node) {
    const ClusterEvent event = NodeUpserted{node.Spec()};
    ASSERT_TRUE(state_.Apply(std::span(&event, 1)));
  }
  [[nodiscard]] Reason ReasonOf(const std::string& node, const APod& pod = APod("p").Whole(1)) {
    const auto snapshot = state_.Current();
    const std::vector<NodeIndex> nodes = {snapshot->names().Find(node)};
    return ReasonsAnew(*snapshot, {.pod = pod.Request(), .candidates = nodes}).front();
  }

  static Json PodOn(const std::string& name, const std::string& node, const std::string& phase,
                    int version) {
    Json pod = Json::parse(R"({"kind": "Pod", "spec": {"containers": [{"name": "m", "resources":
        {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}}]}})");
    pod["metadata"] = {{"name", name},
                       {"namespace", "ns"},
                       {"uid", "uid-" + name},
                       {"resourceVersion", std::to_string(version)}};
    pod["spec"]["nodeName"] = node;
    pod["status"]["phase"] = phase;
    return pod;
  }
  static PaddedText Text(const Json& object) { return PaddedText(object.dump()); }
  // A pod is bound and shown; the kubelet of "dead" refuses it, the other one runs it.
  void Place(const std::string& name, const std::string& node) {
    sink_.Changed(Text(PodOn(name, node, "Pending", ++version_)));
    if (node == "dead") {
      Json failed = PodOn(name, node, "Failed", ++version_);
      failed["status"]["reason"] = "UnexpectedAdmissionError";
      failed["status"]["message"] = "Allocate failed due to no healthy devices";
      api_[name] = failed;
      // It leaves the watch as it was.
      sink_.Deleted(Text(PodOn(name, node, "Pending", version_)));
    } else {
      sink_.Changed(Text(PodOn(name, node, "Running", ++version_)));
    }
    refusals_.Look();
  }

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
  EXPECT_EQ(log_[1],
            "pod_not_admitted node dead: its kubelet refused pod ns/b (UnexpectedAdmissionError: "
            "Allocate failed due to no healthy devices), 2 in a row: no pod with GPUs is bound "
            "there for 10 minutes");
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
  NodeSpec spec = ANode("dead").Gpus(8).Spec();
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
TEST_F(KubeletRefusalsTest, WhereTheApiServerDoesNotAnswerOneQuestionIsAskedInALook) {
  answers_ = false;
  for (const char* name : {"a", "b", "c"}) Place(name, "dead");
  EXPECT_EQ(asked_, 3) << "three looks";
  EXPECT_EQ(refusals_.stats().refused, 0U);
  answers_ = true;
  refusals_.Look();
  EXPECT_EQ(refusals_.stats().refused, 3U) << "and none is forgotten";
  EXPECT_EQ(ReasonOf("dead"), Reason::kRefusesGpuPods);
}

// A leader that is deposed is told nothing more of these nodes: an alert would stay for hours.
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

}  // namespace
}  // namespace berth::kube
