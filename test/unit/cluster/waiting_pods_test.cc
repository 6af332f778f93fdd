// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/waiting_pods.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "test/support/builders.h"

namespace berth::test::waiting_pods_test {
namespace {

using Names = std::vector<std::string>;

WaitingPod Waiting(const APod& pod, bool unschedulable = true) {
  return {.pod = std::make_shared<const PodRequest>(pod.Request()), .unschedulable = unschedulable};
}
WaitingPod Gated(const APod& pod) {
  return {.pod = std::make_shared<const PodRequest>(pod.Request()),
          .held_back = "scheduling gates hold it back"};
}
WaitingPod OfScheduler(const APod& pod, const std::string& scheduler) {
  PodRequest request = pod.Request();
  request.scheduler = scheduler;
  return {.pod = std::make_shared<const PodRequest>(std::move(request))};
}
APod Member(const std::string& name) { return APod(name).Whole(1).Gang("ns/g"); }

class WaitingPodsTest : public ::testing::Test {
 protected:
  [[nodiscard]] Names ForMig() const {
    Names names;
    for (const auto& pod : waiting_.Current()) names.push_back(pod->id.name);
    return names;
  }
  [[nodiscard]] Names Members() const {
    Names names;
    for (const WaitingPod& member : waiting_.WaitingMembers(kGang)) {
      names.push_back(member.pod->id.name);
    }
    return names;
  }

  const GangId kGang = GangId::Of("ns/g");
  Names arrived_;
  WaitingPods waiting_{[this](const WaitingPods::Pods& pods) {
    for (const auto& pod : pods) arrived_.push_back(pod->id.uid);
  }};
};

TEST_F(WaitingPodsTest, OfKubeSchedulersPodsThoseWithClaimsAreKept) {
  waiting_.Put(Waiting(APod("claiming").Claims({"c"}).Priority(7)));
  waiting_.Put(Waiting(APod("plain")));
  waiting_.Put(Waiting(APod("both").Claims({"c"}).Whole(1)));
  ASSERT_EQ(waiting_.Claiming().size(), 1u);
  EXPECT_EQ(waiting_.Claiming()[0].pod->priority, 7);
  EXPECT_TRUE(waiting_.Claiming()[0].unschedulable);
  EXPECT_EQ(waiting_.Everybody().size(), 1u);
  EXPECT_FALSE(waiting_.Find("uid-claiming"));
  ASSERT_TRUE(waiting_.FindOther("default", "claiming"));
  EXPECT_EQ(waiting_.FindOther("default", "claiming")->pod->priority, 0) << "its name alone";
  ASSERT_TRUE(waiting_.FindClaiming("uid-claiming"));
  EXPECT_FALSE(waiting_.FindClaiming("uid-both"));
  waiting_.Put(Waiting(APod("claiming").Claims({"c"}).Priority(8)));
  EXPECT_EQ(waiting_.FindClaiming("uid-claiming")->pod->priority, 8);
  waiting_.Remove("uid-claiming");
  waiting_.Remove("uid-plain");
  waiting_.Remove("uid-both");
  EXPECT_TRUE(waiting_.Claiming().empty());
  EXPECT_EQ(waiting_.bytes(), 0u);
}

TEST_F(WaitingPodsTest, WhatClaimingPodsAskForIsKeptAsLongAsThereIsRoom) {
  WaitingPods small({}, 6'000);
  for (int i = 0; i < 100; ++i) {
    small.Put(Waiting(APod("p" + std::to_string(i)).Claims({std::string(200, 'c')})));
  }
  EXPECT_LT(small.Claiming().size(), 50u);
  EXPECT_GT(small.Claiming().size(), 0u);
  EXPECT_TRUE(small.FindOther("default", "p99"));
}

TEST_F(WaitingPodsTest, APodIsFoundByItsNameTheOneThatCameLastFirst) {
  waiting_.Put(Waiting(APod("p").Whole(1)));
  waiting_.Put(Waiting(APod("p").Uid("uid-next").Whole(2)));
  waiting_.Put(Waiting(APod("plain")));
  ASSERT_TRUE(waiting_.FindNamed("default", "p"));
  EXPECT_EQ(waiting_.FindNamed("default", "p")->pod->id.uid, "uid-next");
  waiting_.Remove("uid-next");
  EXPECT_EQ(waiting_.FindNamed("default", "p")->pod->id.uid, "uid-p");
  EXPECT_FALSE(waiting_.FindNamed("other", "p"));
  EXPECT_FALSE(waiting_.FindNamed("default", "plain")) << "it asks for nothing of ours";
}

TEST_F(WaitingPodsTest, APodThatIsSchedulersAloneIsFoundByItsNameAndScheduler) {
  waiting_.Put(OfScheduler(APod("plain"), "other-scheduler"));
  waiting_.Put(Waiting(APod("ours").Whole(1)));
  const auto other = waiting_.FindOther("default", "plain");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->pod->id.uid, "uid-plain");
  EXPECT_EQ(other->pod->scheduler, "other-scheduler");
  EXPECT_FALSE(waiting_.FindOther("default", "ours"));
  EXPECT_FALSE(waiting_.FindOther("other", "plain"));
  waiting_.Remove("uid-plain");
  EXPECT_FALSE(waiting_.FindOther("default", "plain"));
}

TEST_F(WaitingPodsTest, WhatKubeSchedulerSaidIsKeptAndCounted) {
  for (const APod& pod : {APod("p").Whole(1), APod("plain")}) {
    WaitingPod waiting = Waiting(pod);
    waiting_.Put(waiting);
    const std::size_t before = waiting_.bytes();
    waiting.scheduler_said = std::string(700, 'x');
    waiting_.Put(waiting);
    EXPECT_EQ(waiting_.bytes(), before + 700);
  }
  EXPECT_EQ(waiting_.Find("uid-p")->scheduler_said.size(), 700u);
  EXPECT_EQ(waiting_.FindOther("default", "plain")->scheduler_said.size(), 700u);
  waiting_.Remove("uid-p");
  waiting_.Remove("uid-plain");
  EXPECT_EQ(waiting_.bytes(), 0u);
}

TEST_F(WaitingPodsTest, APodIsFoundByItsUid) {
  waiting_.Put(Waiting(APod("p").Whole(1)));
  waiting_.Put(Waiting(APod("p").Uid("uid-next").Whole(2)));
  waiting_.Put(Waiting(APod("plain")));
  ASSERT_TRUE(waiting_.Find("uid-p"));
  EXPECT_EQ(waiting_.Find("uid-p")->pod->shape.gpu_count(), 1);
  EXPECT_EQ(waiting_.Find("uid-next")->pod->shape.gpu_count(), 2);
  EXPECT_FALSE(waiting_.Find("uid-plain")) << "it asks for nothing of ours";
  EXPECT_FALSE(waiting_.Find("uid-unknown"));
}

TEST_F(WaitingPodsTest, APodThatIsRefusedIsKeptWhateverItAsksFor) {
  PodRequest pod = APod("p").Request();
  pod.refusal = "container main: want whole GPUs, got \"0.5\"";
  waiting_.Put({.pod = std::make_shared<const PodRequest>(pod)});
  ASSERT_TRUE(waiting_.FindNamed("default", "p"));
  EXPECT_EQ(waiting_.FindNamed("default", "p")->pod->refusal, pod.refusal);
}

TEST_F(WaitingPodsTest, EverybodyIsWhoAsksForGpusOrNamesAGangByName) {
  for (const APod& pod : {APod("b").Whole(1), APod("a").Share(100), Member("m"), APod("plain")}) {
    waiting_.Put(Waiting(pod));
  }
  Names names;
  for (const WaitingPod& pod : waiting_.Everybody()) names.push_back(pod.pod->id.name);
  EXPECT_EQ(names, (Names{"a", "b", "m"}));
}

TEST_F(WaitingPodsTest, ThoseWithMigDevicesWaitOnceNoNodeWillDo) {
  waiting_.Put(Waiting(APod("b").Mig("1g.5gb")));
  waiting_.Put(Waiting(APod("a").Mig("2g.10gb")));
  waiting_.Put(Waiting(APod("whole").Whole(1)));
  waiting_.Put(Waiting(APod("new").Mig("1g.5gb"), false));
  EXPECT_EQ(ForMig(), (Names{"a", "b"}));
  waiting_.Put(Waiting(APod("a").Mig("2g.10gb"), false));
  EXPECT_EQ(ForMig(), (Names{"b"}));
  waiting_.Remove("uid-other");
  waiting_.Remove("uid-b");
  EXPECT_EQ(ForMig(), (Names{}));
}

TEST_F(WaitingPodsTest, MembersThatNobodyMayPlaceNowDoNotWait) {
  waiting_.Put(Waiting(Member("b"), false));
  waiting_.Put(Waiting(Member("a")));
  waiting_.Put(Gated(Member("gated")));
  waiting_.Put(OfScheduler(Member("other"), "other-scheduler"));
  waiting_.Put(Waiting(APod("single").Whole(1)));
  waiting_.Put(Waiting(APod("stranger").Whole(1).Gang("labels:ns/g")));
  waiting_.Put(Waiting(APod("neighbour").Whole(1).Gang("elsewhere/g")));
  EXPECT_EQ(Members(), (Names{"a", "b", "other"})) << "of any scheduler";
  waiting_.Put(Waiting(Member("gated"), false));
  EXPECT_EQ(Members(), (Names{"a", "b", "gated", "other"})) << "its gates are gone";
  waiting_.Remove("uid-a");
  EXPECT_EQ(Members(), (Names{"b", "gated", "other"}));
}

TEST_F(WaitingPodsTest, AMemberWithoutGpusWaitsToo) {
  waiting_.Put(Waiting(APod("launcher").Cpu(1).Gang("ns/g")));
  EXPECT_EQ(Members(), (Names{"launcher"}));
}

TEST_F(WaitingPodsTest, ChangesOfAGangAreCountedAndNothingElse) {
  EXPECT_EQ(waiting_.ChangesOf(kGang), 0U);
  waiting_.Put(Waiting(Member("a"), false));
  const std::uint64_t first = waiting_.ChangesOf(kGang);
  EXPECT_GT(first, 0U);
  waiting_.Put(Waiting(Member("a"), true));
  waiting_.Put(Waiting(APod("single").Whole(1)));
  waiting_.Put(Waiting(APod("cpu").Cpu(1)));
  EXPECT_EQ(waiting_.changes(), first) << "why it waits is no news";
  waiting_.Put(Gated(Member("b")));
  const std::uint64_t second = waiting_.ChangesOf(kGang);
  EXPECT_GT(second, first);
  waiting_.Put(Waiting(Member("b")));
  EXPECT_GT(waiting_.ChangesOf(kGang), second);
  EXPECT_EQ(waiting_.Gangs(), std::vector<GangId>{kGang});
  waiting_.Remove("uid-a");
  waiting_.Remove("uid-b");
  EXPECT_EQ(waiting_.ChangesOf(kGang), 0U);
  EXPECT_EQ(waiting_.Gangs(), std::vector<GangId>());
  const std::uint64_t last = waiting_.changes();
  waiting_.Put(Waiting(Member("c")));
  EXPECT_GT(waiting_.ChangesOf(kGang), last) << "no number comes twice";
}

TEST_F(WaitingPodsTest, AListRemovesPodsItDoesNotShowUnlessTheyCameMeanwhile) {
  waiting_.Put(Waiting(Member("old")));
  waiting_.Note(Member("asked").Request());
  waiting_.Put(Waiting(Member("stays")));
  const WaitingPods::Mark mark = waiting_.Here();
  waiting_.Note(Member("meanwhile").Request());
  waiting_.RemoveUnless([](const std::string& uid) { return uid == "uid-stays"; }, mark);
  EXPECT_EQ(Members(), (Names{"meanwhile", "stays"}));
}

TEST_F(WaitingPodsTest, APodThatIsAskedAboutBeforeItIsShownWaits) {
  waiting_.Note(Member("a").Request());
  waiting_.Note(APod("cpu").Cpu(1).Request());
  EXPECT_EQ(Members(), (Names{"a"}));
  EXPECT_EQ(arrived_, Names{}) << "it may be a program that simulates";
  waiting_.Put(Gated(Member("a")));
  EXPECT_EQ(arrived_, (Names{"uid-a"}));
  waiting_.Note(Member("a").Request());
  EXPECT_EQ(Members(), Names{}) << "what is shown counts";
  waiting_.Remove("uid-a");
  waiting_.Note(Member("a").Request());
  EXPECT_EQ(Members(), Names{}) << "who asks now does not know yet that it is gone";
  waiting_.Put(Waiting(Member("a")));
  EXPECT_EQ(Members(), (Names{"a"})) << "a list has it";
}

TEST_F(WaitingPodsTest, WithoutAnApiServerWhoLeftMayComeAgain) {
  waiting_.Note(Member("a").Request());
  waiting_.Remove("uid-a");
  waiting_.Note(Member("a").Request());
  EXPECT_EQ(Members(), (Names{"a"}));
}

TEST_F(WaitingPodsTest, PodsThatNobodyHasShownAreBounded) {
  for (std::size_t i = 0; i <= WaitingPods::kMostAsked; ++i) {
    waiting_.Note(Member(std::to_string(i)).Request());
  }
  EXPECT_EQ(Members().size(), WaitingPods::kMostAsked);
  waiting_.Put(Waiting(Member("shown")));
  waiting_.Put(Waiting(Member("0")));
  waiting_.Note(Member("late").Request());
  EXPECT_EQ(Members().size(), WaitingPods::kMostAsked + 2);
}

TEST_F(WaitingPodsTest, EachPodArrivesOnce) {
  waiting_.Put(Waiting(APod("a").Mig("1g.5gb"), false));
  waiting_.Put(Waiting(APod("b").Whole(1)));
  EXPECT_EQ(arrived_, (Names{"uid-a", "uid-b"}));
  waiting_.Put(Waiting(APod("a").Mig("1g.5gb")));
  waiting_.Put(Waiting(APod("c").Cpu(1), false));
  waiting_.Put(Waiting(APod("c").Cpu(1)));
  EXPECT_EQ(arrived_, (Names{"uid-a", "uid-b", "uid-c"}));
}

TEST_F(WaitingPodsTest, ArrivalsCanBeHeldBack) {
  waiting_.HoldArrivalsBack();
  waiting_.Put(Waiting(APod("a").Whole(1)));
  waiting_.Put(Waiting(APod("b").Cpu(1)));
  waiting_.Put(Waiting(APod("a").Whole(1)));
  EXPECT_EQ(arrived_, Names{});
  waiting_.TellArrivals();
  EXPECT_EQ(arrived_, (Names{"uid-a", "uid-b"}));
  waiting_.Put(Waiting(APod("c").Whole(1)));
  EXPECT_EQ(arrived_, (Names{"uid-a", "uid-b", "uid-c"}));
}

WaitingPod Large(const std::string& name, std::size_t bytes, const std::string& gang = "") {
  PodRequest pod = APod(name).Whole(1).Gang(gang).Request();
  pod.labels = std::make_shared<const Labels>(Labels{{"k", std::string(bytes, 'x')}});
  return {.pod = std::make_shared<const PodRequest>(std::move(pod))};
}

constexpr std::size_t kMostBytes = 1'000'000;

TEST(WaitingPodsMemory, TheLargestAreKeptInOutlineAndTheOthersWhole) {
  WaitingPods waiting({}, kMostBytes);
  for (int i = 0; i < 100; ++i) {
    waiting.Put(Large("small-" + std::to_string(i), 1000));
    waiting.Put(Large("large-" + std::to_string(i), 200'000));
    EXPECT_LE(waiting.bytes(), kMostBytes);
  }
  EXPECT_EQ(waiting.Everybody().size(), 200u);
  int outlined = 0;
  for (const WaitingPod& pod : waiting.Everybody()) {
    const bool is_small = pod.pod->id.name.starts_with("small");
    EXPECT_EQ(pod.pod->shape.gpu_count(), 1);
    EXPECT_TRUE(!is_small || pod.pod->labels != nullptr) << pod.pod->id.name;
    if (pod.pod->labels != nullptr) continue;
    ++outlined;
    EXPECT_TRUE(pod.pod->refusal.starts_with("the pod is among the largest")) << pod.pod->refusal;
  }
  EXPECT_GE(outlined, 96);
  EXPECT_LT(outlined, 100);
  for (int i = 0; i < 100; ++i) {
    waiting.Remove("uid-small-" + std::to_string(i));
    waiting.Remove("uid-large-" + std::to_string(i));
  }
  EXPECT_EQ(waiting.bytes(), 0u);
}

TEST(WaitingPodsMemory, SmallOnesAreKeptWholeWhateverTheirNumber) {
  WaitingPods waiting({}, 10'000);
  for (int i = 0; i < 100; ++i) waiting.Put(Large("p-" + std::to_string(i), 1000));
  for (const WaitingPod& pod : waiting.Everybody()) EXPECT_NE(pod.pod->labels, nullptr);
}

// Anybody may create pods without GPUs, with a schedulerName of any length.
TEST(WaitingPodsMemory, PodsThatAreSchedulersAloneAreSmallWhateverTheirSchedulersName) {
  WaitingPods waiting({}, 10'000);
  for (int i = 0; i < 100; ++i) {
    waiting.Put(OfScheduler(APod("plain-" + std::to_string(i)), std::string(100'000, 's')));
  }
  EXPECT_LE(waiting.bytes(), 100 * WaitingPods::kSmallBytes);
  waiting.Put(Large("ours", 5000));
  EXPECT_TRUE(waiting.FindNamed("default", "ours"));
  ASSERT_TRUE(waiting.FindOther("default", "plain-99"));
  EXPECT_LE(waiting.FindOther("default", "plain-99")->pod->scheduler.size(),
            WaitingPods::kLongestScheduler);
}

TEST(WaitingPodsMemory, AChangeMakesOneWholeWhenThereIsRoomAgain) {
  WaitingPods waiting({}, kMostBytes);
  waiting.Put(Large("b", 500'000));
  waiting.Put(Large("a", 600'000));  // the larger one goes first
  EXPECT_EQ(waiting.FindNamed("default", "a")->pod->labels, nullptr);
  EXPECT_NE(waiting.FindNamed("default", "b")->pod->labels, nullptr);
  waiting.Put(Large("a", 600'000));
  EXPECT_EQ(waiting.FindNamed("default", "a")->pod->labels, nullptr);
  waiting.Remove("uid-b");
  waiting.Put(Large("a", 600'000));
  EXPECT_NE(waiting.FindNamed("default", "a")->pod->labels, nullptr);
  EXPECT_EQ(waiting.FindNamed("default", "a")->pod->refusal, "");
}

TEST(WaitingPodsMemory, AMemberInOutlineStaysInItsGangAndItsNewsIsNone) {
  WaitingPods waiting({}, kMostBytes);
  waiting.Put(Large("m", 600'000, "ns/g"));
  waiting.Put(Large("other", 590'000));
  const GangId gang = GangId::Of("ns/g");
  ASSERT_EQ(waiting.WaitingMembers(gang).size(), 1u);
  EXPECT_NE(waiting.WaitingMembers(gang).front().pod->refusal, "");
  const std::uint64_t changes = waiting.ChangesOf(gang);
  waiting.Put(Large("m", 600'000, "ns/g"));  // its status has changed, say
  EXPECT_EQ(waiting.ChangesOf(gang), changes);
  waiting.Remove("uid-m");
  EXPECT_TRUE(waiting.Gangs().empty());
}

TEST(WaitingPodsMemory, ArrivalsThatAreHeldBackAreSmallAndFew) {
  std::size_t arrived = 0;
  WaitingPods waiting([&arrived](const WaitingPods::Pods& pods) { arrived += pods.size(); },
                      kMostBytes);
  waiting.HoldArrivalsBack();
  for (int i = 0; i < 50; ++i) waiting.Put(Large("l-" + std::to_string(i), 200'000));
  for (int i = 0; i < 5; ++i) waiting.Put(Large("s-" + std::to_string(i), 1000));
  waiting.TellArrivals();
  EXPECT_EQ(arrived, 5u);
}

// What kube-scheduler says of a pod that it asks nobody about.
WaitingPod Lacking(
    const APod& pod, int created,
    const std::string& said = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.") {
  WaitingPod waiting = Waiting(pod);
  waiting.created = WallTime(std::chrono::seconds(created));
  waiting.scheduler_said = said;
  return waiting;
}

TEST_F(WaitingPodsTest, ThoseThatLackRoomAreInLine) {
  const auto line = [this](std::size_t most = 10, std::size_t of_namespace = 10) {
    Names names;
    for (const auto& [pod, created] : waiting_.LackingRoom(most, of_namespace)) {
      names.push_back(pod->id.name);
    }
    return names;
  };
  waiting_.Put(Lacking(APod("young").Whole(8), 9));
  waiting_.Put(Lacking(APod("old").Whole(2), 2));
  waiting_.Put(Lacking(APod("urgent").Whole(2).Priority(5), 10));
  EXPECT_EQ(line(), (Names{"urgent", "old", "young"}));
  EXPECT_EQ(line(2), (Names{"urgent", "old"}));
  EXPECT_EQ(waiting_.LackingRoom(2, 2)[1].created, WallTime(std::chrono::seconds(2)));
  waiting_.Put(Lacking(APod("other").Namespace("b").Whole(2), 20));
  EXPECT_EQ(line(3, 2), (Names{"urgent", "old", "other"}));
  waiting_.Remove("uid-other");

  waiting_.Put(Lacking(APod("old").Whole(2).Priority(9), 2));
  EXPECT_EQ(line(), (Names{"old", "urgent", "young"})) << "as it is shown last";
  waiting_.Remove("uid-old");
  waiting_.Put(Waiting(APod("urgent").Whole(2), false));
  EXPECT_EQ(line(), (Names{"young"})) << "and those that are gone, or not refused any more";
}

TEST_F(WaitingPodsTest, OnlyLargePodsThatLackRoomAreInLine) {
  waiting_.Put(Lacking(APod("one").Whole(1), 1));
  waiting_.Put(Lacking(APod("volume").Whole(2), 1, "0/1 nodes are available: unbound volumes."));
  waiting_.Put(Lacking(APod("zonal").Whole(2), 1,
                       "0/9 nodes are available: 1 Insufficient nvidia.com/gpu, 8 node(s) had "
                       "volume node affinity conflict."));
  waiting_.Put(Lacking(APod("none"), 1, "0/1 nodes are available: 1 Insufficient cpu."));
  waiting_.Put(Lacking(Member("member").Whole(2), 1));
  WaitingPod gated = Lacking(APod("gated").Whole(2), 1);
  gated.held_back = "scheduling gates hold it back";
  waiting_.Put(gated);
  PodRequest refused = APod("refused").Whole(2).Request();
  refused.refusal = "no";
  WaitingPod at_fault = Lacking(APod("refused").Whole(2), 1);
  at_fault.pod = std::make_shared<const PodRequest>(refused);
  waiting_.Put(at_fault);
  EXPECT_TRUE(waiting_.LackingRoom(10, 10).empty());
}

// --- The places of pods that end

constexpr WallTime kEnd{std::chrono::hours(1)};
const WallTime kAfter = kEnd + WaitingPods::kRemembersFor;

PodLife Ending(const std::string& replica_set = "") {
  return {.ends = kEnd, .replica_set = replica_set};
}
APod Replica(const std::string& name) { return APod(name).Whole(1).Controller("owner"); }

TEST_F(WaitingPodsTest, APodOfTheSameOwnerMayHaveThePlaceOfOneThatEnds) {
  waiting_.Ends(Replica("old").Request(), Ending(), "n1");
  waiting_.Ends(Replica("older").Request(), Ending(), "n1");
  waiting_.Ends(Replica("oldest").Request(), Ending(), "n2");
  waiting_.Ends(Replica("oldest").Request(), Ending(), "n2");
  waiting_.Put(Waiting(Replica("new")));
  waiting_.Put(Waiting(APod("foreign").Whole(1).Controller("other")));
  waiting_.Put(Waiting(APod("cpu").Controller("owner").Claims({"c"})));
  waiting_.Put(Waiting(APod("alone").Whole(1)));
  EXPECT_EQ(waiting_.FormerNodes("uid-new", kAfter), (Names{"n1", "n2"}));
  EXPECT_TRUE(waiting_.FormerNodes("uid-new", kAfter + std::chrono::seconds(1)).empty());
  for (const char* other : {"uid-foreign", "uid-cpu", "uid-alone", "uid-unknown"}) {
    EXPECT_TRUE(waiting_.FormerNodes(other, kEnd).empty()) << other;
  }
  waiting_.Replaces("uid-new", "n2");
  waiting_.Replaces("uid-new", "n3");
  EXPECT_EQ(waiting_.FormerNodes("uid-new", kAfter), Names{"n1"});
  waiting_.Replaces("uid-new", "n1");
  EXPECT_EQ(waiting_.FormerNodes("uid-new", kAfter), Names{"n1"}) << "two ended there";
}

TEST_F(WaitingPodsTest, ARolloutComesToThePlacesOfItsDeployment) {
  waiting_.Ends(Replica("old").Request(), Ending("llm-7d9f8c6b5"), "n1");
  waiting_.Ends(APod("b").Whole(1).Controller("b").Request(), Ending("llm-b-5c9f8c6b5"), "n2");
  WaitingPod next = Waiting(APod("new").Whole(1).Controller("another"));
  next.replica_set = "llm-5c6b9d8f4";
  waiting_.Put(next);
  EXPECT_EQ(waiting_.FormerNodes("uid-new", kEnd), Names{"n1"});
}

TEST_F(WaitingPodsTest, NobodyGoesBackToWhereAPodWasEvictedOrEndedWithItsWork) {
  PodLife evicted = Ending(), completes = Ending(), comes_back = Ending();
  evicted.evicted = completes.completes = comes_back.comes_back = true;
  waiting_.Ends(Replica("evicted").Request(), evicted, "n1");
  waiting_.Ends(Replica("completes").Request(), completes, "n1");
  waiting_.Ends(Replica("daemon").Request(), comes_back, "n1");
  waiting_.Ends(Replica("runs").Request(), {}, "n1");
  waiting_.Ends(Member("member").Controller("owner").Request(), Ending(), "n1");
  waiting_.Put(Waiting(Replica("new")));
  EXPECT_TRUE(waiting_.FormerNodes("uid-new", kEnd).empty());
}

TEST_F(WaitingPodsTest, OfPodsThatEndTheLastOfEachNamespaceAreRemembered) {
  waiting_.Ends(Replica("victim").Request(), Ending(), "n1");
  for (std::size_t i = 0; i < 2 * WaitingPods::kMostEnding; ++i) {
    PodRequest pod = Replica("pod-" + std::to_string(i)).Request();
    pod.id.namespace_name = "hostile";
    waiting_.Ends(pod, Ending(), std::to_string(i));
  }
  waiting_.Put(Waiting(Replica("new")));
  EXPECT_EQ(waiting_.FormerNodes("uid-new", kEnd), Names{"n1"});
  PodRequest hostile = Replica("hostile").Request();
  hostile.id.namespace_name = "hostile";
  waiting_.Put({.pod = std::make_shared<const PodRequest>(hostile)});
  const Names kept = waiting_.FormerNodes(hostile.id.uid, kEnd);
  ASSERT_EQ(kept.size(), WaitingPods::kMostEndingOfNamespace);
  EXPECT_EQ(kept.back(), std::to_string(2 * WaitingPods::kMostEnding - 1));
}

TEST_F(WaitingPodsTest, OfPodsThatEndTheLastAreRemembered) {
  waiting_.Put(Waiting(Replica("new")));
  const auto ends_elsewhere = [this](std::size_t i) {
    PodRequest pod = Replica("pod-" + std::to_string(i)).Request();
    pod.id.namespace_name = "ns-" + std::to_string(i % 16);
    waiting_.Ends(pod, Ending(), "n2");
  };
  waiting_.Ends(Replica("first").Request(), Ending(), "n1");
  std::size_t i = 1;
  for (; i < WaitingPods::kMostEnding; ++i) ends_elsewhere(i);
  EXPECT_EQ(waiting_.FormerNodes("uid-new", kEnd), Names{"n1"});
  ends_elsewhere(i);
  EXPECT_TRUE(waiting_.FormerNodes("uid-new", kEnd).empty());
}

}  // namespace
}  // namespace berth::test::waiting_pods_test
