// SPDX-License-Identifier: Apache-2.0
//
// What the line of waiting pods does with evictions: those that kube-scheduler makes for pods in
// line, and the nodes that Berth keeps for others.
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "scoring/earmarks/earmark_line.h"
#include "test/support/builders.h"

namespace berth::test::nominations_test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// Nodes "a" and "b" of 8 GPUs, each held by two pods of four: "x0" and "x1", "y0" and "y1".
class NominationsTest : public testing::Test {
 protected:
  static std::shared_ptr<const PodRequest> Of(const APod& pod) {
    return std::make_shared<const PodRequest>(pod.Request());
  }
  void Stand(const APod& pod, int since) {
    line_.Stand({{Of(pod)}, WallTime(seconds(since))}, now_, at_);
  }
  void Becomes(NodeIndex index, const ANode& node) {
    now_ = std::make_shared<const Snapshot>(now_->With(index, SnapshotOf({node})->shared(0)));
  }
  void Look() {
    line_.Look(now_, {100, minutes(60)}, {at_, WallTime(at_.time_since_epoch())}, {},
               EarmarkLine::Scope::kAll, kept_);
  }
  [[nodiscard]] std::string OwnersOn(NodeIndex node) const {
    std::string names;
    const Earmarks::OnNode* const on = line_.earmarks()->On(*now_, node);
    if (on == nullptr) return names;
    for (const EarmarkOwner& owner : on->owners) {
      names += (names.empty() ? "" : " ") + owner.pod.name;
    }
    return names;
  }
  [[nodiscard]] bool Keeps(NodeIndex node, const APod& from) const {
    return line_.earmarks()->KeptFor(from.Request(), *now_, node) != nullptr;
  }
  static ANode Full(const std::string& name, const std::string& pod) {
    ANode node(name);
    node.Gpus(8).Holding(APod(pod + "0").Whole(4), {0, 1, 2, 3});
    return node.Holding(APod(pod + "1").Whole(4), {4, 5, 6, 7});
  }

  std::map<std::string, std::string> shown_;  // as the API server shows pods nominated, by name
  EarmarkLine line_{nullptr, nullptr, [this](const PodRequest& pod) {
                      const auto found = shown_.find(pod.id.name);
                      return found == shown_.end() ? "" : found->second;
                    }};
  std::shared_ptr<const KeptNodes> kept_;
  std::shared_ptr<const Snapshot> now_ = SnapshotOf({Full("a", "x"), Full("b", "y")});
  Instant at_{};
};

TEST_F(NominationsTest, WhatAnEvictionFreesIsThePodsThatItWasFor) {
  Stand(APod("older").Whole(4).Priority(100), 1);
  Stand(APod("evicts").Whole(8).Priority(100), 2);
  line_.Agree("uid-evicts", {{"a", {"uid-x0", "uid-x1"}}, {"b", {"uid-y0", "uid-y1"}}}, at_);
  Look();
  EXPECT_TRUE(line_.earmarks()->empty()) << "nobody has been evicted";
  Becomes(0, ANode("a").Gpus(8).Holding(APod("x1").Whole(4), {4, 5, 6, 7}));
  Look();
  EXPECT_EQ(OwnersOn(0), "evicts") << "half of it is free, and would do for the older pod";
  EXPECT_TRUE(Keeps(0, APod("older").Whole(4).Priority(100)));
  EXPECT_FALSE(Keeps(0, APod("urgent").Whole(4).Priority(101)));
  Becomes(0, ANode("a").Gpus(8));
  Look();
  EXPECT_EQ(OwnersOn(0), "evicts");
  at_ += EarmarkLine::kOffer;
  Look();
  EXPECT_EQ(OwnersOn(0), "older") << "the other did not come";
}

TEST_F(NominationsTest, OfTwoThatMayEvictAPodTheOneThatIsShownNominatedHasItsRoom) {
  Stand(APod("older").Whole(4).Priority(100), 1);
  Stand(APod("evicts").Whole(4).Priority(100), 2);
  for (const char* uid : {"uid-older", "uid-evicts"}) line_.Agree(uid, {{"a", {"uid-x0"}}}, at_);
  const auto leaving = [](bool both) {
    ANode node("a");
    node.Gpus(8).Holding(APod("x1").Whole(4), {4, 5, 6, 7});
    return both ? node.Labelled({{"changed", ""}}) : node;
  };
  Becomes(0, leaving(false));
  Look();
  EXPECT_EQ(OwnersOn(0), "older") << "nothing is shown yet";
  shown_["evicts"] = "a";
  Becomes(0, leaving(true));
  Look();
  EXPECT_EQ(OwnersOn(0), "evicts");
}

TEST_F(NominationsTest, APodThatIsShownNominatedElsewhereHasNothingKept) {
  Stand(APod("older").Whole(4).Priority(100), 1);
  Stand(APod("evicts").Whole(8).Priority(100), 2);
  line_.Agree("uid-evicts", {{"a", {"uid-x0", "uid-x1"}}, {"b", {"uid-y0", "uid-y1"}}}, at_);
  shown_["evicts"] = "b";
  Becomes(0, ANode("a").Gpus(8).Holding(APod("x1").Whole(4), {4, 5, 6, 7}));
  Look();
  EXPECT_EQ(OwnersOn(0), "older") << "x0 has ended by itself";
  Becomes(1, ANode("b").Gpus(8).Holding(APod("y1").Whole(4), {4, 5, 6, 7}));
  Look();
  EXPECT_EQ(OwnersOn(1), "evicts");
}

TEST_F(NominationsTest, APodThatEndedByItselfNominatesNobodyForLong) {
  Stand(APod("older").Whole(4).Priority(100), 1);
  Stand(APod("evicts").Whole(8).Priority(100), 2);
  line_.Agree("uid-evicts", {{"a", {"uid-x0", "uid-x1"}}}, at_);
  Becomes(0, ANode("a").Gpus(8).Holding(APod("x1").Whole(4), {4, 5, 6, 7}));
  Look();
  at_ += EarmarkLine::kOffer;
  Look();
  EXPECT_EQ(OwnersOn(0), "older") << "nobody else leaves the node";
}

TEST_F(NominationsTest, AnAgreementThatIsOldSaysNothing) {
  Stand(APod("older").Whole(4).Priority(100), 1);
  Stand(APod("evicts").Whole(8).Priority(100), 2);
  line_.Agree("uid-evicts", {{"a", {"uid-x0", "uid-x1"}}}, at_);
  at_ += EarmarkLine::kOffer;
  Becomes(0, ANode("a").Gpus(8).Holding(APod("x1").Whole(4), {4, 5, 6, 7}));
  Look();
  EXPECT_EQ(OwnersOn(0), "older");
}

TEST_F(NominationsTest, TheNomineeGoesBeforeOwnersOfALowerPriority) {
  Stand(APod("low").Whole(4), 1);
  Stand(APod("evicts").Whole(8).Priority(100), 2);
  Becomes(0, ANode("a").Gpus(8).Holding(APod("x1").Whole(4), {4, 5, 6, 7}));
  Look();
  ASSERT_EQ(OwnersOn(0), "low");
  line_.Agree("uid-evicts", {{"a", {"uid-x1"}}}, at_);
  Becomes(0, ANode("a").Gpus(8));
  Look();
  EXPECT_EQ(OwnersOn(0), "evicts");
}

// Berth agreed to its evictions, since the gang could evict it.
TEST_F(NominationsTest, TheNomineeGoesBeforeAGangThatCouldEvictIt) {
  const auto member = [](const char* name) {
    return APod(name).Whole(4).Priority(200).Gang("berth:default/train").GangSize(2);
  };
  line_.Stand({{Of(member("m0")), Of(member("m1"))}, WallTime(seconds(1))}, now_, at_);
  Stand(APod("evicts").Whole(8).Priority(100), 2);
  PodLife job;
  job.completes = true;
  Becomes(0, ANode("a").Gpus(8).Holding(APod("x1").Whole(4), {4, 5, 6, 7}, job));
  Look();
  ASSERT_EQ(OwnersOn(0), "m0");
  line_.Agree("uid-evicts", {{"a", {"uid-x1"}}}, at_);
  Becomes(0, ANode("a").Gpus(8).Labelled({{"changed", ""}}));
  Look();
  EXPECT_EQ(OwnersOn(0), "evicts");
  EXPECT_TRUE(Keeps(0, APod("low").Whole(1)));
  EXPECT_FALSE(Keeps(0, member("m0")));
}

TEST_F(NominationsTest, NothingIsKeptForAPodThatLacksAnotherDeviceThere) {
  Stand(APod("waits").Whole(4).Others({{"rdma/hca", 2}}), 1);
  Look();
  Becomes(0, ANode("a").Gpus(8).Counts(110, {{"rdma/hca", 1}}));
  Look();
  EXPECT_EQ(OwnersOn(0), "");
  Becomes(0, ANode("a").Gpus(8).Counts(110, {{"rdma/hca", 2}}));
  Look();
  EXPECT_EQ(OwnersOn(0), "waits");
}

TEST_F(NominationsTest, WhatElseItAsksForIsKeptWithTheRoom) {
  Stand(APod("waits").Whole(4).Others({{"rdma/hca", 1}}), 1);
  Look();
  Becomes(0, ANode("a").Gpus(8).Counts(2, {{"rdma/hca", 1}}));
  Look();
  ASSERT_EQ(OwnersOn(0), "waits");
  EXPECT_FALSE(Keeps(0, APod("other").Whole(4)));
  EXPECT_TRUE(Keeps(0, APod("other").Whole(4).Others({{"rdma/hca", 1}})));
  Becomes(0, ANode("a").Gpus(8).Counts(1, {{"rdma/hca", 1}}));
  Look();
  EXPECT_TRUE(Keeps(0, APod("other").Whole(4))) << "the only place for a pod";
}

TEST_F(NominationsTest, NothingIsOfferedOnANodeThatIsKeptForAnother) {
  PodId other{"uid-other", "default", "other"};
  kept_ = std::make_shared<const KeptNodes>(KeptNodes{{"a", {{other, {}, 100}}}});
  Stand(APod("waits").Whole(4), 1);
  Stand(APod("urgent").Whole(1).Priority(101), 2);
  Look();
  Becomes(0, ANode("a").Gpus(8));
  Look();
  EXPECT_EQ(OwnersOn(0), "urgent") << "of a higher priority than the one it is kept for";
  kept_ = nullptr;
  Look();
  EXPECT_EQ(OwnersOn(0), "urgent waits") << "the node is for all again";
  kept_ = std::make_shared<const KeptNodes>(KeptNodes{{"a", {{other, {}, 100}}}});
  Look();
  EXPECT_EQ(OwnersOn(0), "urgent");
}

}  // namespace
}  // namespace berth::test::nominations_test
