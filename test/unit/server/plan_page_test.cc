// SPDX-License-Identifier: Apache-2.0
#include "server/pages/plan_page.h"

#include <chrono>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "test/support/builders.h"
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
  waiting_.Put(
      {.pod = std::make_shared<const PodRequest>(APod("g").Whole(2).Request()), .gated = true});
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
