// SPDX-License-Identifier: Apache-2.0
//
// The victims that an extender adds: the cases of kube-scheduler 1.38's own preemption tests
// (test/integration/scheduler/preemption/extender_preemption_test.go), with our answers.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/wire_fixture.h"

namespace berth::test::protocol_victims_test {
namespace {

Json Meta(const std::vector<std::string>& uids, int violations = 0) {
  Json pods = Json::array();
  for (const std::string& uid : uids) pods.push_back({{"UID", uid}});
  return {{"Pods", pods}, {"NumPDBViolations", violations}};
}

Json WithPriority(Json pod, int priority) {
  pod["spec"]["priority"] = priority;
  return pod;
}

// n1: "gpu" holds the only GPU, "cpu" most of the CPU. n2 has the same GPU, held by "equal".
class ExtenderPreemption : public testing::Test {
 protected:
  ExtenderPreemption() : service_({MachineWith("n1", 1), MachineWith("n2", 1)}) {
    EXPECT_EQ(service_.Place(WithPriority(PodWithGpus("gpu", 1), 1), "n1"), "");
    EXPECT_EQ(service_.Place(WithPriority(PodAsking("cpu", {{"cpu", "60"}}), 1), "n1"), "");
    EXPECT_EQ(service_.Place(WithPriority(PodWithGpus("equal", 1), 100), "n2"), "");
  }

  // The answer to that map, sent by UIDs or by whole pods.
  Json Ask(const Json& pod, const Json& meta_victims, bool whole_pods = false) {
    Json body = {{"Pod", pod}, {"NodeNameToVictims", nullptr}, {"NodeNameToMetaVictims", nullptr}};
    if (whole_pods) {
      Json victims = meta_victims;
      for (auto& [node, of_node] : victims.items()) {
        for (Json& victim : of_node["Pods"]) victim = {{"metadata", {{"uid", victim["UID"]}}}};
      }
      body["NodeNameToVictims"] = victims;
    } else {
      body["NodeNameToMetaVictims"] = meta_victims;
    }
    const Json answer = service_.Ask("preempt", body.dump());
    EXPECT_EQ(answer.size(), 1u);
    return answer["NodeNameToMetaVictims"];
  }

  TestService service_;
  const Json preemptor_ = WithPriority(PodWithGpus("p", 1), 100);
};

TEST_F(ExtenderPreemption, EmptyInTreeVictimsPlaceholder) {
  for (const bool whole_pods : {false, true}) {
    EXPECT_EQ(Ask(preemptor_, {{"n1", Meta({})}}, whole_pods), Json({{"n1", Meta({"gpu"})}}));
  }
}

TEST_F(ExtenderPreemption, CombinedInTreeAndExtenderVictims) {
  const Json pod = WithPriority(PodAsking("p", {{"cpu", "10"}, {"nvidia.com/gpu", "1"}}), 100);
  for (const bool whole_pods : {false, true}) {
    EXPECT_EQ(Ask(pod, {{"n1", Meta({"cpu"}, 3)}}, whole_pods),
              Json({{"n1", Meta({"cpu", "gpu"}, 3)}}));
  }
}

TEST_F(ExtenderPreemption, ExtenderOmitsCandidateNodeFromPreemptionResult) {
  EXPECT_EQ(Ask(preemptor_, {{"n2", Meta({})}, {"n1", Meta({})}}), Json({{"n1", Meta({"gpu"})}}));
  EXPECT_EQ(Ask(WithPriority(PodWithGpus("p", 2), 100), {{"n1", Meta({})}}), Json::object());
}

TEST_F(ExtenderPreemption, ChainedExtendersPassthrough) {
  const Json pod = WithPriority(PodAsking("p", {{"cpu", "1"}}), 100);
  EXPECT_EQ(Ask(pod, {{"n1", Meta({})}}), Json({{"n1", Meta({})}})) << "the GPU is not asked for";
}

TEST_F(ExtenderPreemption, WhoHasSavedTheirWorkGoesInPlaceOfAnother) {
  TestService service({MachineWith("n", 2)});
  const auto place = [&](const char* uid, const char* saved) {
    Json pod = WithPriority(PodWithGpus(uid, 1), 1);
    pod["metadata"]["annotations"]["berth.dev/checkpointed-at"] = saved;
    EXPECT_EQ(service.Place(pod, "n"), "");
  };
  place("unsaved", "2026-08-20T03:00:00Z");  // 31 hours ago
  place("saved", "2026-08-21T09:59:30Z");
  const auto ask = [&](const Json& pod) {
    const Json body = {{"Pod", pod}, {"NodeNameToMetaVictims", {{"n", Meta({"unsaved"}, 1)}}}};
    return service.Ask("preempt", body.dump())["NodeNameToMetaVictims"];
  };
  EXPECT_EQ(ask(preemptor_), Json({{"n", Meta({"saved"}, 1)}}));
  Json spread = WithPriority(PodWithGpus("q", 1), 100);
  spread["spec"]["topologySpreadConstraints"] = {
      {{"topologyKey", "zone"}, {"whenUnsatisfiable", "DoNotSchedule"}}};
  EXPECT_EQ(ask(spread), Json({{"n", Meta({"unsaved"}, 1)}}));
}

// kube-scheduler takes the priority of the first for the highest.
TEST_F(ExtenderPreemption, TheMostImportantVictimComesFirst) {
  ASSERT_TRUE(service_.state().Apply(std::vector<ClusterEvent>{PodGone{"gpu"}}));
  ASSERT_EQ(service_.Place(WithPriority(PodWithGpus("more", 1), 2), "n1"), "");
  const Json pod = WithPriority(PodAsking("p", {{"cpu", "10"}, {"nvidia.com/gpu", "1"}}), 100);
  EXPECT_EQ(Ask(pod, {{"n1", Meta({"cpu"})}}), Json({{"n1", Meta({"more", "cpu"})}}));
}

TEST_F(ExtenderPreemption, PodsThatAreReservedAreNotEvicted) {
  PodRequest pod;
  pod.id = {"reserved", "ns", "reserved"};
  pod.shape.gpus = WholeGpus{1};
  ASSERT_TRUE(service_.state().Apply(std::vector<ClusterEvent>{PodGone{"gpu"}}));
  ASSERT_TRUE(service_.state().Reserve(pod, {"n1", 0, 0, {{0, 1000, 0}}}, Instant::max()));
  EXPECT_EQ(Ask(preemptor_, {{"n1", Meta({})}}), Json::object());
}

TEST_F(ExtenderPreemption, WhatFilterRefusesIsNotMadeRoomFor) {
  Json elsewhere = preemptor_;
  elsewhere["spec"]["nodeSelector"] = {{"zone", "a"}};
  EXPECT_EQ(Ask(elsewhere, {{"n1", Meta({"gpu"})}}), Json::object());
  Json never = preemptor_;
  never["spec"]["preemptionPolicy"] = "Never";
  EXPECT_EQ(Ask(never, {{"n1", Meta({"gpu"})}}), Json::object());
  Json refused = preemptor_;
  refused["metadata"]["annotations"]["berth.dev/unheard-of"] = "1";
  EXPECT_EQ(Ask(refused, {{"n1", Meta({"gpu"})}}), Json::object());
}

TEST_F(ExtenderPreemption, AGangIsEvictedWholeOrNotAtAll) {
  Json member = WithPriority(PodWithGpus("member", 1), 1);
  member["metadata"]["labels"] = {{"scheduling.x-k8s.io/pod-group", "g"}};
  ASSERT_TRUE(service_.state().Apply(std::vector<ClusterEvent>{PodGone{"gpu"}, PodGone{"equal"}}));
  ASSERT_EQ(service_.Place(member, "n1"), "");
  EXPECT_EQ(Ask(preemptor_, {{"n1", Meta({})}}), Json({{"n1", Meta({"member"})}}));
  member["metadata"]["uid"] = "other";
  member["metadata"]["name"] = "pod-other";
  ASSERT_EQ(service_.Place(member, "n2"), "");
  EXPECT_EQ(Ask(preemptor_, {{"n1", Meta({})}}), Json::object());
}

}  // namespace
}  // namespace berth::test::protocol_victims_test
