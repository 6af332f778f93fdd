// SPDX-License-Identifier: Apache-2.0
//
// Gangs through the verbs of the Extender: every arrow of gang_table.h.
#include "server/extender/gangs/table/gang_table.h"

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/extender/extender.h"
#include "server/extender/inquiry.h"
#include "test/support/builders.h"
#include "test/support/wire_fixture.h"
#include "test/unit/server/gang_world.h"

namespace berth::test::gang_table_test {
namespace {

using namespace gang_world;  // NOLINT(google-build-using-namespace)
class GangTableTest : public GangWorld {};

TEST_F(GangTableTest, MembersFitNoNodeUntilEnoughOfThemAreThere) {
  Add(ANode("n").Gpus(8));
  Arrive({a_, b_});
  EXPECT_EQ(Filter(a_), kIncomplete);
  EXPECT_EQ(Filter(b_), kIncomplete);
  EXPECT_EQ(Free("n"), 8000) << "nothing is held for a gang that is not there";
  EXPECT_EQ(StateOf(), "gathering");
  Arrive(c_);
  EXPECT_EQ(Filter(c_), "n");
  EXPECT_EQ(Free("n"), 5000) << "all three hold their places from now on";
  EXPECT_EQ(StateOf(), "planned");
}

TEST_F(GangTableTest, PodsThatAGangOfKubeSchedulersOwnLacksMayComeAtOnce) {
  Add(ANode("n").Gpus(2));
  const auto may_change = [this](const APod& pod) {
    const std::vector<NodeIndex> candidates = {0};
    const FilterAnswer answer = extender_.Filter(extender_.Now(), pod.Request(), candidates);
    EXPECT_FALSE(answer.fits);
    return answer.may_change;
  };
  const auto native = [](const std::string& name) {
    return APod(name).Whole(1).Gang("kubernetes:default/native").GangSize(3);
  };
  EXPECT_FALSE(may_change(a_));
  EXPECT_TRUE(may_change(native("x")));
  Arrive({native("x"), native("y"), native("z")});
  EXPECT_FALSE(may_change(native("x"))) << "all are there, and there is no room";
}

TEST_F(GangTableTest, AGangThatDoesNotFitHoldsNothing) {
  Add(ANode("n").Gpus(2));
  Arrive({a_, b_, c_});
  EXPECT_EQ(Filter(a_), kNoRoom);
  EXPECT_EQ(Free("n"), 2000);
  EXPECT_EQ(View().state, "waiting");
  ASSERT_EQ(sink_.texts.size(), 1U);
  EXPECT_EQ(sink_.texts[0],
            "never on these nodes: its pods ask for 3 GPUs, and the nodes that they accept have 2; "
            "needs room for 3 pods with 1 GPU each, has room for 2");
  EXPECT_EQ(Filter(b_), kNoRoom);
  EXPECT_EQ(sink_.texts.size(), 1U) << "it is said once";
  EXPECT_EQ(Filter(APod("single").Whole(2)), "n");
}

TEST_F(GangTableTest, NobodyIsBoundBeforeAllAreHeldAndTheFirstGoesAlone) {
  Add(ANode("n").Gpus(2));
  Add(ANode("m").Gpus(2));
  Arrive({a_, b_, c_});
  Place(a_);
  Place(b_);
  EXPECT_EQ(bound_, Names());
  EXPECT_EQ(AnswerTo("a"), "");
  const std::string node = Filter(c_);
  const PodId& id = c_.Request().id;
  ASSERT_TRUE(extender_.Bind({id.namespace_name, id.name, id.uid, node, clock_.Now()},
                             [](const Status&) {}));
  jobs_.front()();  // the bind of c: all are held now
  jobs_.pop_front();
  ASSERT_EQ(jobs_.size(), 1U) << "one Binding, which decides";
  EXPECT_EQ(StateOf(), "committing");
  jobs_.front()();
  jobs_.pop_front();
  EXPECT_EQ(bound_, Names{"a"});
  RunJobs();
  EXPECT_EQ(bound_.size(), 3U);
  EXPECT_EQ(AnswerTo("a"), "bound");
  EXPECT_EQ(AnswerTo("b"), "bound");
  Pass(seconds(6));
  EXPECT_EQ(StateOf(), "whole");
}

TEST_F(GangTableTest, WhereTheFirstBindingIsRefusedAllAreAndNothingStays) {
  Add(ANode("n").Gpus(4));
  Arrive({a_, b_, c_});
  refuse_["a"] = Errc::kConflict;
  Place(a_);
  Place(b_);
  Place(c_);
  EXPECT_EQ(bound_, Names());
  EXPECT_EQ(AnswerTo("a"), "refused by the API server");
  EXPECT_EQ(AnswerTo("b"), AnswerTo("c"));
  EXPECT_NE(AnswerTo("b"), "");
  EXPECT_EQ(Free("n"), 4000);
  EXPECT_EQ(Filter(b_), kNoRoom) << "not at once";
  refuse_.clear();
  Pass(seconds(2));
  for (const APod& pod : {a_, b_, c_}) Place(pod);
  EXPECT_EQ(bound_.size(), 3U);
}

TEST_F(GangTableTest, AMemberDeletedAtTheFirstBindingIsReplaced) {
  Add(ANode("n").Gpus(4));
  Arrive({a_, b_, c_, d_});
  refuse_["a"] = Errc::kNotFound;
  Place(a_);
  Place(b_);
  Place(c_);
  waiting_.Remove("uid-a");
  Pass(milliseconds(100));
  EXPECT_EQ(bound_, Names()) << "two of three are held";
  Place(d_);
  Pass(milliseconds(100));
  EXPECT_EQ(bound_.size(), 3U);
}

TEST_F(GangTableTest, AllThatIsHeldIsAnsweredTogetherWhenTheOthersDoNotCome) {
  Add(ANode("n").Gpus(4));
  Arrive({a_, b_, c_});
  Place(a_);
  Pass(seconds(20));
  Place(b_);
  Pass(seconds(28));
  EXPECT_EQ(AnswerTo("a"), "");
  Pass(seconds(2));
  EXPECT_EQ(AnswerTo("a"), AnswerTo("b"));
  EXPECT_NE(AnswerTo("a"), "");
  EXPECT_EQ(Free("n"), 4000);
  EXPECT_EQ(bound_, Names());
}

TEST_F(GangTableTest, ADeletedHeldMemberReleasesItsPlace) {
  Add(ANode("n").Gpus(3));
  Arrive({a_, b_, c_});
  Place(a_);
  Place(b_);
  Delete(a_);
  Pass(milliseconds(100));
  EXPECT_NE(AnswerTo("a"), "");
  EXPECT_NE(AnswerTo("b"), "") << "two pods are no gang of three";
  EXPECT_EQ(Free("n"), 3000);
  Pass(seconds(2));
  EXPECT_EQ(Filter(b_), kIncomplete);
  Arrive(d_);
  EXPECT_EQ(Filter(d_), "n");
}

TEST_F(GangTableTest, AnotherMemberTakesThePlaceOfOneThatIsDeleted) {
  Add(ANode("n").Gpus(3));
  Arrive({a_, b_, c_});
  Place(a_);
  Place(b_);
  Arrive(d_);
  Delete(a_);
  Pass(milliseconds(100));
  EXPECT_EQ(AnswerTo("b"), "") << "it is held on";
  Place(c_);
  Place(d_);
  EXPECT_EQ(bound_.size(), 3U);
}

TEST_F(GangTableTest, MissingMembersOfARunningGangArePlannedTogetherAndBoundOneByOne) {
  Add(ANode("n").Gpus(3));
  ShowBound(a_, "n", {0});
  Arrive({b_, c_});
  Place(b_);
  EXPECT_EQ(AnswerTo("b"), "bound") << "nothing is held";
  EXPECT_EQ(Free("n"), 0) << "the place of c is kept";
  Place(c_);
  EXPECT_EQ(AnswerTo("c"), "bound");
}

TEST_F(GangTableTest, NoPartOfWhatIsMissingIsPlacedAlone) {
  Add(ANode("n").Gpus(2));
  ShowBound(a_, "n", {0});
  Arrive({b_, c_});
  EXPECT_EQ(Filter(b_), kNoRoom) << "there is room for one of two";
  EXPECT_EQ(Free("n"), 1000);
}

TEST_F(GangTableTest, MembersBeyondTheMinimumArePlannedAndNotWaitedFor) {
  Add(ANode("n").Gpus(4));
  Arrive({a_, b_, c_, d_});
  Place(a_);
  EXPECT_EQ(Free("n"), 0);
  Place(b_);
  Place(c_);
  EXPECT_EQ(bound_.size(), 3U);
  Place(d_);
  EXPECT_EQ(bound_.size(), 4U);
}

TEST_F(GangTableTest, AMemberThatComesWhenTheOthersArePlannedGetsAPlaceToo) {
  Add(ANode("n").Gpus(5));
  Arrive({a_, b_, c_});
  Place(a_);
  Arrive(d_);
  EXPECT_EQ(Filter(d_), "n");
  EXPECT_EQ(Free("n"), 1000);
}

TEST_F(GangTableTest, TheRoomOfExtrasThatNobodyComesForIsGivenBack) {
  Add(ANode("n").Gpus(4));
  Arrive({a_, b_, c_, d_});
  for (const APod& pod : {a_, b_, c_}) Place(pod);
  EXPECT_EQ(Free("n"), 0);
  Pass(seconds(51));
  EXPECT_EQ(Free("n"), 1000);
}

TEST_F(GangTableTest, AMemberWithoutGpusIsReleasedWhenTheOthersHaveBegun) {
  Add(ANode("n").Gpus(2));
  const APod launcher = APod("launcher").Cpu(1).Gang("berth:default/train").GangSize(3);
  Arrive({a_, b_, launcher});
  EXPECT_EQ(Filter(launcher), kNoRoom);
  Place(a_);
  EXPECT_EQ(Filter(launcher), kNoRoom) << "the others are not there";
  Place(b_);
  EXPECT_EQ(bound_.size(), 2U) << "it counts as held: kube-scheduler binds it";
  EXPECT_EQ(waker_.names, Names{"launcher"});
  EXPECT_EQ(Filter(launcher), "n");
}

TEST_F(GangTableTest, AMemberWithoutGpusGoesWhereKubeSchedulerPutsIt) {
  for (const std::string name : {"m", "n", "o"}) Add(ANode(name).Gpus(name == "n" ? 2 : 0));
  const APod launcher = APod("launcher").Cpu(1).Gang("berth:default/train").GangSize(3);
  Arrive({a_, b_, launcher});
  for (const APod& pod : {a_, b_}) Place(pod);
  EXPECT_EQ(Filter(launcher), "m n o");
  const std::string planned = state_.FindPod("uid-launcher")->placement.node;
  Bind(launcher, planned == "m" ? "o" : "m");
  EXPECT_EQ(AnswerTo("launcher"), "bound");
}

TEST_F(GangTableTest, PodsWithoutGpusAreNotHeldForEachOther) {
  Add(ANode("n").Gpus(2));
  const APod worker = APod("worker").Cpu(1).Gang("berth:default/etl").GangSize(3);
  Arrive(worker);
  EXPECT_EQ(Filter(worker), kIncomplete) << "its controller may make others with GPUs yet";
  Pass(seconds(10));
  EXPECT_EQ(waker_.names, Names{"worker"});
  EXPECT_EQ(Filter(worker), "n");
}

TEST_F(GangTableTest, ALauncherThatComesMomentsBeforeItsWorkersWaitsForThem) {
  Add(ANode("n").Gpus(2));
  const APod launcher = APod("launcher").Cpu(1).Gang("berth:default/train").GangSize(3);
  Arrive(launcher);
  EXPECT_EQ(Filter(launcher), kIncomplete);
  Pass(seconds(1));
  Arrive({a_, b_});
  Place(a_);
  Pass(seconds(20));
  EXPECT_EQ(Filter(launcher), kNoRoom) << "the others are not there";
  Place(b_);
  EXPECT_EQ(bound_.size(), 2U);
  EXPECT_EQ(Filter(launcher), "n");
}

TEST_F(GangTableTest, AMissingPodGroupKeepsOnlyPodsWithGpusFromTheirNodes) {
  Add(ANode("n").Gpus(2));
  const auto without_object = [](const APod& pod) {
    PodRequest request = pod.Request();
    request.gang.id = GangId::Of("berth:default/later");
    request.gang.object = Gang::Object::kMissing;
    return request;
  };
  const auto filter = [this](const PodRequest& pod) {
    return extender_.Filter(extender_.Now(), pod, std::vector<NodeIndex>{0}).fits;
  };
  EXPECT_FALSE(filter(without_object(APod("trainer").Whole(1))));
  EXPECT_TRUE(filter(without_object(APod("driver").Cpu(1))));
}

TEST_F(GangTableTest, APlanIsMadeAnewWhereANodeIsLostBeforeTheFirstBinding) {
  Add(ANode("n").Gpus(3));
  Arrive({a_, b_, c_});
  EXPECT_EQ(Filter(a_), "n");
  EXPECT_EQ(Filter(b_), "n");
  Add(ANode("spare").Gpus(4));
  Apply(NodeRemoved{"n"});
  EXPECT_EQ(Filter(a_), "spare");
  Place(a_);
  Place(b_);
  Place(c_);
  EXPECT_EQ(bound_.size(), 3U);
}

TEST_F(GangTableTest, AHeldMemberThatLosesItsNodeMovesAndTheOthersStayHeld) {
  Add(ANode("n").Gpus(2));
  Add(ANode("m").Gpus(1));
  Arrive({a_, b_, c_});
  std::map<std::string, APod> on;  // by node
  for (const APod& pod : {a_, b_, c_}) on.insert_or_assign(Filter(pod), pod);
  ASSERT_EQ(on.size(), 2U);
  Bind(on.at("m"), "m");
  Bind(on.at("n"), "n");
  Add(ANode("spare").Gpus(4));
  Apply(NodeRemoved{"m"});
  Pass(milliseconds(100));
  EXPECT_NE(AnswerTo(on.at("m").Request().id.name), "");
  EXPECT_EQ(AnswerTo(on.at("n").Request().id.name), "");
  for (const APod& pod : {a_, b_, c_}) {
    if (pod.Request().id.uid != on.at("n").Request().id.uid) Place(pod);
  }
  EXPECT_EQ(bound_.size(), 3U);
}

TEST_F(GangTableTest, ABindWhoseClientHasGoneDoesNotCount) {
  Add(ANode("n").Gpus(3));
  Arrive({a_, b_, c_});
  Place(a_);
  gone_.insert("a");
  Pass(milliseconds(100));
  Place(b_);
  Place(c_);
  Pass(milliseconds(100));
  EXPECT_EQ(bound_, Names()) << "kube-scheduler has given a up";
  gone_.clear();
  Place(a_);
  EXPECT_EQ(bound_.size(), 3U);
}

TEST_F(GangTableTest, ABindWhoseClientHasGoneDoesNotCountForACommit) {
  Add(ANode("n").Gpus(4));
  Arrive({a_, b_, c_});
  Place(a_);
  Place(b_);
  gone_.insert("a");  // kube-scheduler was restarted
  Place(c_);
  EXPECT_EQ(bound_, Names());
  EXPECT_EQ(StateOf(), "planned");
  gone_.clear();
  Place(a_);
  EXPECT_EQ(bound_.size(), 3U);
}

TEST_F(GangTableTest, ARetriedFirstBindingNeedsTheOthersHeld) {
  Add(ANode("n").Gpus(4));
  Arrive({a_, b_, c_});
  refuse_["a"] = Errc::kUnavailable;
  for (const APod& pod : {a_, b_, c_}) Place(pod);
  EXPECT_EQ(StateOf(), "committing") << "the Binding of a is in doubt";
  refuse_.clear();
  binder_.truths["uid-a"] = {a_.Request(), std::nullopt};
  gone_ = {"b", "c"};
  answers_.clear();
  Place(a_);
  EXPECT_EQ(bound_, Names());
  gone_.clear();
  for (const APod& pod : {b_, c_, a_}) Place(pod);
  EXPECT_EQ(bound_.size(), 3U);
}

TEST_F(GangTableTest, AMemberInDoubtDoesNotCountForACommit) {
  Add(ANode("n").Gpus(4));
  Arrive({a_, b_, c_});
  refuse_["a"] = Errc::kConflict;
  binder_.unreachable = true;  // so that nobody knows where a is
  for (const APod& pod : {a_, b_, c_}) Place(pod);
  EXPECT_NE(AnswerTo("b"), "");
  Pass(seconds(2));
  Place(b_);
  Place(c_);
  EXPECT_EQ(bound_, Names()) << "a may be bound, and may be not";
}

TEST_F(GangTableTest, AGangThatIsCreatedAnewUnderItsNameBeginsAnew) {
  Add(ANode("n").Gpus(4));
  Arrive({a_, b_, c_});
  for (const APod& pod : {a_, b_, c_}) Place(pod);
  ASSERT_EQ(bound_.size(), 3U);
  clock_.Advance(std::chrono::hours(1));
  for (const APod& pod : {a_, b_, c_}) Delete(pod);
  const APod anew = Member("a").Uid("another");
  Arrive(anew);
  EXPECT_EQ(Filter(anew), kIncomplete);
  Arrive({d_, Member("e")});
  EXPECT_EQ(Filter(anew), "n");
}

TEST_F(GangTableTest, ADeletedHeldMemberIsAnsweredDuringReplanning) {
  Add(ANode("m").Gpus(8));
  Add(ANode("n").Gpus(8));
  Arrive({a_, b_, c_, d_});
  Place(a_);
  const std::string other = Filter(b_) == "m" ? "n" : "m";
  Delete(a_);
  EXPECT_EQ(Filter(b_, {other}), other);
  Pass(seconds(1));
  EXPECT_NE(AnswerTo("a"), "");
}

TEST_F(GangTableTest, MembersThatSleepAreWokenWhenThereIsAPlan) {
  Add(ANode("n").Gpus(3));
  Arrive({a_, b_});
  EXPECT_EQ(Filter(a_), kIncomplete);
  EXPECT_EQ(Filter(b_), kIncomplete);
  Arrive(c_);
  EXPECT_EQ(Filter(c_), "n");
  EXPECT_EQ(waker_.names, (Names{"a", "b"}));
}

TEST_F(GangTableTest, MembersThatTheWakerHasNoRoomForAreWokenLater) {
  Add(ANode("n").Gpus(3));
  Arrive({a_, b_});
  EXPECT_EQ(Filter(a_), kIncomplete);
  EXPECT_EQ(Filter(b_), kIncomplete);
  Arrive(c_);
  waker_.room = 1;
  EXPECT_EQ(Filter(c_), "n");
  EXPECT_EQ(waker_.names, Names{"a"});
  Pass(milliseconds(100));
  EXPECT_EQ(waker_.names, Names{"a"}) << "it is full";
  waker_.room = 1;
  Pass(milliseconds(100));
  EXPECT_EQ(waker_.names, (Names{"a", "b"}));
}

TEST_F(GangTableTest, AGangThatSleepsIsPlannedWhenRoomComes) {
  Add(ANode("n").Gpus(3));
  const APod single = APod("single").Whole(1);
  ShowBound(single, "n", {0});
  Arrive({a_, b_, c_});
  for (const APod& pod : {a_, b_, c_}) EXPECT_EQ(Filter(pod), kNoRoom);
  Pass(seconds(1));
  EXPECT_EQ(waker_.names, Names());
  Delete(single);
  Pass(milliseconds(200));
  EXPECT_EQ(waker_.names, (Names{"a", "b", "c"}));
  EXPECT_EQ(Free("n"), 0) << "and nobody else gets it";
}

TEST_F(GangTableTest, ARefusedBindWakesThoseThatDoNotHearOfTheirCondition) {
  Add(ANode("n").Gpus(3));
  Arrive({a_, b_});
  EXPECT_EQ(Filter(a_), kIncomplete);
  Arrive(c_);
  Place(c_);
  Pass(seconds(10));
  EXPECT_EQ(AnswerTo("c"), "") << "kube-scheduler may still come by itself";
  Pass(milliseconds(1500));
  EXPECT_NE(AnswerTo("c"), "") << "kube-scheduler looks at all pods again";
  Place(c_);
  Pass(seconds(12));
  Place(a_);
  Place(b_);
  EXPECT_EQ(bound_.size(), 3U) << "once: the second hold of c was kept";
}

TEST_F(GangTableTest, NoBindIsRefusedForTheSakeOfAMemberThatNobodyNeeds) {
  Add(ANode("n").Gpus(1));
  Add(ANode("m").Gpus(1));
  const auto member = [](const std::string& name) {
    return Member(name).GangSize(3).GangMinimum(2);
  };
  const APod a = member("a"), b = member("b");
  const APod extra = member("extra").Whole(2);  // fits nowhere
  Arrive({a, b, extra});
  Place(a);
  EXPECT_EQ(Filter(extra), kNoRoom);
  Pass(seconds(12));
  EXPECT_EQ(AnswerTo("a"), "") << "b comes 10 s after a, and is not asleep";
  Place(b);
  EXPECT_EQ(AnswerTo("a"), "bound");
  EXPECT_EQ(AnswerTo("b"), "bound");
}

TEST_F(GangTableTest, MembersThatAGangThatHasBegunLacksKeepTheirPlaces) {
  Add(ANode("n").Gpus(3));
  ShowBound(a_, "n", {0});
  Arrive({b_, c_});
  Place(b_);
  for (int holds = 0; holds < 3; ++holds) {
    Pass(seconds(51));
    EXPECT_EQ(Free("n"), 0) << "c has not come yet";
  }
  Place(c_);
  EXPECT_EQ(AnswerTo("c"), "bound");
}

TEST_F(GangTableTest, WhatABegunGangLacksIsPlannedBeforeKubeSchedulerAsks) {
  Add(ANode("n").Gpus(2));
  ShowBound(a_, "n", {0});
  ShowBound(b_, "n", {1});
  Arrive(c_);
  Pass(seconds(1));
  EXPECT_EQ(StateOf(), "begun");
  Add(ANode("m").Gpus(1));
  Pass(seconds(1));
  EXPECT_EQ(Free("m"), 0) << "others do not take it";
  Place(c_);
  EXPECT_EQ(AnswerTo("c"), "bound");
}

TEST_F(GangTableTest, WhatIsPlannedForAGangWhosePodGroupIsDeletedIsFree) {
  Add(ANode("n").Gpus(3));
  ShowBound(a_, "n", {0});
  Arrive({b_, c_});
  EXPECT_EQ(Filter(b_), "n");
  EXPECT_EQ(Free("n"), 0);
  EXPECT_NE(Filter(APod("b").Whole(1).Gang("berth:default/train").WithoutGangObject()), "n");
  Pass(seconds(1));
  EXPECT_EQ(Free("n"), 2000);
}

TEST_F(GangTableTest, AFullTableForgetsEndedGangsAndKeepsWaitingOnes) {
  Arrive({a_, b_, c_});
  EXPECT_EQ(Filter(a_), kNoRoom);
  for (std::size_t i = 0; i < GangTable::kMostGangs + 100; ++i) {
    const APod other = Member("other", "gang" + std::to_string(i));
    Arrive(other);
    EXPECT_EQ(Filter(other), kIncomplete);
    Delete(other);
    if (i % 4096 == 0) Pass(seconds(6));
  }
  Add(ANode("n").Gpus(3));
  Pass(seconds(6));
  EXPECT_EQ(waker_.names, (Names{"a"})) << "it sleeps, and there is room";
  EXPECT_EQ(StateOf(), "planned");
}

TEST_F(GangTableTest, TheGangBeyondTheBoundWaitsAndIsLookedAtLater) {
  Add(ANode("n").Gpus(3));
  std::vector<APod> others;
  for (std::size_t i = 0; i < GangTable::kMostGangs; ++i) {
    others.push_back(Member("other" + std::to_string(i), "gang" + std::to_string(i)));
    Arrive(others.back());
    ASSERT_EQ(Filter(others.back()), kIncomplete);
  }
  Arrive({a_, b_, c_});
  EXPECT_NE(Filter(a_).find("too many gangs wait"), std::string::npos);
  Delete(others.front());
  Pass(seconds(6));
  EXPECT_EQ(Filter(a_), "n");
}

TEST_F(GangTableTest, TheNamespaceWithMostGangsGivesWayToOthers) {
  Add(ANode("n").Gpus(3));
  const auto of_evil = [](std::size_t i) {
    const std::string number = std::to_string(i);
    return APod("e" + number).Whole(1).Gang("berth:evil/gang" + number).GangSize(3);
  };
  for (std::size_t i = 0; i < GangTable::kMostGangs; ++i) {
    Arrive(of_evil(i));
    ASSERT_EQ(Filter(of_evil(i)), kIncomplete);
  }
  Pass(milliseconds(100));
  Arrive({a_, b_, c_});
  EXPECT_EQ(Filter(a_), "n");
  Arrive(of_evil(GangTable::kMostGangs));
  EXPECT_NE(Filter(of_evil(GangTable::kMostGangs)).find("too many gangs wait"), std::string::npos)
      << "it has most";
  Pass(seconds(6));
  EXPECT_EQ(StateOf(), "planned") << "who holds something stays";
  EXPECT_EQ(gangs_.Views(clock_.Now()).size(), GangTable::kMostGangs);
}

TEST_F(GangTableTest, GangsOfOthersAreNoticedBesideThoseBeyondTheBound) {
  for (std::size_t i = 0; i <= GangTable::kMostGangs; ++i) {
    const std::string number = std::to_string(i);
    Arrive(APod("e" + number).Whole(1).Gang("berth:a/gang" + number).GangSize(3));
  }
  ArriveUnschedulable({a_, b_, c_});  // kube-scheduler does not ask
  for (int i = 0; i < 4; ++i) Pass(seconds(6));
  EXPECT_EQ(StateOf(), "waiting");
}

TEST_F(GangTableTest, ABindWithoutAPlanIsRefusedAfterASecond) {
  Add(ANode("n").Gpus(4));
  Arrive({a_, b_});
  EXPECT_EQ(Filter(a_), kIncomplete);
  Bind(a_, "n");
  EXPECT_EQ(AnswerTo("a"), "");
  Pass(milliseconds(900));
  EXPECT_EQ(AnswerTo("a"), "");
  Pass(milliseconds(200));
  EXPECT_NE(AnswerTo("a"), "");
  EXPECT_EQ(bound_, Names());
}

TEST_F(GangTableTest, WhoLeadsNoMoreAnswersWhatItHoldsAndHoldsNothing) {
  Add(ANode("n").Gpus(3));
  Arrive({a_, b_, c_});
  Place(a_);
  extender_.LetGoOfGangs({Errc::kUnavailable, "another process leads"});
  EXPECT_EQ(AnswerTo("a"), "another process leads");
  EXPECT_EQ(Free("n"), 3000);
  EXPECT_EQ(Filter(b_), kNoRoom);
  Bind(b_, "n");
  EXPECT_NE(AnswerTo("b"), "") << "and at once: nobody looks any more";
}

TEST_F(GangTableTest, ANewLeaderPlansMissingMembersFirst) {
  Add(ANode("n").Gpus(3));
  ShowBound(a_, "n", {0});
  Arrive({b_, c_});
  extender_.TakeOverGangs();
  EXPECT_EQ(Free("n"), 0);
  EXPECT_EQ(Filter(APod("single").Whole(1)), Text(Reason::kGpusBusy));
}

TEST_F(GangTableTest, AFirstBindingInDoubtIsWaitedFor) {
  Add(ANode("n").Gpus(3));
  Arrive({a_, b_, c_});
  refuse_["a"] = Errc::kUnavailable;
  for (const APod& pod : {a_, b_, c_}) Place(pod);
  EXPECT_EQ(AnswerTo("a"), "refused by the API server");
  EXPECT_EQ(bound_, Names());
  Pass(seconds(1));
  EXPECT_EQ(AnswerTo("b"), "") << "nobody knows yet whether the gang has begun";
  ShowBound(a_, "n", {0});
  Pass(milliseconds(100));
  EXPECT_EQ(AnswerTo("b"), "bound");
  EXPECT_EQ(AnswerTo("c"), "bound");
}

TEST_F(GangTableTest, AMemberWithAnUnknownBindOutcomeIsOfferedItsNodeAgain) {
  Add(ANode("n").Gpus(3));
  Arrive({a_, b_, c_});
  refuse_["a"] = Errc::kUnavailable;
  for (const APod& pod : {a_, b_, c_}) Place(pod);
  EXPECT_EQ(Filter(a_), "n") << "the bind that follows finds out";
  EXPECT_EQ(Filter(a_, {}), "n");
  Add(ANode("m").Gpus(3));
  EXPECT_EQ(Filter(a_, {"m"}), kNoRoom);
  Delete(b_);
  Delete(c_);
  Pass(milliseconds(100));
  waiting_.Remove("uid-a");  // nobody waits but the pod in doubt
  Pass(seconds(1));
  EXPECT_EQ(bound_, Names());
}

TEST_F(GangTableTest, ANewLeaderWakesMembersRefusedByAnother) {
  Add(ANode("n").Gpus(3));
  const APod single = APod("single").Whole(1);
  ShowBound(single, "n", {0});
  Arrive({a_, b_, c_});
  extender_.TakeOverGangs();
  Delete(single);
  Pass(seconds(10));
  EXPECT_EQ(waker_.names, Names()) << "pods that come before them may ask first";
  EXPECT_EQ(Filter(APod("high").Whole(1).Priority(9)), "n");
  Pass(seconds(2));
  EXPECT_EQ(waker_.names, (Names{"a", "b", "c"}));
}

TEST_F(GangTableTest, WhoIsAskedAboutAfterATakeOverIsPlannedAtOnce) {
  Add(ANode("n").Gpus(3));
  Arrive({a_, b_, c_});
  extender_.TakeOverGangs();
  for (const APod& pod : {a_, b_, c_}) Place(pod);
  EXPECT_EQ(bound_.size(), 3U);
}

TEST_F(GangTableTest, AFirstBindingThatNeverCameIsTriedWithAnother) {
  Add(ANode("n").Gpus(4));
  Arrive({a_, b_, c_, d_});
  refuse_["a"] = Errc::kUnavailable;
  for (const APod& pod : {a_, b_, c_}) Place(pod);
  Delete(a_);
  Pass(milliseconds(100));
  EXPECT_EQ(bound_, Names());
  Place(d_);
  Pass(milliseconds(100));
  EXPECT_EQ(bound_.size(), 3U);
}

// --- preemption

TEST_F(GangTableTest, NobodyIsEvictedForAGangThatWouldNotFitEvenSo) {
  Add(ANode("m").Gpus(1));
  Add(ANode("n").Gpus(1));
  ShowBound(APod("low-m").Whole(1), "m", {0});
  ShowBound(APod("low-n").Whole(1), "n", {0});
  const APod a = Member("a").Priority(10), b = Member("b").Priority(10),
             c = Member("c").Priority(10);
  Arrive({a, b, c});
  EXPECT_EQ(Filter(a), kNoRoom);
  EXPECT_EQ(Preempt(a, {"m", "n"}), "");
  EXPECT_EQ(Preempt(APod("single").Whole(1).Priority(10), {"m"}), "m: low-m");
}

TEST_F(GangTableTest, EachMemberPreemptsOnItsPlannedNodeAfterIdleNodes) {
  Add(ANode("k").Gpus(1));
  for (const std::string name : {"l", "m", "n"}) {
    Add(ANode(name).Gpus(1));
    ShowBound(APod("low-" + name).Whole(1).Priority(name == "l" ? 5 : 1), name, {0});
  }
  const APod a = Member("a").Priority(10), b = Member("b").Priority(10),
             c = Member("c").Priority(10);
  Arrive({a, b, c});
  EXPECT_EQ(Filter(a), kNoRoom);
  const Names all = {"l", "m", "n"};
  Names evicted = {Preempt(a, all), Preempt(b, all), Preempt(c, all)};
  std::ranges::sort(evicted);
  EXPECT_EQ(evicted, (Names{"", "m: low-m", "n: low-n"})) << "one has room, l is dearest";
  Delete(APod("low-m"));
  Delete(APod("low-n"));
  Pass(seconds(1));
  for (const APod& pod : {a, b, c}) Place(pod);
  EXPECT_EQ(bound_.size(), 3U);
}

TEST_F(GangTableTest, WhatIsFreedForAGangIsKeptForIt) {
  Add(ANode("k").Gpus(1));
  for (const std::string name : {"m", "n"}) {
    Add(ANode(name).Gpus(1));
    ShowBound(APod("low-" + name).Whole(1), name, {0});
  }
  const APod a = Member("a").Priority(10), b = Member("b").Priority(10),
             c = Member("c").Priority(10);
  Arrive({a, b, c});
  for (const APod& pod : {a, b, c}) EXPECT_EQ(Filter(pod), kNoRoom);
  EXPECT_EQ(Free("k"), 1000) << "nobody is evicted yet";
  for (const APod& pod : {a, b, c}) Preempt(pod, {"m", "n"});
  EXPECT_EQ(Free("k"), 0);
  Delete(APod("low-m"));
  Pass(seconds(1));
  EXPECT_EQ(Free("m"), 0) << "a pod that is created anew does not take it";
  EXPECT_EQ(bound_, Names());
  Delete(APod("low-n"));
  Pass(seconds(1));
  for (const APod& pod : {a, b, c}) Place(pod);
  EXPECT_EQ(bound_.size(), 3U);
}

TEST_F(GangTableTest, KeptGpusAreReleasedAfterTheDeadlineOrWithTheGang) {
  Add(ANode("k").Gpus(1));
  Add(ANode("m").Gpus(2));
  ShowBound(APod("low-m").Whole(2), "m", {0, 1});
  const APod a = Member("a").Priority(10), b = Member("b").Priority(10),
             c = Member("c").Priority(10);
  Arrive({a, b, c});
  const APod d = Member("d").Priority(10);
  for (const APod& pod : {a, b, c}) Preempt(pod, {"m"});
  EXPECT_EQ(Free("k"), 0);
  Pass(std::chrono::minutes(6));
  EXPECT_EQ(Free("k"), 1000);
  for (const APod& pod : {a, b, c}) Preempt(pod, {"m"});
  EXPECT_EQ(Free("k"), 0);
  Delete(c);
  Pass(seconds(6));
  EXPECT_EQ(Free("k"), 1000) << "too few are left";
  Arrive(d);
  for (const APod& pod : {a, b, d}) Preempt(pod, {"m"});
  EXPECT_EQ(Free("k"), 0);
  extender_.LetGoOfGangs({Errc::kUnavailable, "another one leads"});
  EXPECT_EQ(Free("k"), 1000);
}

TEST_F(GangTableTest, WhereANodeOfTheEvictionsIsLostRoomIsMadeElsewhere) {
  for (const std::string name : {"l", "m", "n", "o"}) {
    Add(ANode(name).Gpus(1));
    ShowBound(APod("low-" + name).Whole(1), name, {0});
  }
  const APod a = Member("a").Priority(10), b = Member("b").Priority(10),
             c = Member("c").Priority(10);
  Arrive({a, b, c});
  const Names all = {"l", "m", "n", "o"};
  const std::string lost = Preempt(a, all).substr(0, 1);
  for (const APod& pod : {b, c}) Preempt(pod, all);
  Apply(NodeRemoved{lost});
  Pass(seconds(2));
  EXPECT_EQ(waker_.names, (Names{"a", "b", "c"}));
  Names left = all;
  std::erase(left, lost);
  std::set<std::string> evicted;
  for (const APod& pod : {a, b, c}) evicted.insert(Preempt(pod, left));
  EXPECT_EQ(evicted.size(), 3U);
  EXPECT_FALSE(evicted.contains(""));
}

TEST_F(GangTableTest, KubeSchedulerMayAskAboutTheNodesOfOtherMembers) {
  for (const std::string name : {"l", "m", "n"}) {
    Add(ANode(name).Gpus(1));
    ShowBound(APod("low-" + name).Whole(1), name, {0});
  }
  const APod a = Member("a").Priority(10), b = Member("b").Priority(10),
             c = Member("c").Priority(10);
  Arrive({a, b, c});
  Names evicted = {Preempt(a, {"n"}), Preempt(b, {"m"}), Preempt(c, {"l"})};
  EXPECT_EQ(evicted, (Names{"n: low-n", "m: low-m", "l: low-l"}));
}

TEST_F(GangTableTest, AMemberDoesNotTakeTheNodeWhereRoomIsMadeForAnother) {
  Add(ANode("m").Gpus(2));
  Add(ANode("n").Gpus(1));
  ShowBound(APod("low-m").Whole(2), "m", {0, 1});
  ShowBound(APod("low-n").Whole(1), "n", {0});
  const APod a = Member("a").Priority(10), b = Member("b").Priority(10),
             c = Member("c").Priority(10);
  Arrive({a, b, c});
  std::map<std::string, int> evictions;
  for (const APod& pod : {a, b}) ++evictions[Preempt(pod, {"m", "n"})];
  // kube-scheduler does not name a node where it sees free GPUs already.
  const std::string not_its_own = evictions["m: low-m"] == 2 ? "m" : "n";
  EXPECT_EQ(Preempt(c, {not_its_own}), "") << "more would go than have to";
}

TEST_F(GangTableTest, AMemberThatPreemptsWithoutFilterIsWoken) {
  Add(ANode("n").Gpus(3));
  ShowBound(APod("low").Whole(3), "n", {0, 1, 2});
  const APod a = Member("a").Priority(10), b = Member("b").Priority(10),
             c = Member("c").Priority(10);
  Arrive({a, b, c});
  for (const APod& pod : {a, b, c}) Preempt(pod, {"n"});
  Delete(APod("low"));
  Pass(seconds(1));
  EXPECT_EQ(waker_.names, (Names{"a", "b", "c"}));
}

TEST_F(GangTableTest, AGangOfWhichAPartWouldBeLeftIsNotEvicted) {
  const Names names = {"m", "n", "o"};
  for (const std::string& name : names) {
    Add(name == "o" ? ANode(name).Gpus(1).Tainted("dedicated", "x") : ANode(name).Gpus(1));
    ShowBound(Member("low-" + name, "low"), name, {0});
  }
  const APod a = Member("a").Priority(10).GangSize(2), b = Member("b").Priority(10).GangSize(2);
  Arrive({a, b});
  EXPECT_EQ(Preempt(a, names) + Preempt(b, names), "");
  Use({{"berth"}, seconds(50), 0, true});
  Add(ANode("p"));
  Pass(seconds(2));
  EXPECT_EQ(Preempt(a, names) + Preempt(b, names), "m: low-mn: low-n") << "gangs may break";
}

TEST_F(GangTableTest, AGangOnSeveralNodesIsEvictedWhole) {
  for (const std::string name : {"m", "n"}) Add(ANode(name).Gpus(2));
  const auto low = [](const char* name) { return Member(name, "low"); };
  ShowBound(low("low-1").Whole(2), "m", {0, 1});
  ShowBound(low("low-2"), "n", {0});
  ShowBound(low("low-3"), "n", {1});
  const auto pair = [](const char* name) { return Member(name).Whole(2).Priority(10).GangSize(2); };
  const APod a = pair("a"), b = pair("b");
  Arrive({a, b});
  EXPECT_EQ(Filter(a), kNoRoom);
  const auto told = Inquiry(extender_, extender_.Now()).GangPreemption(a.Request());
  ASSERT_TRUE(told);
  EXPECT_EQ(told->text, "its gang may preempt default/low-1, default/low-2, default/low-3");
  EXPECT_EQ(Preempt(a, {"m", "n"}), "m: low-1");
  EXPECT_EQ(Preempt(b, {"m", "n"}), "n: low-2 low-3");
  Delete(low("low-1"));
  Pass(seconds(2));
  EXPECT_EQ(Preempt(b, {"m", "n"}), "n: low-2 low-3") << "what is left of it goes too";
  for (const char* name : {"low-2", "low-3"}) Delete(low(name));
  Pass(seconds(2));
  for (const APod& pod : {a, b}) Place(pod);
  EXPECT_EQ(bound_.size(), 2U);
}

TEST_F(GangTableTest, AMemberBeyondTheMinimumMakesRoomForItselfAlone) {
  Add(ANode("n").Gpus(4));
  Arrive({a_, b_, c_});
  for (const APod& pod : {a_, b_, c_}) Place(pod);
  ShowBound(APod("low").Whole(1), "n", {3});
  const APod d = Member("d").Priority(10);
  Arrive(d);
  EXPECT_FALSE(Inquiry(extender_, extender_.Now()).GangPreemption(d.Request()));
  EXPECT_EQ(Preempt(d, {"n"}), "n: low");
}

TEST_F(GangTableTest, MembersShareTimeSlicedGpusWithEnoughReplicas) {
  Add(ANode("n").Places(2));
  Arrive({a_, b_, c_});
  for (const APod& pod : {a_, b_, c_}) EXPECT_EQ(Filter(pod), kNoRoom);
  Add(ANode("n").Places(3));
  Pass(seconds(1));
  for (const APod& pod : {a_, b_, c_}) Place(pod);
  EXPECT_EQ(bound_.size(), 3U);
  EXPECT_EQ(state_.Current()->node(0).free_places(), 0);
}

TEST_F(GangTableTest, MembersMaySayOneSizeOnly) {
  Add(ANode("n").Gpus(4));
  Arrive({a_, b_});
  EXPECT_EQ(Filter(a_), kIncomplete);
  const APod other = Member("c").GangSize(2);
  Arrive(other);
  EXPECT_EQ(Filter(other), "c says that 2 pods must start together, others say 3");
  EXPECT_EQ(gangs_.Apart(other.Request()), Filter(other));
  EXPECT_EQ(gangs_.Apart(a_.Request()), "");
  EXPECT_EQ(Free("n"), 4000);
}

TEST_F(GangTableTest, APodThatSaysAnotherSizeIsNoMember) {
  Add(ANode("n").Gpus(4));
  const auto of_size = [](const std::string& name, int size) {
    return APod(name).Whole(1).Gang("berth:default/train").GangSize(size);
  };
  Arrive({of_size("a", 2), of_size("b", 3)});
  EXPECT_EQ(Filter(of_size("a", 2)), kIncomplete) << "b is refused, so no bind of a is to be held";
  EXPECT_EQ(Free("n"), 4000);
  ASSERT_EQ(gangs_.Views(clock_.Now()).size(), 1U);
  EXPECT_EQ(gangs_.Views(clock_.Now()).front().why,
            "1 of 2 pods exist; b says that 3 pods must start together, others say 2");
  Arrive(of_size("c", 2));
  EXPECT_EQ(Filter(of_size("a", 2)), "n");
  EXPECT_EQ(gangs_.Views(clock_.Now()).front().why,
            "b says that 3 pods must start together, others say 2")
      << "planned without";
  Delete(of_size("c", 2));
  Delete(of_size("b", 3));
  Arrive(of_size("b", 2));
  for (const char* name : {"a", "b"}) Place(of_size(name, 2));
  EXPECT_EQ(bound_.size(), 2U);
}

TEST_F(GangTableTest, AMemberOfAnotherSchedulerIsNamed) {
  Add(ANode("n").Gpus(4));
  Arrive({a_, b_, Member("c").Scheduler("mine")});
  EXPECT_EQ(Filter(a_), kIncomplete);
  EXPECT_EQ(gangs_.Views(clock_.Now()).front().why,
            "2 of 3 pods exist; c has schedulerName mine, not default-scheduler: pods of two "
            "schedulers do not start together");
}

TEST_F(GangTableTest, OfPodsWithoutGpusIsNotSaidThatTheyWait) {
  Add(ANode("n").Gpus(4));
  const auto member = [](const std::string& name) {
    return APod(name).CpuMilli(100).Gang("berth:default/train").GangSize(3);
  };
  Arrive({member("a"), member("b"), member("c")});
  Pass(seconds(1));
  EXPECT_EQ(Filter(member("a")), "n");
  ASSERT_EQ(gangs_.Views(clock_.Now()).size(), 1U);
  EXPECT_EQ(gangs_.Views(clock_.Now()).front().why,
            "its pods ask for no GPU, and kube-scheduler places each of them by itself");
  EXPECT_EQ(StateOf(), "alone");
}

TEST_F(GangTableTest, ANodeThatKubeSchedulerDoesNotOfferIsPlannedAround) {
  Add(ANode("m").Gpus(3));
  Add(ANode("n").Gpus(3));
  Arrive({a_, b_, c_});
  const std::string first = Filter(a_);
  const std::string other = first == "m" ? "n" : "m";
  EXPECT_EQ(Filter(b_, {other}), other);
}

TEST_F(GangTableTest, ANodeThatIsOfferedAgainIsPlannedForAgain) {
  Add(ANode("empty"));
  Add(ANode("n").Gpus(3));
  Arrive({a_, b_, c_});
  EXPECT_EQ(Filter(a_, {"empty"}), kNoRoom) << "n is cordoned";
  Pass(seconds(2));
  EXPECT_EQ(Filter(a_), "n");
}

TEST_F(GangTableTest, WhatIsLeftOfAGangThatWasWholeIsPlacedAlone) {
  Add(ANode("n").Gpus(4));
  Arrive({a_, b_, c_});
  for (const APod& pod : {a_, b_, c_}) Place(pod);
  for (const APod& pod : {a_, b_, c_}) {
    ShowBound(pod, "n", {});
    Delete(pod);
  }
  const APod again = Member("again");
  Arrive(again);
  EXPECT_EQ(Filter(again), kIncomplete);
  Pass(seconds(61));
  EXPECT_EQ(Filter(again), "n");
  Bind(again, "n");
  EXPECT_EQ(AnswerTo("again"), "bound");
}

TEST_F(GangTableTest, WhatIsLeftOfAGangNeedsARackForItselfAlone) {
  for (const char* node : {"a1", "a2", "a3"}) Add(InRack(node, "a", 1));
  Add(InRack("b", "b", 1));
  const auto member = [](const std::string& name) { return Member(name).Requires(0); };
  for (const char* name : {"a", "b", "c"}) Arrive(member(name));
  std::map<std::string, std::string> nodes;
  for (const char* name : {"a", "b", "c"}) {
    nodes[name] = Filter(member(name));
    Bind(member(name), nodes[name]);
  }
  for (const auto& [name, node] : nodes) {
    ShowBound(member(name), node, {});
    Delete(member(name));
  }
  ShowBound(APod("other").Whole(1), "a1", {0});
  Arrive(member("again"));
  EXPECT_EQ(Filter(member("again")), kIncomplete);
  Pass(seconds(61));
  const std::string node = Filter(member("again"), {"a2", "b"});
  EXPECT_TRUE(node == "a2" || node == "b" || node == "a2 b") << node;
}

TEST_F(GangTableTest, MembersThatEndDoNotCount) {
  Add(ANode("n").Gpus(8));
  for (const auto& [name, gpu] :
       std::map<std::string, int>{{"old-a", 0}, {"old-b", 1}, {"old-c", 2}}) {
    ShowBound(Member(name), "n", {gpu}, true);
  }
  Arrive({a_, b_});
  EXPECT_EQ(Filter(a_), kIncomplete) << "a job that is started anew under its old name";
  Arrive(c_);
  EXPECT_EQ(Filter(c_), "n");
}

TEST_F(GangTableTest, AGangThatRequiresARackIsWholeInOne) {
  Add(InRack("a1", "a", 2));
  Add(InRack("b1", "b", 2));
  Add(InRack("b2", "b", 1));
  const auto in_rack = [](const std::string& name) { return Member(name).Requires(0); };
  Arrive({in_rack("a"), in_rack("b"), in_rack("c")});
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(Filter(in_rack(name)).substr(0, 1), "b");
}

TEST_F(GangTableTest, TwoGangsOfWhichOneFitsDoNotHoldEachOtherUp) {
  Add(ANode("n").Gpus(4));
  const APod x = Member("x", "other"), y = Member("y", "other"), z = Member("z", "other");
  Arrive({a_, b_, c_, x, y, z});
  EXPECT_EQ(Filter(a_), "n");
  EXPECT_EQ(Filter(x), kNoRoom);
  Bind(a_, "n");
  EXPECT_EQ(Filter(y), kNoRoom);
  Place(b_);
  Place(c_);
  EXPECT_EQ(bound_.size(), 3U);
  for (const APod& pod : {a_, b_, c_}) Delete(pod);
  Pass(seconds(1));
  for (const APod& pod : {x, y, z}) Place(pod);
  EXPECT_EQ(bound_.size(), 6U);
}

// On a full cluster kube-scheduler's own filters leave no node, so that it asks about nobody.
TEST_F(GangTableTest, AGangIsKnownWhenItsPodsAreSeen) {
  Add(ANode("n").Gpus(3));
  ShowBound(Member("x", "other"), "n", {0, 1});
  ArriveUnschedulable({a_, b_, c_});
  Pass(milliseconds(100));
  ASSERT_EQ(StateOf(), "waiting");
  EXPECT_EQ(gangs_.Views(clock_.Now()).front().why,
            "needs room for 3 pods with 1 GPU each, has room for 1");
  EXPECT_EQ(sink_.texts, Names{"needs room for 3 pods with 1 GPU each, has room for 1"});
  EXPECT_EQ(waker_.names, Names());
  Delete(Member("x", "other"));
  Pass(seconds(1));
  EXPECT_EQ(StateOf(), "planned");
  EXPECT_EQ(waker_.names, (Names{"a", "b", "c"})) << "nobody else tells them";
  for (const APod& pod : {a_, b_, c_}) Place(pod);
  EXPECT_EQ(bound_.size(), 3U);
}

TEST_F(GangTableTest, AGangIsNotPlannedBeforeKubeSchedulerAsks) {
  Add(ANode("n").Gpus(3));
  Arrive({a_, b_});
  Pass(milliseconds(100));
  EXPECT_EQ(StateOf(), "gathering");
  Arrive(c_);
  Pass(milliseconds(100));
  EXPECT_EQ(StateOf(), "waiting");
  EXPECT_EQ(Free("n"), 3000) << "it comes with them by itself";
  EXPECT_EQ(waker_.names, Names());
}

TEST_F(GangTableTest, PodsThatAreSeenAreWokenOnceWhenTheyMayGoAlone) {
  Add(ANode("n").Gpus(4));
  for (const APod& pod : {a_, b_, c_}) ShowBound(pod, "n", {});
  ArriveUnschedulable({d_});
  for (int i = 0; i < 20; ++i) Pass(seconds(1));
  EXPECT_EQ(waker_.names, Names{"d"});
}

TEST_F(GangTableTest, AMissingMemberKeepsItsGangsRoomForShorterEachTime) {
  Add(ANode("n").Gpus(3));
  Arrive({a_, b_, c_});
  Duration held{}, free{};
  bool bound = false;
  for (int second = 0; second < 3600; ++second) {
    for (const APod& pod : {a_, b_}) {
      const std::string& name = pod.Request().id.name;
      const bool is_held = answers_.contains(name) && AnswerTo(name).empty();
      if (is_held || Filter(pod) != "n") continue;
      answers_[name].clear();
      Bind(pod, "n");
    }
    (Free("n") == 3000 ? free : held) += seconds(1);
    Pass(seconds(1));
    bound = bound || !bound_.empty();
  }
  EXPECT_FALSE(bound);
  EXPECT_GT(held, seconds(100)) << "it may come";
  EXPECT_GT(free, 5 * held) << "others use what is there";
  if (StateOf() != "planned") {
    EXPECT_EQ(gangs_.Views(clock_.Now()).front().why.substr(0, 33),
              "kube-scheduler did not retry c wh");
  }
  EXPECT_EQ(Filter(c_), "n") << "its coming ends the pause";
}

TEST_F(GangTableTest, WhomKubeSchedulerDoesNotBringIsNamed) {
  Add(ANode("n").Gpus(3));
  Arrive({a_, b_, c_});
  Place(a_);
  Place(b_);
  Pass(seconds(6));
  EXPECT_EQ(gangs_.Views(clock_.Now()).front().why, "kube-scheduler has not yet retried c");
  Pass(seconds(45));
  EXPECT_EQ(gangs_.Views(clock_.Now()).front().why,
            "kube-scheduler did not retry c while their nodes were reserved; Berth reserves again "
            "when it does, or in 50 s");
}

TEST_F(GangTableTest, PodsThatDifferInTooManyWaysAreRefused) {
  Add(ANode("n").Gpus(8));
  std::vector<APod> pods;
  for (int i = 0; i < 65; ++i) {
    pods.push_back(Member("m" + std::to_string(i), "mixed").GangSize(65).CpuMilli(i + 1));
  }
  Arrive(pods);
  EXPECT_EQ(Filter(pods.front()),
            "the pod's gang default/mixed: want at most 64 different kinds of pods, got more");
}

TEST_F(GangTableTest, AGangOfManyKindsIsPlannedByLookAndNotByFilter) {
  for (int i = 0; i < 2000; ++i) Add(ANode("n" + std::to_string(i)).Gpus(8));
  std::vector<APod> pods;
  for (int i = 0; i < 40; ++i) {
    pods.push_back(Member("m" + std::to_string(i), "mixed").GangSize(40).CpuMilli(i + 1));
  }
  Arrive(pods);
  EXPECT_EQ(Filter(pods.front()), kNoRoom);
  EXPECT_EQ(StateOf("mixed"), "waiting");
  Pass(milliseconds(100));
  EXPECT_EQ(StateOf("mixed"), "planned");
  EXPECT_EQ(waker_.names, Names{"m0"});
  for (const APod& pod : pods) Place(pod);
  EXPECT_EQ(bound_.size(), 40U);
}

TEST_F(GangTableTest, NoMoreBindsAreHeldThanThereMayBe) {
  GangTable::Settings settings{{"berth"}, seconds(50)};
  settings.most_held = 4;
  Use(settings);
  Add(ANode("n").Gpus(8));
  std::vector<APod> large;
  for (int i = 0; i < 5; ++i) large.push_back(Member("l" + std::to_string(i), "large").GangSize(5));
  Arrive(large);
  EXPECT_EQ(Filter(large.front()),
            "the pod's gang default/large: want at most 4 pods that start together, got 5; "
            "each one holds a connection of kube-scheduler until all have come");
  const APod x = Member("x", "other"), y = Member("y", "other"), z = Member("z", "other");
  Arrive({a_, b_, c_, x, y, z});
  Place(a_);
  EXPECT_EQ(Filter(x), kNoRoom) << "there are GPUs, but binds of six would be held";
  Place(b_);
  Place(c_);
  EXPECT_EQ(bound_.size(), 3U);
  for (const APod& pod : {a_, b_, c_}) ShowBound(pod, "n", {});
  Pass(seconds(1));
  for (const APod& pod : {x, y, z}) Place(pod);
  EXPECT_EQ(bound_.size(), 6U);
}

class SaidHistory final : public GangHistory {
 public:
  Result<std::vector<GangPast>> In(const std::string& namespace_name) override {
    ++questions;
    asked.push_back(namespace_name);
    if (!reachable) return Fail(Errc::kUnavailable, "no answer");
    return namespace_name == "default" ? pasts : std::vector<GangPast>();
  }
  std::vector<GangPast> pasts;
  bool reachable = true;
  int questions = 0;
  Names asked;
};

// With what the cluster has of pods that have ended.
class GangHistoryTest : public GangTableTest {
 protected:
  // One more second, in which the cluster may be asked.
  void Tick() {
    Pass(seconds(1));
    reborn_.LearnOfGangs();
  }
  SaidHistory history_;
  Extender reborn_{{.state = state_,
                    .binder = binder_,
                    .sink = sink_,
                    .clock = clock_,
                    .gangs = &gangs_,
                    .waiting = &waiting_,
                    .waker = &waker_,
                    .history = &history_},
                   *extender_.policy()};
};

TEST_F(GangHistoryTest, ANewLeaderPlacesTheRestOfARunningGang) {
  Add(ANode("n").Gpus(4));
  Arrive(a_);
  EXPECT_EQ(Filter(a_), kIncomplete);
  history_.pasts = {{.gang = a_.Request().gang.id, .succeeded = 0, .ran = true}};
  for (int i = 0; i < 62; ++i) Tick();
  EXPECT_EQ(history_.questions, 1) << "once";
  EXPECT_EQ(Filter(a_), "n");
}

TEST_F(GangHistoryTest, MembersThatHaveEndedWellCountAsHavingBeenThere) {
  Add(ANode("n").Gpus(4));
  Arrive({a_, b_});
  EXPECT_EQ(Filter(a_), kIncomplete);
  history_.pasts = {{.gang = a_.Request().gang.id, .succeeded = 1, .ran = false}};
  history_.reachable = false;
  for (int i = 0; i < 3; ++i) Tick();
  EXPECT_EQ(Filter(a_), kIncomplete) << "nobody has said so yet";
  history_.reachable = true;
  Tick();
  EXPECT_EQ(Filter(a_), "n");
  Bind(a_, "n");
  EXPECT_EQ(bound_.size(), 0U);
  Place(b_);
  EXPECT_EQ(bound_.size(), 2U) << "its launcher has ended before they came";
}

// They were made anew, under the names that the others had.
TEST_F(GangHistoryTest, WhatHasEndedDoesNotCountForPodsThatComeLater) {
  Add(ANode("n").Gpus(4));
  Arrive(a_);
  EXPECT_EQ(Filter(a_), kIncomplete);
  history_.pasts = {{.gang = a_.Request().gang.id, .succeeded = 2, .ran = true}};
  for (int i = 0; i < 3; ++i) Tick();
  Delete(a_);
  history_.pasts.clear();
  Arrive(b_);
  EXPECT_EQ(Filter(b_), kIncomplete);
  for (int i = 0; i < 40; ++i) Tick();
  EXPECT_EQ(history_.questions, 2);
  EXPECT_EQ(Filter(b_), kIncomplete);
}

// A tenant may have gangs in any number of namespaces: what else goes on waits for one question.
TEST_F(GangHistoryTest, OneNamespaceIsAskedAboutAtATimeAndEachInItsTurn) {
  for (int i = 0; i < 5; ++i) {
    PodRequest pod = Member("p" + std::to_string(i)).Request();
    pod.gang.id.namespace_name = pod.id.namespace_name = "ns" + std::to_string(i);
    waiting_.Put({.pod = std::make_shared<const PodRequest>(pod)});
  }
  Pass(milliseconds(100));
  Pass(seconds(2));
  for (int i = 1; i <= 8; ++i) {
    Tick();
    EXPECT_EQ(history_.questions, std::min(i, 5));
  }
  EXPECT_EQ(std::set<std::string>(history_.asked.begin(), history_.asked.end()).size(), 5U);
}

// The watches of pods and of their controllers are two.
TEST_F(GangTableTest, ALauncherWaitsForTheObjectThatSaysHowManyTheyAre) {
  Add(ANode("n").Gpus(2));
  PodRequest launcher = APod("launcher").Cpu(1).Gang("berth:default/mpi.uid").Request();
  launcher.gang.minimum.reset();
  launcher.gang.object = Gang::Object::kMissing;
  launcher.gang.controller = {.kind = "JobSet", .name = "mpi", .uid = "uid", .asked = true};
  const std::vector<NodeIndex> candidates = {0};
  const auto filter = [&] { return extender_.Filter(extender_.Now(), launcher, candidates); };
  EXPECT_EQ(filter().nowhere,
            "Berth has not seen JobSet mpi yet, which sets how many pods must start together");
  Pass(seconds(10));
  EXPECT_EQ(waker_.names, Names{"launcher"});
  EXPECT_TRUE(filter().fits) << "it keeps no GPU idle";
}

TEST_F(GangHistoryTest, AGangThatOnlyGathersSlowlyStaysWhole) {
  Add(ANode("n").Gpus(4));
  Arrive(a_);
  for (int i = 0; i < 120; ++i) Tick();
  EXPECT_EQ(history_.questions, 1);
  EXPECT_EQ(Filter(a_), kIncomplete);
  Arrive(b_);
  for (int i = 0; i < 3; ++i) Tick();
  EXPECT_EQ(history_.questions, 2) << "another has come";
  EXPECT_EQ(Filter(b_), kIncomplete);
}

TEST_F(GangTableTest, MinimumsOfRolesAreKept) {
  Add(ANode("n").Gpus(8));
  const auto member = [](const std::string& name, const std::string& role) {
    APod pod = Member(name);
    return pod.Role(role, {{"ps", 1}, {"worker", 2}});
  };
  const APod w1 = member("w1", "worker"), w2 = member("w2", "worker"), w3 = member("w3", "worker"),
             ps = member("ps", "ps");
  Arrive({w1, w2, w3});
  EXPECT_EQ(Filter(w1), kIncomplete) << "three, and no ps";
  EXPECT_EQ(gangs_.Views(clock_.Now()).front().why, "3 of 3 pods exist; 1 of role ps is missing");
  Arrive(ps);
  for (const APod& pod : {w1, w2, w3}) Place(pod);
  EXPECT_EQ(bound_.size(), 0U);
  Place(ps);
  EXPECT_EQ(bound_.size(), 4U);
}

// A PodGang of Grove: decode in one rack, the router anywhere.
TEST_F(GangTableTest, APartOfAGangIsInOneRackFromFilterToThoseThatComeLater) {
  Add(InRack("n1", "r1", 1));
  Add(InRack("n2", "r2", 1));
  Add(InRack("n3", "r3", 1));
  const auto member = [](const std::string& name, const std::string& role) {
    APod pod = Member(name);
    return pod.Role(role, {{"decode", 2}, {"router", 1}}).Parts(role, {{{"decode"}, 0}});
  };
  const APod d1 = member("d1", "decode"), d2 = member("d2", "decode"), d3 = member("d3", "decode"),
             router = member("router", "router");
  Arrive({d1, d2, router});
  EXPECT_EQ(Filter(d1), kNoRoom) << "there is room for three, in no rack for two";
  EXPECT_EQ(Free("n1") + Free("n2") + Free("n3"), 3000) << "and nothing is held";
  EXPECT_EQ(StateOf(), "waiting");
  EXPECT_EQ(View().why,
            "never on these nodes: the pods of group decode ask for 2 GPUs in one rack, and the "
            "largest has 1");
  EXPECT_TRUE(View().never);
  Add(InRack("m2", "r2", 1));
  Pass(seconds(1));
  for (const APod& pod : {d1, d2, router}) Place(pod);
  EXPECT_EQ(bound_.size(), 3U);
  EXPECT_EQ(Free("n2") + Free("m2"), 0);
  for (const APod& pod : {d1, d2, router}) waiting_.Remove(pod.Request().id.uid);
  // Beyond the minimum, later: with its part alone, whose rack is full.
  Arrive(d3);
  EXPECT_EQ(state_.Current()->names().Find(Filter(d3)), kNoNode);
  Add(InRack("l2", "r2", 1));
  EXPECT_EQ(Filter(d3), "l2");
  EXPECT_EQ(Filter(member("more", "router")).substr(0, 4), "l2 n") << "the others go anywhere";
}

// A CompositePodGroup: decode of two pods in one rack, prefill of one anywhere.
class TreeTest : public GangTableTest {
 protected:
  TreeTest() {
    groups_.Of(kNativeGroups).Reset({});
    groups_.Of(kCompositePodGroup).Reset({});
  }
  void PutGroups() {
    PodGroup decode{.namespace_name = "default", .name = "decode", .min_members = 2};
    decode.domain.required = 0;
    decode.parent = "llm";
    groups_.Of(kNativeGroups).Put(decode);
    groups_.Of(kNativeGroups)
        .Put({.namespace_name = "default", .name = "prefill", .parent = "llm"});
    groups_.Of(kCompositePodGroup)
        .Put({.namespace_name = "default", .name = "llm", .min_groups = 2});
  }
  [[nodiscard]] APod Of(const std::string& group, const std::string& name) const {
    return APod(name).Whole(1).Gang("kubernetes:default/" + group).ReadWith(groups_);
  }
};

TEST_F(TreeTest, StartsWholeOrNotWithADomainForAGroup) {
  PutGroups();
  Add(InRack("n1", "r1", 1));
  Add(InRack("n2", "r2", 1));
  Add(InRack("n3", "r3", 1));
  const APod d1 = Of("decode", "d1"), d2 = Of("decode", "d2"), p = Of("prefill", "p");
  Arrive({d1, d2});
  EXPECT_EQ(Filter(d1), kIncomplete);
  EXPECT_EQ(View().why, "2 of 3 pods exist; 1 of role prefill is missing");
  Arrive(p);
  EXPECT_EQ(Filter(d1), kNoRoom) << "no rack has room for two";
  EXPECT_EQ(View().why,
            "never on these nodes: the pods of group decode ask for 2 GPUs in one rack, and the "
            "largest has 1");
  Add(InRack("m2", "r2", 1));
  Pass(seconds(1));
  for (const APod& pod : {d1, d2, p}) Place(pod);
  EXPECT_EQ(bound_.size(), 3U);
  EXPECT_EQ(Free("n2") + Free("m2"), 0);
}

TEST_F(TreeTest, MayBeSeenAfterItsPods) {
  Add(InRack("n1", "r1", 4));
  const APod early = Of("decode", "d0");
  ShowBound(early, "n1", {0});
  Arrive({Of("decode", "d1"), Of("prefill", "p")});
  EXPECT_EQ(Filter(Of("decode", "d1")), Text(Reason::kGangUnknown));
  PutGroups();
  EXPECT_EQ(waiting_.Gangs().size(), 2U);
  Pass(Duration::zero());
  const GangId tree{"kubernetes", "default", "llm"};
  EXPECT_EQ(waiting_.Gangs(), std::vector<GangId>{tree});
  EXPECT_EQ(state_.GangSize(tree), 3U) << "the one that runs, and two that are planned";
  EXPECT_EQ(state_.GangSize({"kubernetes", "default", "decode"}), 0U);
  EXPECT_EQ(waiting_.Find("uid-d1")->pod->domain.required, std::size_t{0});
  for (const APod& pod : {Of("decode", "d1"), Of("prefill", "p")}) Place(pod);
  EXPECT_EQ(bound_.size(), 2U);
  EXPECT_EQ(Free("n1"), 1000);
}

TEST_F(TreeTest, IsWaitedForInWords) {
  Add(InRack("n1", "r1", 4));
  groups_.Of(kNativeGroups)
      .Put({.namespace_name = "default", .name = "decode", .min_members = 2, .parent = "llm"});
  const APod d1 = Of("decode", "d1");
  Arrive(d1);
  EXPECT_EQ(Filter(d1),
            "Berth has not seen CompositePodGroup llm with all of its groups yet, which sets how "
            "many pods must start together");
}

class LedGangTest : public GangTableTest {
 protected:
  static APod Led(const std::string& name, bool leads) {
    APod pod = Member(name, "llm");
    return pod.GangSize(1).Followers(2, leads);
  }
  const APod leader_ = Led("leader", true), w1_ = Led("w1", false), w2_ = Led("w2", false);
};

// LeaderWorkerSet with startupPolicy LeaderReady.
TEST_F(LedGangTest, ALeaderGoesOnlyWhereThereIsRoomForAllThatFollowIt) {
  Add(ANode("n").Gpus(2));
  Arrive(leader_);
  EXPECT_EQ(Filter(leader_), kNoRoom) << "one of its two followers would find none";
  EXPECT_EQ(Free("n"), 2000);
  Add(ANode("m").Gpus(1));
  Pass(seconds(1));
  Place(leader_);
  EXPECT_EQ(AnswerTo("leader"), "bound");
  waiting_.Remove("uid-leader");
  EXPECT_EQ(Filter(APod("other").Whole(1)), Text(Reason::kGpusBusy)) << "the room is kept";
  Pass(seconds(60));
  Arrive({w1_, w2_});
  Place(w1_);
  Place(w2_);
  EXPECT_EQ(bound_, (Names{"leader", "w1", "w2"}));
  EXPECT_EQ(Free("n") + Free("m"), 0);
}

TEST_F(LedGangTest, RoomForFollowersThatDoNotComeIsGivenBack) {
  Add(ANode("n").Gpus(3));
  Arrive(leader_);
  Place(leader_);
  ShowBound(leader_, "n", {0});
  EXPECT_EQ(Free("n"), 0);
  for (int i = 0; i < 62; ++i) Pass(seconds(10));
  EXPECT_EQ(Free("n"), 2000);
  Arrive(w1_);
  EXPECT_EQ(Filter(w1_), "n") << "as any pod";
}

// One pod with an annotation would else keep all that is idle.
TEST_F(LedGangTest, NoRoomIsKeptForMoreFollowersThanThereMayBe) {
  for (int i = 0; i < 160; ++i) Add(ANode("n" + std::to_string(i)).Gpus(8));
  APod leader = Member("leader", "llm").GangSize(1).Followers(256, true);
  Arrive(leader);
  Place(leader);
  EXPECT_EQ(AnswerTo("leader"), "bound");
  EXPECT_EQ(state_.Everything().pods.size(), 1U);
  leader = Member("leader", "other").GangSize(1).Followers(255, true);
  leader.Uid("uid-other");
  Arrive(leader);
  Place(leader);
  EXPECT_EQ(state_.Everything().pods.size(), 1U + 256U);
}

TEST_F(LedGangTest, FollowersOfANamespaceHaveAPartOfTheClusterKept) {
  for (int i = 0; i < 96; ++i) Add(ANode("n" + std::to_string(i)).Gpus(8));
  const auto lead = [](const std::string& name, const std::string& gang) {
    return APod(name).Whole(1).Gang("berth:" + gang).GangSize(1).Followers(255, true);
  };
  const auto kept = [this](std::size_t leaders) {
    return state_.Everything().pods.size() - leaders;
  };
  const APod first = lead("a", "x/a"), second = lead("b", "x/b"), third = lead("c", "y/c");
  Arrive(first);
  Place(first);
  EXPECT_EQ(AnswerTo("a"), "bound");
  EXPECT_EQ(kept(1), 192U) << "a quarter of 768";
  Arrive(second);
  Place(second);
  EXPECT_EQ(AnswerTo("b"), "bound");
  EXPECT_EQ(kept(2), 192U) << "of all its leaders";
  Arrive(third);
  Place(third);
  EXPECT_EQ(kept(3), 384U) << "others have a part of their own, and all together half";
  const APod fourth = lead("d", "z/d");
  Arrive(fourth);
  Place(fourth);
  EXPECT_EQ(kept(4), 384U);
  Delete(first);
  Pass(seconds(1));
  EXPECT_EQ(kept(3), 192U);
}

TEST_F(LedGangTest, RoomForFollowersGoesWithTheirLeader) {
  Add(ANode("n").Gpus(3));
  Arrive(leader_);
  Place(leader_);
  ShowBound(leader_, "n", {0});
  Delete(leader_);
  Pass(seconds(6));
  EXPECT_EQ(Free("n"), 3000);
}

TEST_F(LedGangTest, ALeaderThatIsNeverBoundKeepsNothing) {
  Add(ANode("n").Gpus(3));
  Arrive(leader_);
  EXPECT_EQ(Filter(leader_), "n");
  EXPECT_EQ(Free("n"), 0);
  Pass(seconds(51));
  EXPECT_EQ(Free("n"), 3000);
}

TEST_F(GangTableTest, AControllerThatMakesPodsOneByOneIsNamedWithTheCure) {
  Add(ANode("n").Gpus(8));
  PodRequest pod = a_.Request();
  pod.gang.one_by_one = OneByOne::kStatefulSet;
  waiting_.Put({.pod = std::make_shared<const PodRequest>(pod)});
  Pass(seconds(1));
  EXPECT_EQ(gangs_.Views(clock_.Now()).front().why,
            "1 of 3 pods exist; a StatefulSet creates its pods one by one: set "
            "podManagementPolicy: Parallel");
}

TEST_F(GangTableTest, GangsOfOtherConventionsArePodsLikeOthers) {
  Add(ANode("n").Gpus(4));
  EXPECT_EQ(Filter(APod("p").Whole(1).Gang("volcano:default/g").GangSize(3)), "n");
  EXPECT_EQ(Filter(APod("q").Whole(1).Gang("berth:default/g").GangSize(1)), "n");
}

// --- preemption of gangs that kube-scheduler takes at once

APod Native(const std::string& name, int size = 3) {
  return APod(name).Whole(1).Gang("kubernetes:default/native").GangSize(size).Priority(10);
}

TEST_F(GangTableTest, AfterPreemptionEachMemberGetsItsPlannedNode) {
  const Names all = {"m", "n", "o"};
  for (const std::string& name : all) {
    Add(ANode(name).Gpus(1));
    ShowBound(APod("low-" + name).Whole(1), name, {0});
  }
  const APod a = Native("a"), b = Native("b"), c = Native("c");
  Arrive({a, b, c});
  // It offers a node no more once it has given it to a member.
  Names offered = all, nodes;
  for (const APod& pod : {a, b, c}) {
    nodes.push_back(Filter(pod, offered));
    EXPECT_EQ(std::erase(offered, nodes.back()), 1U) << nodes.back();
  }
  Names again;
  for (const APod& pod : {a, b, c}) again.push_back(Filter(pod, all));
  EXPECT_EQ(again, nodes) << "where it was told once, and others are evicted";
  for (const std::string& name : all) Delete(APod("low-" + name));
  Pass(seconds(1));
  for (std::size_t i = 0; i < 3; ++i) Bind(i == 0 ? a : i == 1 ? b : c, nodes[i]);
  EXPECT_EQ(bound_.size(), 3U);
}

TEST_F(GangTableTest, FreeGpusAreKeptOnceEnoughNodesAreKnown) {
  Add(ANode("k").Gpus(1));
  for (const std::string name : {"m", "n"}) {
    Add(ANode(name).Gpus(1));
    ShowBound(APod("low-" + name).Whole(1), name, {0});
  }
  const std::vector<APod> pods = {Native("a"), Native("b"), Native("c")};
  Arrive(pods);
  Names offered = {"k", "m", "n"};
  for (const APod& pod : pods) {
    EXPECT_EQ(Free("k"), 1000) << "it may not come to evictions";
    std::erase(offered, Filter(pod, offered));
  }
  EXPECT_EQ(offered, Names());
  EXPECT_EQ(Free("k"), 0);
  Pass(std::chrono::minutes(6));
  EXPECT_EQ(Free("k"), 1000) << "nobody was evicted";
}

TEST_F(GangTableTest, WhereNoPodsAreTakenAwayTooFewMembersGetNodes) {
  Add(ANode("m").Gpus(2));
  Add(ANode("n").Gpus(2));
  ShowBound(APod("low").Whole(2), "n", {0, 1});
  const APod a = Native("a"), b = Native("b"), c = Native("c");
  Arrive({a, b, c});
  int fitting = 0;
  for (const APod& pod : {a, b, c}) fitting += Filter(pod, {"m"}) == "m" ? 1 : 0;
  EXPECT_LT(fitting, 3);
}

TEST_F(GangTableTest, NobodyIsEvictedForANativeGangThatStillWouldNotFit) {
  for (const std::string name : {"m", "n"}) {
    Add(ANode(name).Gpus(1));
    ShowBound(APod("low-" + name).Whole(1), name, {0});
  }
  Arrive({Native("a"), Native("b"), Native("c")});
  EXPECT_EQ(Filter(Native("a"), {"m", "n"}), kNoRoom);
}

TEST_F(GangTableTest, AGangOfKubeSchedulersOwnThatMayNotPreemptWaits) {
  Add(ANode("n").Gpus(3));
  ShowBound(APod("low").Whole(3), "n", {0, 1, 2});
  const APod first = Native("a").NeverPreempts();
  Arrive({first, Native("b").NeverPreempts(), Native("c").NeverPreempts()});
  EXPECT_EQ(Filter(first, {"n"}), kNoRoom);
}

TEST_F(GangTableTest, OtherGangsAreNotToldOfNodesWhoseGpusAreTaken) {
  Add(ANode("n").Gpus(3));
  ShowBound(APod("low").Whole(3), "n", {0, 1, 2});
  const APod a = Member("a").Priority(10);
  Arrive({a, Member("b").Priority(10), Member("c").Priority(10)});
  EXPECT_EQ(Filter(a, {"n"}), kNoRoom);
}

TEST_F(GangTableTest, ABindMayComeBeforeWeHearThatTheEvictedHaveEnded) {
  Add(ANode("n").Gpus(3));
  ShowBound(APod("low").Whole(3), "n", {0, 1, 2});
  const std::vector<APod> pods = {Native("a"), Native("b"), Native("c")};
  Arrive(pods);
  for (const APod& pod : pods) EXPECT_EQ(Filter(pod, {"n"}), "n");
  Bind(pods[0], "n");
  EXPECT_EQ(AnswerTo("a"), "") << "answered late: kube-scheduler tries again at once";
  Pass(seconds(1));
  EXPECT_EQ(AnswerTo("a"), "the pod's gang has no placement plan now");
  Delete(APod("low"));
  for (const APod& pod : pods) Bind(pod, "n");
  EXPECT_EQ(bound_.size(), 3U);
}

TEST_F(GangTableTest, AMemberWithoutGpusIsPlannedWithANativeGang) {
  Add(ANode("n").Gpus(2));
  const APod a = Native("a"), b = Native("b");
  const APod driver = APod("driver").Cpu(1).Gang("kubernetes:default/native").GangSize(3);
  Arrive({a, b, driver});
  for (const APod& pod : {driver, a, b}) EXPECT_EQ(Filter(pod), "n");
  Bind(driver, "n");
  EXPECT_EQ(bound_, Names()) << "it is no use without the others";
  for (const APod& pod : {a, b}) Bind(pod, "n");
  EXPECT_EQ(bound_.size(), 3U);
}

TEST_F(GangTableTest, PodsOfNativeGroupsThatMayStartAlonePreempt) {
  Add(ANode("n").Gpus(2));
  ShowBound(APod("low").Whole(2), "n", {0, 1});
  EXPECT_EQ(Filter(Native("a", 1), {"n"}), "n");
  EXPECT_EQ(Filter(Native("a", 1).NeverPreempts(), {"n"}), Text(Reason::kGpusHeld));
  EXPECT_EQ(Filter(Native("a", 1).Priority(0), {"n"}), Text(Reason::kGpusHeld));
}

}  // namespace
}  // namespace berth::test::gang_table_test
