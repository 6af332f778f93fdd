// SPDX-License-Identifier: Apache-2.0
#include "server/why/waiting_whys.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "test/support/builders.h"

namespace berth::test::waiting_whys_test {
namespace {

class WaitingWhysTest : public testing::Test {
 protected:
  static WaitingPod Asking(const std::string& name, int gpus) {
    return {.pod = std::make_shared<const PodRequest>(APod(name).Whole(gpus).Request())};
  }
  static std::shared_ptr<const Snapshot> Newer() {
    NodeSpec spec;
    spec.name = "n1";
    const auto node = std::make_shared<const Node>(std::make_shared<const NodeSpec>(spec));
    return std::make_shared<const Snapshot>(std::vector{node});
  }
  std::vector<std::string> Texts(const std::vector<WaitingPod>& pods) {
    std::vector<std::string> texts;
    told_ = whys_.Of(pods, {snapshot_, policy_, Reservations(earmarks_)});
    for (const wire::WaitingWhy& why : told_.whys) texts.push_back(why.text);
    return texts;
  }

  std::shared_ptr<const Snapshot> snapshot_ = Newer();
  std::shared_ptr<const Extender::Policy> policy_ = std::make_shared<const Extender::Policy>();
  std::shared_ptr<const Earmarks> earmarks_;
  Extender::Moment of_;  // the last explanation
  Instant now_{};
  Duration takes_{};
  int explained_ = 0;
  WaitingWhys whys_{[this](const Extender::Moment& now, const WaitingPod& pod) {
                      ++explained_;
                      of_ = now;
                      now_ += takes_;
                      return wire::WaitingWhy{pod.pod->id.name, {}};
                    },
                    [this] { return now_; }};
  WaitingWhys::Told told_;
};

TEST_F(WaitingWhysTest, PodsThatAreAlikeShareOne) {
  EXPECT_EQ(Texts({Asking("a", 1), Asking("b", 2), Asking("c", 1)}),
            (std::vector<std::string>{"c", "b", "c"}));
  EXPECT_EQ(explained_, 2);
  EXPECT_FALSE(told_.more);
}

TEST_F(WaitingWhysTest, WhatTakesLongIsSpreadOverSeveralCalls) {
  takes_ = WaitingWhys::kBudget;
  const std::vector<WaitingPod> pods = {Asking("a", 1), Asking("b", 2), Asking("c", 3)};
  EXPECT_EQ(Texts(pods), (std::vector<std::string>{"a", "", ""}));
  EXPECT_TRUE(told_.more);
  EXPECT_EQ(Texts(pods), (std::vector<std::string>{"a", "b", ""}));
  EXPECT_EQ(Texts(pods), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_FALSE(told_.more);
}

TEST_F(WaitingWhysTest, OneIsKeptForAWhileAndAsLongAsNothingChanges) {
  const std::vector<WaitingPod> pods = {Asking("a", 1)};
  Texts(pods);
  now_ += 10 * WaitingWhys::kFresh;
  Texts(pods);
  EXPECT_EQ(explained_, 1) << "the cluster is the same";
  now_ = {};
  snapshot_ = Newer();
  Texts(pods);
  EXPECT_EQ(explained_, 1) << "it is fresh";
  now_ += WaitingWhys::kFresh;
  Texts(pods);
  EXPECT_EQ(explained_, 2);
}

TEST_F(WaitingWhysTest, OneIsOfTheMomentOfTheList) {
  Texts({Asking("a", 1)});
  EXPECT_EQ(of_.snapshot, snapshot_);
  EXPECT_EQ(of_.policy, policy_);
}

TEST_F(WaitingWhysTest, WhatIsSaidOfOneForWhichRoomIsKeptHoldsForNoOther) {
  const std::vector<WaitingPod> pods = {Asking("a", 1), Asking("b", 1)};
  Texts(pods);
  EarmarkOwner owner;
  owner.pod = pods[1].pod->id;
  earmarks_ = std::make_shared<const Earmarks>(
      snapshot_, std::vector{Earmarks::OnNode{.node = 0, .owners = {owner}}});
  now_ += WaitingWhys::kFresh;
  EXPECT_EQ(Texts(pods), (std::vector<std::string>{"a", "the room on n1 is kept for it"}));
  EXPECT_EQ(explained_, 2) << "what is kept may be what the other waits for";
}

TEST_F(WaitingWhysTest, AnotherPolicyMayFindAnother) {
  const std::vector<WaitingPod> pods = {Asking("a", 1)};
  Texts(pods);
  policy_ = std::make_shared<const Extender::Policy>();
  now_ += WaitingWhys::kFresh;
  Texts(pods);
  EXPECT_EQ(explained_, 2);
}

TEST_F(WaitingWhysTest, WhatKeepsPodsApartIsNotShared) {
  WaitingPod gated = Asking("b", 1);
  gated.held_back = "scheduling gates hold it back";
  PodRequest in_gang = *Asking("c", 1).pod;
  in_gang.gang.id = {"", "ns", "g"};
  PodRequest refused = *Asking("d", 1).pod;
  refused.refusal = "no";
  PodRequest picky = *Asking("e", 1).pod;
  auto constraints = std::make_shared<NodeConstraints>();
  constraints->selector = {{"zone", LabelOperator::kExists, {}}};
  picky.constraints = constraints;
  Texts({Asking("a", 1),
         gated,
         {.pod = std::make_shared<const PodRequest>(in_gang)},
         {.pod = std::make_shared<const PodRequest>(refused)},
         {.pod = std::make_shared<const PodRequest>(picky)}});
  EXPECT_EQ(explained_, 5);
}

TEST_F(WaitingWhysTest, KindsBeyondTheLimitAreLeftOutAndMakeRoomAgain) {
  std::vector<WaitingPod> pods;
  for (std::size_t i = 0; i < WaitingWhys::kMostKinds + 1; ++i) {
    PodRequest pod = *Asking("p" + std::to_string(i), 1).pod;
    pod.priority = static_cast<int>(i);
    pods.push_back({.pod = std::make_shared<const PodRequest>(pod)});
  }
  EXPECT_EQ(Texts(pods).back(), "");
  EXPECT_FALSE(told_.more);
  EXPECT_EQ(Texts({pods.back()}), (std::vector<std::string>{pods.back().pod->id.name}));
}

}  // namespace
}  // namespace berth::test::waiting_whys_test
