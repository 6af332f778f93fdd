// SPDX-License-Identifier: Apache-2.0
#include "server/kube/lead/leader_elector.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/replay/time/sim_clock.h"
#include "test/support/fake_api_server.h"

namespace berth::kube::leader_label_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Fault;

const std::string kPodsPath = "/api/v1/pods";

class LeaderLabelTest : public testing::Test {
 protected:
  LeaderLabelTest() {
    api_.Put(kPodsPath, test::FakePod("me", nlohmann::json::object()));
    api_.fault = [this](const ApiRequest& request) {
      if (request.method == "PATCH") bodies_.push_back(request.body);
      return fault_;
    };
  }

  // "": the pod has no such label.
  [[nodiscard]] std::string Label() const {
    const auto pod = api_.Get(kPodsPath, "ns/me");
    return pod["metadata"].value("labels", nlohmann::json::object()).value(kLeaderLabel, "");
  }

  test::FakeApiServer api_;
  SimClock clock_;
  Fault fault_ = Fault::kNone;
  std::vector<std::string> bodies_;
  LeaderLabel label_{api_, clock_, {"ns", "me"}};
};

TEST_F(LeaderLabelTest, IsThereWhileItIsWanted) {
  EXPECT_EQ(label_.written(), std::nullopt);
  ASSERT_TRUE(label_.Step(true));
  EXPECT_EQ(Label(), "true");
  EXPECT_EQ(label_.written(), true);
  ASSERT_TRUE(label_.Step(false));
  EXPECT_EQ(Label(), "");
  EXPECT_EQ(label_.written(), false);
}

TEST_F(LeaderLabelTest, OfTheContainerBeforeIsTakenOffFirst) {
  auto pod = api_.Get(kPodsPath, "ns/me");
  pod["metadata"]["labels"] = {{kLeaderLabel, "true"}, {"app", "berth"}};
  api_.Put(kPodsPath, pod);
  ASSERT_TRUE(label_.Step(false));
  EXPECT_EQ(Label(), "");
  EXPECT_EQ(api_.Get(kPodsPath, "ns/me")["metadata"]["labels"].value("app", ""), "berth");
}

TEST_F(LeaderLabelTest, IsWrittenAgainNowAndThenAndNotMoreOften) {
  for (int i = 0; i < 99; ++i) {
    ASSERT_TRUE(label_.Step(true));
    clock_.Advance(milliseconds(100));
  }
  EXPECT_EQ(bodies_.size(), 1u);
  auto pod = api_.Get(kPodsPath, "ns/me");
  pod["metadata"]["labels"].erase(kLeaderLabel);
  api_.Put(kPodsPath, pod);
  clock_.Advance(milliseconds(100));
  ASSERT_TRUE(label_.Step(true));
  EXPECT_EQ(Label(), "true");
}

TEST_F(LeaderLabelTest, AWriteThatFailsIsTriedAgainAndMeanwhileNothingIsKnown) {
  ASSERT_TRUE(label_.Step(false));
  fault_ = Fault::kForbidden;
  const Status refused = label_.Step(true);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.starts_with("label berth.dev/leader of pod ns/me: "))
      << refused.error().message;
  EXPECT_EQ(label_.written(), std::nullopt);
  fault_ = Fault::kNone;
  EXPECT_EQ(label_.Step(true).error().message, refused.error().message) << "not yet tried again";
  clock_.Advance(seconds(1));
  EXPECT_TRUE(label_.Step(true));
  EXPECT_EQ(label_.written(), true);
}

TEST_F(LeaderLabelTest, AWriteWithoutAnAnswerIsInDoubt) {
  fault_ = Fault::kLostAnswer;
  EXPECT_FALSE(label_.Step(true));
  EXPECT_EQ(Label(), "true");
  EXPECT_EQ(label_.written(), std::nullopt);
  fault_ = Fault::kNone;
  EXPECT_TRUE(label_.Step(false)) << "what is wanted now does not wait";
  EXPECT_EQ(Label(), "");
}

TEST_F(LeaderLabelTest, ANameThatLeadsElsewhereIsNoPod) {
  LeaderLabel label(api_, clock_, {"ns", "../nodes/n1"});
  EXPECT_FALSE(label.Step(true));
  EXPECT_TRUE(bodies_.empty());
}

}  // namespace
}  // namespace berth::kube::leader_label_test
