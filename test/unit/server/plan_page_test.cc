// SPDX-License-Identifier: Apache-2.0
#include "server/pages/plan_page.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/wire/file/cluster_file.h"
#include "server/wire/pod/pod_object.h"
#include "test/support/builders.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::test::plan_page_test {
namespace {

class PlanPageTest : public testing::Test {
 protected:
  Json Ask(const std::string& request) {
    const auto answer = MakePlan(service_.live(), request, false);
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? Json::parse(*answer) : Json();
  }

  TestService service_{{MachineWith("n1", 2)}};
  WaitingPods& waiting_ = service_.waiting();
};

TEST_F(PlanPageTest, WhatPoolsWouldTakeIsAskedOfThePodsThatWait) {
  const Json before = Ask(R"({"grow":1})");
  EXPECT_EQ(before["asked"], 0);
  EXPECT_EQ(before["sentence"], "no pod waits");
  waiting_.Put({.pod = std::make_shared<const PodRequest>(APod("p").Whole(2).Request())});
  waiting_.Put({.pod = std::make_shared<const PodRequest>(APod("q").Whole(2).Request())});
  waiting_.Put({.pod = std::make_shared<const PodRequest>(APod("g").Whole(2).Request()),
                .held_back = "scheduling gates hold it back"});
  const Json told = Ask(R"({"grow":2})");
  EXPECT_EQ(told["asked"], 2);
  EXPECT_EQ(told["fitting"], 1);
  EXPECT_EQ(told["gated"], 1);
  EXPECT_EQ(told["pools"][0]["takes"][0]["pods"], 1);
}

TEST_F(PlanPageTest, OrOfThoseOfTheRequestIfItHasAny) {
  waiting_.Put({.pod = std::make_shared<const PodRequest>(APod("p").Whole(2).Request())});
  Json request = {{"grow", 1}, {"pods", Json::array()}};
  EXPECT_EQ(Ask(request.dump())["asked"], 0);
  request["pods"].push_back(PodWithGpus("1", 8));
  const Json told = Ask(request.dump());
  EXPECT_EQ(told["nowhere"], Json::array({"ns/pod-1"}));
}

TEST_F(PlanPageTest, AModelThatNoNodeHasIsNamedWhereIdleNodesAreWanted) {
  const Json told = Ask(R"({"make_room":{"idle_nodes":1,"model":"nope"}})");
  EXPECT_EQ(told["goals"][0]["problem"],
            "no node that is ready and takes GPU pods has GPUs of that model");
}

// `kubectl get pods -o json | berth plan -f -` asks about pods that are there.
TEST_F(PlanPageTest, APodThatIsPlannedInTheClusterIsNotInItsOwnWay) {
  const Json asked = PodWithGpus("1", 2);
  const PodRequest pod =
      wire::DecodeObservedPod(Padded(asked.dump()), service_.live().pod_rules).value().pod;
  waiting_.Put({.pod = std::make_shared<const PodRequest>(pod)});
  const PodPlacement planned{pod, APod("1").Whole(2).On("n1", {0, 1})};
  ASSERT_TRUE(service_.state().Plan(std::span(&planned, 1)));
  Json request = {{"pods", Json::array({asked})}};
  EXPECT_EQ(Ask(request.dump())["fitting"], 1);
  request["grow"] = 1;
  EXPECT_EQ(Ask(request.dump())["fitting"], 1);
  request.erase("grow");
  request["pods"].push_back(asked);
  const Json twice = Ask(request.dump());
  EXPECT_EQ(twice["asked"], 2) << "the second one would be another pod";
  EXPECT_EQ(twice["fitting"], 1);
  EXPECT_EQ(service_.state().Current()->node(0).pods().size(), 1U) << "its place is still held";
}

TEST_F(PlanPageTest, APodThatRunsInTheClusterIsNotPlacedAgain) {
  ASSERT_EQ(service_.Place(PodWithGpus("1", 1), "n1"), "");
  const Json told = Ask(Json({{"pods", Json::array({PodWithGpus("1", 1)})}}).dump());
  EXPECT_EQ(told["asked"], 0);
  EXPECT_EQ(told["left_out"], Json::array({"Pod ns/pod-1: it is on node n1"}));
}

TEST(PlanOfAManifest, ToleratesWhatAdmissionOfTheCloudWillAdd) {
  NodeSpec spec = MachineWith("n1", 1);
  spec.labels = {{"cloud.google.com/gke-nodepool", "gpu"}};
  spec.taints = {{"nvidia.com/gpu", "present", TaintEffect::kNoSchedule}};
  const Json request = {{"pods", Json::array({PodWithGpus("1", 1)})}};
  const auto fitting = [&request](const NodeSpec& node) {
    TestService service(std::vector<NodeSpec>{node});
    const auto told = MakePlan(service.live(), request.dump(), false);
    return told ? Json::parse(*told)["fitting"].get<int>() : -1;
  };
  EXPECT_EQ(fitting(spec), 1);
  spec.labels.clear();
  EXPECT_EQ(fitting(spec), 0) << "nobody knows whether admission adds it";
}

// What decides is in a dump: whether shares are carried out, what Topology Managers refuse, how
// many pods and devices of other plugins a node takes.
TEST(PlanOfADump, IsThatOfTheServer) {
  std::vector<NodeSpec> specs;
  for (const char* name : {"n1", "n2", "n3"}) specs.push_back(MachineWith(name, 4));
  specs[0].shares_need_uuids = true;
  specs[0].most_pods = 10;
  specs[1].most_pods = 1;
  specs[1].others = {{"rdma/hca", 1}};
  specs[2].most_pods = 0;
  TestService served(specs), offline(std::vector<NodeSpec>{});
  const std::string dump = wire::EncodeCluster(served.state().Everything());
  const auto file = wire::DecodeCluster(dump, wire::NodeRules(DefaultConfig(), AllDialects()));
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_TRUE(offline.state().Apply(file->events));
  Json share = PodWithGpus("share", 0), rdma = PodWithGpus("rdma", 1);
  share["spec"]["containers"][0]["resources"]["limits"]["berth.dev/gpu-milli"] = "500";
  rdma["spec"]["containers"][0]["resources"]["limits"]["rdma/hca"] = "1";
  Json request = {{"pods", Json::array({share, rdma, PodWithGpus("1", 1), PodWithGpus("2", 4)})}};
  const auto told = MakePlan(served.live(), request.dump(), false);
  const auto again = MakePlan(offline.live(), request.dump(), false);
  ASSERT_TRUE(told && again);
  EXPECT_EQ(*told, *again);
  EXPECT_EQ(Json::parse(*told)["fitting"], 2) << *told;
}

// A plan for thousands of pods takes seconds.
TEST_F(PlanPageTest, APlanEndsWhenItsClientHasGone) {
  Json asked = {{"pods", Json::array()}};
  for (int i = 0; i < 200; ++i) asked["pods"].push_back(PodWithGpus(std::to_string(i), 1));
  int looks = 0;
  OwnRequest request{"/plan", "", PaddedText(asked.dump()), [&looks] { return ++looks < 3; }};
  const http::HttpResponse answer = PlanPage(service_.live(), request);
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.body.find("has disconnected"), std::string::npos) << answer.body;
  EXPECT_LT(looks, 10);
  request.waits = [] { return true; };
  EXPECT_EQ(PlanPage(service_.live(), request).status, 200);
}

}  // namespace
}  // namespace berth::test::plan_page_test
