// SPDX-License-Identifier: Apache-2.0
//
// What lies between filter and bind: another extender, Reserve and PreBind refuse a node that Berth
// has named, kube-scheduler lets one pod use a node, and takes its time.
#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "server/extender/gangs/roster/gang_limits.h"
#include "test/unit/server/gang_world.h"

namespace berth::test::gang_after_filter_test {
namespace {

using namespace gang_world;  // NOLINT(google-build-using-namespace)
using std::chrono::minutes;

class GangAfterFilterTest : public GangWorld {
 protected:
  static APod Two(const std::string& name) { return Member(name).GangSize(2); }
  static APod PerNode(const std::string& name, const std::string& gang, int size) {
    return Member(name, gang).GangSize(size).LeftToScheduler({.host_ports = true});
  }
  // kube-scheduler asks about it so often, does not bind it, and asks once more.
  std::string AskedAgain(const APod& pod, int times) {
    for (int i = 0; i < times; ++i) {
      (void)Filter(pod);
      Pass(seconds(2));
    }
    return Filter(pod);
  }
  // The nodes that kube-scheduler offers where one pod may use a node.
  Names Open() const {
    Names open;
    const auto snapshot = state_.Current();
    for (NodeIndex i = 0; i < snapshot->size(); ++i) {
      const std::string name(snapshot->names().name(i));
      const auto is_there = [&name](const auto& pod) { return pod.second == name; };
      if (std::ranges::none_of(assumed_, is_there)) open.push_back(name);
    }
    return open;
  }
  // It asks about one, and binds it to the node that it hears; false: it finds no node.
  bool Try(const APod& pod) {
    const std::string name = pod.Request().id.name;
    Forget();
    if (assumed_.contains(name)) return true;
    const Names open = Open();
    if (open.empty()) return false;
    const std::string node = Filter(pod, open);
    if (std::ranges::find(open, node) == open.end()) return false;
    assumed_[name] = node;
    answers_.erase(name);
    Bind(pod, node);
    Forget();
    return true;
  }
  // Those whose bind was refused.
  void Forget() {
    std::erase_if(assumed_, [this](const auto& pod) {
      const std::string answer = AnswerTo(pod.first);
      return !answer.empty() && answer != "bound";
    });
  }

  std::map<std::string, std::string> assumed_;  // node by pod
};

TEST_F(GangAfterFilterTest, ANodeToWhichAMemberIsNotBoundIsLeftOutAtTheThirdAsk) {
  for (const char* node : {"n", "m", "k"}) Add(ANode(node).Gpus(1));
  const APod a = Two("a"), b = Two("b");
  Arrive({a, b});
  Place(b);
  const std::string first = Filter(a);
  EXPECT_EQ(AskedAgain(a, 1), first) << "once may happen";
  Pass(seconds(2));
  const std::string second = Filter(a);
  EXPECT_NE(second, first);
  EXPECT_EQ(AnswerTo("b"), "") << "the other one stays held";
  EXPECT_EQ(Free(first), 1000);
  EXPECT_EQ(gangs_.Views(clock_.Now())[0].why,
            "kube-scheduler asked about a 3 times and did not bind it to " + first);
  Bind(a, second);
  EXPECT_EQ(bound_.size(), 2U);
}

TEST_F(GangAfterFilterTest, ANodeToWhichAMemberIsNotBoundWhileOthersAreHeldIsLeftOutToo) {
  for (const char* node : {"n", "m", "k"}) Add(ANode(node).Gpus(1));
  const APod a = Two("a"), b = Two("b");
  Arrive({a, b});
  Place(b);
  const std::string first = Filter(a);
  for (int i = 0; i < 6; ++i) Pass(seconds(10));
  EXPECT_NE(AnswerTo("b"), "") << "the hold is over";
  Pass(seconds(60));
  Place(b);
  EXPECT_NE(Filter(a), first);
  Place(a);
  EXPECT_EQ(bound_.size(), 2U);
}

// kube-scheduler puts a member aside that another extender refuses, and may hear of nothing that
// would bring it back.
TEST_F(GangAfterFilterTest, AMemberThatWasToldItsNodeAndIsNotBoundIsWoken) {
  for (const char* node : {"n", "m", "k"}) Add(ANode(node).Gpus(1));
  const APod a = Two("a"), b = Two("b");
  Arrive({a, b});
  Place(b);
  const std::string first = Filter(a);
  Pass(seconds(10));
  EXPECT_EQ(waker_.names, Names());
  std::string node = first;
  for (std::size_t times = 1; times <= 2; ++times) {
    for (int i = 0; i < 3; ++i) Pass(seconds(1));
    EXPECT_EQ(waker_.names, Names(times, "a")) << "once, until it comes";
    node = Filter(a);
    Pass(seconds(8));
  }
  EXPECT_NE(node, first);
  EXPECT_EQ(AnswerTo("b"), "") << "the other one stays held";
  Bind(a, node);
  EXPECT_EQ(bound_.size(), 2U);
}

TEST_F(GangAfterFilterTest, AsksAtTheSameMomentDoNotCount) {
  for (const char* node : {"n", "m", "k"}) Add(ANode(node).Gpus(1));
  Arrive({Two("a"), Two("b")});
  const std::string first = Filter(Two("a"));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Filter(Two("a")), first);
}

TEST_F(GangAfterFilterTest, ABindThatComesClearsTheNode) {
  for (const char* node : {"n", "m", "k"}) Add(ANode(node).Gpus(1));
  const APod a = Two("a"), b = Two("b");
  Arrive({a, b});
  const std::string first = AskedAgain(a, 1);
  Bind(a, first);
  gone_.insert("a");  // its client gives up, and kube-scheduler asks anew
  Pass(seconds(2));
  gone_.clear();
  EXPECT_EQ(AskedAgain(a, 1), first);
}

TEST_F(GangAfterFilterTest, ThoseLikeTheMemberAreKeptFromTheNodeWhereThereAreOthers) {
  for (const char* node : {"n", "m", "k", "l"}) Add(ANode(node).Gpus(1));
  Arrive({a_, b_, c_});
  const std::string bad = Filter(a_);
  EXPECT_NE(AskedAgain(a_, 2), bad);
  EXPECT_NE(Filter(b_), bad);
  EXPECT_NE(Filter(c_), bad);
  for (const APod& pod : {a_, b_, c_}) Place(pod);
  EXPECT_EQ(bound_.size(), 3U);
}

TEST_F(GangAfterFilterTest, AnotherMemberLikeItMayGoThereWhereThereAreNoOthers) {
  for (const char* node : {"n", "m", "k"}) Add(ANode(node).Gpus(1));
  Arrive({a_, b_, c_});
  const std::string bad = Filter(a_);
  const std::string good = AskedAgain(a_, 2);
  EXPECT_NE(good, bad);
  for (const APod& pod : {a_, b_, c_}) Place(pod);
  EXPECT_EQ(bound_.size(), 3U);
}

TEST_F(GangAfterFilterTest, AGangWhoseMemberCanGoNowhereHoldsNothingForMinutes) {
  for (const char* node : {"n", "m"}) Add(ANode(node).Gpus(1));
  const APod a = Two("a"), b = Two("b");
  Arrive({a, b});
  int held = 0;
  constexpr int kSeconds = 280;
  for (int second = 0; second < kSeconds; ++second) {
    if (second % 5 == 0) (void)Filter(a);  // and it fails in PreBind
    if (second % 5 == 1) Try(b);
    if (Free("n") == 0 || Free("m") == 0) ++held;
    Pass(seconds(1));
  }
  EXPECT_LT(held, 50) << "of " << kSeconds << " s";
  EXPECT_EQ(bound_, Names());
  Pass(minutes(6));
  EXPECT_EQ(StateOf(), "planned") << "it is tried again";
}

TEST_F(GangAfterFilterTest, ANodeIsLeftOutForLongerEachTime) {
  Add(ANode("n").Gpus(1));
  Add(ANode("m").Gpus(1));
  const APod a = Two("a"), b = Two("b");
  Arrive({a, b});
  // The minutes until it is planned again after a is not bound anywhere.
  const auto minutes_out = [&] {
    for (int second = 0; second < 200; second += 2) {
      (void)Filter(a);
      Pass(seconds(2));
    }
    int passed = 0;
    for (; StateOf() != "planned" && passed < 100; ++passed) Pass(minutes(1));
    return passed + 3;
  };
  const int first = minutes_out();
  EXPECT_LE(first, 6);
  EXPECT_GT(minutes_out(), first);
  for (int i = 0; i < 4; ++i) (void)minutes_out();
  EXPECT_LE(minutes_out(), 31);
}

TEST_F(GangAfterFilterTest, OfTooManyNodesTheFirstIsPlannedForAgain) {
  for (std::size_t i = 0; i < gangs::kMostOut + 4; ++i) {
    Add(ANode("n" + std::to_string(i)).Gpus(1));
  }
  Arrive({Two("a"), Two("b")});
  Names told;
  for (std::size_t i = 0; i < gangs::kMostOut + 8; ++i) {
    told.push_back(Filter(Two("a")));
    for (int ask = 0; ask < 2; ++ask) {
      Pass(milliseconds(600));
      (void)Filter(Two("a"));
    }
  }
  const std::set<std::string> nodes(told.begin(), told.begin() + gangs::kMostOut);
  EXPECT_EQ(nodes.size(), gangs::kMostOut) << "each is another one";
  EXPECT_EQ(std::ranges::count(told, kNoRoom), 0) << "the first ones are there again";
}

// They were told their nodes; kube-scheduler binds them later.
TEST_F(GangAfterFilterTest, APlanMadeAnewMovesNoMemberThatWasAnswered) {
  for (int i = 0; i < 8; ++i) Add(ANode("n" + std::to_string(i)).Gpus(8));
  std::vector<APod> pods;
  for (int i = 0; i < 8; ++i) pods.push_back(PerNode("m" + std::to_string(i), "t", 8));
  Arrive(pods);
  for (const APod& pod : pods) {
    const Names open = Open();
    const std::string node = Filter(pod, open);
    ASSERT_NE(std::ranges::find(open, node), open.end()) << node;
    assumed_[pod.Request().id.name] = node;
  }
  for (const APod& pod : pods) Bind(pod, assumed_[pod.Request().id.name]);
  EXPECT_EQ(bound_.size(), 8U);
}

TEST_F(GangAfterFilterTest, OfTwoGangsThatCannotBothBeTheYoungerGivesWayAtOnce) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    const std::string one = "one" + std::to_string(seed), two = "two" + std::to_string(seed);
    for (int i = 0; i < 8; ++i) Add(ANode("n" + std::to_string(i)).Gpus(8));
    std::vector<APod> pods;
    for (int i = 0; i < 8; ++i) {
      pods.push_back(PerNode(one + "-" + std::to_string(i), one, 8));
      pods.push_back(PerNode(two + "-" + std::to_string(i), two, 8));
    }
    Arrive(pods);
    std::mt19937 random(seed);
    std::shuffle(pods.begin(), pods.end(), random);
    bound_.clear();
    for (int second = 0; second < 3 && bound_.size() < 8; ++second) {
      for (const APod& pod : pods) Try(pod);
      if (bound_.size() < 8) Pass(seconds(1));
    }
    EXPECT_EQ(bound_.size(), 8U) << "within two seconds";
    for (const APod& pod : pods) Delete(pod);
    assumed_.clear();
    answers_.clear();
    Pass(seconds(1));
  }
}

// By kube-scheduler's count one of three has no node, each time another one.
TEST_F(GangAfterFilterTest, AsksDoNotShortenThePauseWhereAnotherMemberIsAbsentEachTime) {
  Add(ANode("n").Gpus(3));
  Arrive({a_, b_, c_});
  const std::vector<std::vector<APod>> come = {{a_, b_}, {b_, c_}, {a_, c_}, {a_, b_},
                                               {b_, c_}, {a_, c_}, {a_, b_}, {b_, c_}};
  int held = 0, seconds_in_all = 0;
  for (const auto& two : come) {
    std::set<std::string> held_now;
    for (const APod& pod : {two[0], two[1], two[0]}) {  // the first one may have come too early
      const std::string& name = pod.Request().id.name;
      if (held_now.contains(name) || Filter(pod) != "n") continue;
      Bind(pod, "n");
      held_now.insert(name);
    }
    for (int second = 0; second < 100; second += 5, seconds_in_all += 5) {
      if (Free("n") < 3000) held += 5;
      Pass(seconds(5));
    }
  }
  EXPECT_LT(held, seconds_in_all / 2);
  EXPECT_EQ(bound_, Names());
}

TEST_F(GangAfterFilterTest, ABrokenGangStandsInLineWhereItStood) {
  extender_.Use({.engine = EngineOf("best-fit"),
                 .reservation_time = seconds(30),
                 .gangs = {{"berth"}, seconds(50)},
                 .earmarks = EarmarkLimits{100}});
  const auto look = [this](Duration time) {
    clock_.Advance(time);
    extender_.LookAtEarmarks();
    extender_.LookAtGangs();
  };
  const auto show = [this](const APod& pod, int second) {
    waiting_.Put({.pod = std::make_shared<const PodRequest>(pod.Request()),
                  .created = WallTime(seconds(1'000'000 + second))});
  };
  Add(ANode("n").Gpus(2));
  Add(ANode("m").Gpus(1));
  const APod old = APod("old").Whole(1), single = APod("single").Whole(1);
  PodBound ending{old.Request(), old.On("m", {0})};
  ending.life.completes = true;
  Apply(ending);
  for (const APod& pod : {a_, b_}) {
    PodBound bound{pod.Request(), pod.On("n", {pod.Request().id.name == "a" ? 0 : 1})};
    bound.life.started = WallTime(seconds(1'000'000));
    Apply(bound);
  }
  show(single, 500);
  EXPECT_EQ(Filter(single), Text(Reason::kGpusHeld));
  show(c_, 1000);
  EXPECT_EQ(Filter(c_), kNoRoom);
  look(seconds(1));
  Delete(old);
  look(seconds(1));
  EXPECT_NE(Filter(single), "m") << "it came after the gang, and before its new pod";
  EXPECT_EQ(Filter(c_), "m");
}

TEST_F(GangAfterFilterTest, WhatKubeSchedulerSaysOfAMemberIsTold) {
  Add(ANode("n").Gpus(3));
  Arrive({a_, b_, c_});
  Place(a_);
  Place(b_);
  waiting_.Put({.pod = std::make_shared<const PodRequest>(c_.Request()),
                .unschedulable = true,
                .scheduler_said = "0/1 nodes are available: 1 node(s) had no free ports"});
  Pass(seconds(6));
  EXPECT_EQ(gangs_.Views(clock_.Now())[0].why,
            "kube-scheduler finds no node for c: 0/1 nodes are available: 1 node(s) had no free "
            "ports");
}

TEST_F(GangAfterFilterTest, AMemberThatWasAskedAboutIsNotSaidToBeMissing) {
  Add(ANode("n").Gpus(3));
  Arrive({a_, b_, c_});
  Place(a_);
  (void)Filter(b_);
  Pass(seconds(6));
  EXPECT_EQ(gangs_.Views(clock_.Now())[0].why, "kube-scheduler has not yet retried c");
}

TEST_F(GangAfterFilterTest, ItIsSaidThatAGangIsWholeAsSoonAsItIsBound) {
  Add(ANode("n").Gpus(3));
  Arrive({a_, b_, c_});
  for (const APod& pod : {a_, b_, c_}) Place(pod);
  EXPECT_EQ(bound_.size(), 3U);
  Pass(milliseconds(100));
  EXPECT_EQ(StateOf(), "whole");
}

}  // namespace
}  // namespace berth::test::gang_after_filter_test
