// SPDX-License-Identifier: Apache-2.0
//
// What is kept for others that wait: no gang takes it, and a gang that was refused for it is
// planned once it is over, though no node has changed.
#include "test/unit/server/gang_world.h"

namespace berth::test::gang_ground_test {
namespace {

using namespace gang_world;  // NOLINT(google-build-using-namespace)

class GangGroundTest : public GangWorld {
 protected:
  static DeviceRoom RoomFor(const APod& pod, const std::string& node) {
    DeviceRoom room{.pod = pod.Request().id, .priority = pod.Request().priority, .node = node};
    room.gang = pod.Request().gang.id;
    return room;
  }
  // A gang that waits, and three nodes whose GPU is a pod's that it may evict.
  std::vector<APod> WantsNodesOfOthers() {
    for (const std::string name : {"l", "m", "n"}) {
      Add(ANode(name).Gpus(1));
      ShowBound(APod("low-" + name).Whole(1), name, {0});
    }
    std::vector<APod> pods;
    for (const char* name : {"a", "b", "c"}) pods.push_back(Member(name).Priority(10));
    Arrive(pods);
    return pods;
  }
};

TEST_F(GangGroundTest, WhatOthersWereEvictedForIsNoGangsOfLowerPriority) {
  Add(ANode("n").Gpus(3));
  const APod big = APod("big").Whole(8).Priority(1000);
  ASSERT_TRUE(rooms_.Put(RoomFor(big, "n")));
  Arrive({a_, b_, c_});
  EXPECT_EQ(Filter(a_), kNoRoom);
  Pass(seconds(1));
  EXPECT_EQ(Filter(a_), kNoRoom);
  EXPECT_EQ(Free("n"), 3000);
}

TEST_F(GangGroundTest, AGangThatWasRefusedForARoomIsPlannedWhenItIsDropped) {
  Add(ANode("n").Gpus(3));
  ASSERT_TRUE(rooms_.Put(RoomFor(APod("big").Whole(8).Priority(1000), "n")));
  Arrive({a_, b_, c_});
  EXPECT_EQ(Filter(a_), kNoRoom);
  Pass(seconds(1));
  waker_.names.clear();
  rooms_.Drop("n");
  Pass(seconds(1));
  EXPECT_EQ(StateOf(), "planned");
  EXPECT_EQ(waker_.names, Names{"a"});
  EXPECT_EQ(Filter(a_), "n");
}

TEST_F(GangGroundTest, ARoomIsOpenToTheGangThatItIsMadeForAndToAHigherPriority) {
  Add(ANode("n").Gpus(3));
  Add(ANode("m").Gpus(3));
  ASSERT_TRUE(rooms_.Put(RoomFor(a_, "n")));
  ASSERT_TRUE(rooms_.Put(RoomFor(APod("low").Whole(3).Priority(5), "m")));
  Arrive({a_, b_, c_});
  EXPECT_EQ(Filter(a_, {"n"}), "n");
  const auto high = [](const std::string& name) { return Member(name, "high").Priority(10); };
  Arrive({high("x"), high("y"), high("z")});
  EXPECT_EQ(Filter(high("x")), "m");
}

TEST_F(GangGroundTest, WhatComesFreeWhereOthersAreEvictedIsNotTakenFromARoom) {
  Add(ANode("n").Gpus(1));
  Add(ANode("m").Gpus(2));
  const auto member = [](const std::string& name) { return Member(name).Priority(5); };
  ShowBound(APod("low").Whole(1), "n", {0});
  Arrive({member("a"), member("b"), member("c")});
  EXPECT_NE(Filter(member("a")), "n");
  ASSERT_TRUE(rooms_.Put(RoomFor(APod("big").Whole(2).Priority(1000), "m")));
  Pass(seconds(2));
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(Preempt(member(name), {"n", "m"}), "");
  EXPECT_EQ(Free("m"), 2000);
}

TEST_F(GangGroundTest, AGangThatWasRefusedForAnEarmarkIsPlannedWhenItLapses) {
  extender_.Use({.engine = EngineOf("best-fit"),
                 .reservation_time = seconds(30),
                 .gangs = {{"berth"}, seconds(50)},
                 .earmarks = EarmarkLimits{100}});
  const auto look = [this](Duration time) {
    clock_.Advance(time);
    extender_.LookAtEarmarks();
    extender_.LookAtGangs();
  };
  Add(ANode("n").Gpus(8));
  const auto created = clock_.Wall();
  const APod old = APod("old").Whole(8), stuck = APod("stuck").Whole(8);
  ShowBound(old, "n", {0, 1, 2, 3, 4, 5, 6, 7});
  waiting_.Put({.pod = std::make_shared<const PodRequest>(stuck.Request()), .created = created});
  EXPECT_EQ(Filter(stuck), Text(Reason::kGpusHeld));
  Delete(old);
  look(seconds(1));
  for (const APod& pod : {a_, b_, c_}) {
    waiting_.Put({.pod = std::make_shared<const PodRequest>(pod.Request()),
                  .created = created + seconds(60)});
  }
  EXPECT_EQ(Filter(a_), kNoRoom) << "the room is kept for the pod that waits longer";
  for (int second = 0; second < 70 && StateOf() != "planned"; ++second) look(seconds(1));
  EXPECT_EQ(StateOf(), "planned") << "it has not come within a minute, and no node has changed";
}

// Each member alone fits beside what is kept for the pod that waits longer.
TEST_F(GangGroundTest, TheMembersOfAGangTogetherLeaveWhatIsKept) {
  extender_.Use({.engine = EngineOf("best-fit"),
                 .reservation_time = seconds(30),
                 .gangs = {{"berth"}, seconds(50)},
                 .earmarks = EarmarkLimits{100}});
  Add(ANode("n").Gpus(4));
  const auto created = clock_.Wall();
  const APod old = APod("old").Whole(4), waits = APod("waits").Whole(2);
  ShowBound(old, "n", {0, 1, 2, 3});
  waiting_.Put({.pod = std::make_shared<const PodRequest>(waits.Request()), .created = created});
  EXPECT_EQ(Filter(waits), Text(Reason::kGpusHeld));
  Delete(old);
  clock_.Advance(seconds(1));
  extender_.LookAtEarmarks();
  for (const APod& pod : {a_, b_, c_}) {
    waiting_.Put({.pod = std::make_shared<const PodRequest>(pod.Request()),
                  .created = created + seconds(60)});
  }
  EXPECT_EQ(Filter(a_), kNoRoom);
  Add(ANode("m").Gpus(1));
  extender_.LookAtEarmarks();
  Pass(seconds(1));
  EXPECT_EQ(StateOf(), "planned") << "two beside it, and one on the other node";
  EXPECT_EQ(Free("n"), 2000);
}

TEST_F(GangGroundTest, ANodeThatOthersLeaveForAGangIsKeptUntilItsMemberIsPlanned) {
  const auto member = [](const std::string& name) { return Member(name).Priority(5); };
  for (const std::string name : {"m", "n"}) Add(ANode(name).Gpus(2));
  ShowBound(APod("low").Whole(2), "m", {0, 1});
  ShowBound(APod("low-n").Whole(1), "n", {0});
  Arrive({member("a"), member("b"), member("c")});
  Names evicted;
  for (const char* name : {"a", "b", "c"}) evicted.push_back(Preempt(member(name), {"m"}));
  ASSERT_GT(std::ranges::count(evicted, "m: low"), 0);
  Delete(APod("low"));  // before anybody has looked
  const APod same = APod("same").Whole(1).Priority(5), more = APod("more").Whole(1).Priority(6);
  EXPECT_EQ(Filter(same, {"m"}), Text(Reason::kKeptForWaiting));
  EXPECT_EQ(Filter(more, {"m"}), "m");
  Pass(seconds(1));
  EXPECT_EQ(Free("m"), 0) << "planned";
  EXPECT_EQ(rooms_.Kept(), nullptr);
  extender_.LetGoOfGangs({Errc::kUnavailable, "another one leads"});
  EXPECT_EQ(Filter(same, {"m"}), "m");
}

TEST_F(GangGroundTest, NoNamespaceHasMoreThanHalfOfTheNodesThatAreKeptForGangs) {
  const auto nodes = [](const std::string& prefix, std::size_t count) {
    KeptNodes kept;
    for (std::size_t i = 0; i < count; ++i) kept.try_emplace(prefix + std::to_string(i));
    return kept;
  };
  const auto gang = [](const std::string& space, const std::string& name) {
    return GangId{"berth", space, name};
  };
  constexpr std::size_t kHalf = DeviceRooms::kMostCleared / 2;
  rooms_.KeepFor(gang("greedy", "first"), nodes("a", kHalf));
  rooms_.KeepFor(gang("greedy", "more"), nodes("b", 1));
  EXPECT_EQ(rooms_.Kept()->size(), kHalf);
  rooms_.KeepFor(gang("other", "small"), nodes("c", 8));
  EXPECT_EQ(rooms_.Kept()->size(), kHalf + 8);
  const std::uint64_t opened = rooms_.openings();
  rooms_.KeepFor(gang("greedy", "first"), nodes("a", kHalf + 1));
  EXPECT_EQ(rooms_.Kept()->size(), 8U) << "too many by now";
  EXPECT_EQ(rooms_.openings(), opened + 1) << "who was kept out is to hear of it";
}

// The grace period of pods is 30 s where nobody says another.
TEST_F(GangGroundTest, WhatIsFreeAfterALongGracePeriodIsStillKeptForTheGang) {
  const auto member = [](const std::string& name) { return Member(name).Priority(5); };
  for (const std::string name : {"l", "m", "n"}) {
    Add(ANode(name).Gpus(1));
    ShowBound(APod("low-" + name).Whole(1), name, {0});
  }
  Arrive({member("a"), member("b"), member("c")});
  for (const char* name : {"a", "b", "c"}) Preempt(member(name), {"l", "m", "n"});
  for (const std::string name : {"l", "m", "n"}) {
    ShowBound(APod("low-" + name).Whole(1), name, {0}, true);
  }
  for (int second = 0; second < 40; ++second) Pass(seconds(1));
  for (const std::string name : {"l", "m", "n"}) Delete(APod("low-" + name));
  EXPECT_EQ(Filter(APod("same").Whole(1).Priority(5), {"m"}), Text(Reason::kKeptForWaiting));
  Pass(seconds(1));
  for (const std::string name : {"l", "m", "n"}) EXPECT_EQ(Free(name), 0) << name;
}

// Its own count has room there: it names no victims on the node, and the gang would never be whole.
TEST_F(GangGroundTest, NobodyIsEvictedForAGangWithAMemberForWhichKubeSchedulerEvictsNobody) {
  const auto member = [](const std::string& name) { return Member(name).Priority(5); };
  for (const std::string name : {"m", "n"}) {
    Add(ANode(name).Gpus(1));
    ShowBound(APod("low-" + name).Whole(1), name, {0});
  }
  Add(ANode("o").Gpus(2).Unhealthy(1));
  ShowBound(APod("low-o").Whole(1), "o", {0});
  Arrive({member("a"), member("b"), member("c")});
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(Preempt(member(name), {"m", "n", "o"}), "");
  Add(ANode("o").Gpus(1));
  Pass(seconds(2));
  EXPECT_NE(Preempt(member("a"), {"m", "n", "o"}), "");
}

TEST_F(GangGroundTest, AGangIsNotPlannedAgainWhileNothingIsAnother) {
  Add(ANode("n").Gpus(2));
  ASSERT_TRUE(rooms_.Put(RoomFor(APod("big").Whole(8).Priority(1000), "n")));
  Arrive({a_, b_, c_});
  EXPECT_EQ(Filter(a_), kNoRoom);
  rooms_.Drop("n");
  Pass(seconds(1));
  const std::size_t said = sink_.texts.size();
  for (int i = 0; i < 20; ++i) Pass(seconds(1));
  EXPECT_EQ(sink_.texts.size(), said);
  EXPECT_EQ(StateOf(), "waiting");
}

TEST_F(GangGroundTest, AGangThatCanNeverStartIsToldSoAndPlannedOnceAMinute) {
  Add(ANode("n").Gpus(8).Model("A100"));
  Add(ANode("m").Gpus(8).Model("T4"));
  const auto member = [](const std::string& name) {
    return Member(name).Whole(4).Models({"A100"});
  };
  Arrive({member("a"), member("b"), member("c")});
  EXPECT_EQ(Filter(member("a")), kNoRoom);
  const auto why = [this] { return View().why; };
  EXPECT_NE(why().find("never on these nodes: its pods ask for 12 GPUs of A100, and the nodes "
                       "that they accept have 8"),
            std::string::npos)
      << why();
  for (int cpus = 64; cpus < 76; ++cpus) {  // something changes all the time
    Add(ANode("m").Gpus(8).Model("T4").Cpu(cpus));
    Pass(seconds(61));
  }
  Add(ANode("m").Gpus(16).Model("A100"));  // the same node is another one
  Pass(seconds(2));
  EXPECT_EQ(StateOf(), "waiting") << "no node has come";
  Pass(seconds(60));
  EXPECT_EQ(StateOf(), "planned");
}

TEST_F(GangGroundTest, AHopelessGangIsPlannedAtOnceWhenANodeComes) {
  Add(ANode("n").Gpus(2));
  Arrive({a_, b_, c_});
  EXPECT_EQ(Filter(a_), kNoRoom);
  Add(ANode("m").Gpus(1));
  Pass(milliseconds(300));
  EXPECT_EQ(StateOf(), "planned");
}

TEST_F(GangGroundTest, TheMemberThatNoNodeAcceptsIsNamed) {
  Add(ANode("n").Gpus(8));
  NodeConstraints there;
  there.selector = {{"kubernetes.io/hostname", LabelOperator::kIn, {"gone"}}};
  const APod c = Member("c").Constrained(there);
  Arrive({a_, b_, c});
  EXPECT_EQ(Filter(a_), kNoRoom);
  const GangView view = View();
  EXPECT_EQ(view.lacks, "c");
  EXPECT_NE(
      view.why.find("never while no node accepts c: no node is in kubernetes.io/hostname=gone"),
      std::string::npos)
      << view.why;
}

TEST_F(GangGroundTest, NobodyIsEvictedForAGangThatIsNotPlannedForAWhile) {
  Add(ANode("n").Gpus(3));
  const auto member = [](const std::string& name) { return Member(name).Priority(5); };
  ArriveUnschedulable({member("a"), member("b"), member("c")});
  Pass(seconds(1));
  ASSERT_EQ(StateOf(), "planned");
  Pass(seconds(51));
  ASSERT_EQ(StateOf(), "waiting") << "kube-scheduler did not bring them";
  ShowBound(APod("low").Whole(3), "n", {0, 1, 2});
  EXPECT_EQ(Preempt(member("a"), {"n"}), "");
  Pass(seconds(51));
  EXPECT_EQ(Preempt(member("a"), {"n"}), "n: low");
}

TEST_F(GangGroundTest, NobodyIsEvictedForAGangThatLacksAnotherDeviceEvenSo) {
  const auto add = [this](const std::string& name, std::int64_t nics) {
    Add(ANode(name).Gpus(1).Counts(110, {{"rdma/hca", nics}}));
  };
  for (const std::string name : {"m", "n", "o"}) {
    add(name, name == "o" ? 0 : 1);
    ShowBound(APod("low-" + name).Whole(1), name, {0});
  }
  const auto member = [](const std::string& name) {
    return Member(name).Priority(5).Others({{"rdma/hca", 1}});
  };
  Arrive({member("a"), member("b"), member("c")});
  EXPECT_EQ(Filter(member("a")), kNoRoom);
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(Preempt(member(name), {"m", "n", "o"}), "");
  add("o", 1);
  Pass(seconds(2));
  EXPECT_NE(Preempt(member("a"), {"m", "n", "o"}), "");
}

TEST_F(GangGroundTest, TheMemberThatNoNodeTakesNowIsNamedWithItsReason) {
  Add(ANode("n").Gpus(4));
  Add(ANode("m").Gpus(8));
  ShowBound(APod("single").Whole(8), "m", {0, 1, 2, 3, 4, 5, 6, 7});
  const APod c = Member("c").Whole(8);
  Arrive({a_, b_, c});
  EXPECT_EQ(Filter(a_), kNoRoom);
  const GangView view = View();
  EXPECT_EQ(view.lacks, "c");
  EXPECT_FALSE(view.never);
  EXPECT_TRUE(view.why.starts_with("c fits no node now: 1 node had too few idle GPUs; needs room "))
      << view.why;
}

// Filter finds out why there is no plan for nobody: others wait for the lock.
TEST_F(GangGroundTest, WhyThereIsNoPlanIsFoundLaterAndCountsIfThereIsStillNone) {
  Add(ANode("n").Gpus(2));
  Arrive({a_, b_, c_});
  EXPECT_EQ(Filter(a_), kNoRoom);
  const std::string room = "needs room for 3 pods with 1 GPU each, has room for 2";
  EXPECT_EQ(gangs_.Views(clock_.Now())[0].why, room);
  EXPECT_EQ(sink_.texts, Names()) << "nor is it told yet";
  const std::string why =
      "never on these nodes: its pods ask for 3 GPUs, and the nodes that they accept have 2; ";
  EXPECT_EQ(View().why, why + room);
  EXPECT_TRUE(View().never);
  EXPECT_EQ(sink_.texts, Names{why + room});
  // The same with a node that comes before anybody has looked.
  Add(ANode("m").Gpus(1));
  clock_.Advance(seconds(1));
  EXPECT_NE(Filter(a_), kNoRoom);
  EXPECT_EQ(View().why, "");
  EXPECT_FALSE(View().never);
  EXPECT_EQ(View().state, "planned");
}

TEST_F(GangGroundTest, TheTaintThatKeepsAllMembersOffComesFirst) {
  Add(ANode("n").Gpus(4).Tainted("gpu", "a100"));
  Arrive({a_, b_, c_});
  EXPECT_EQ(Filter(a_), kNoRoom);
  const std::string why = View().why;
  EXPECT_TRUE(why.starts_with("a fits no node now: 1 node has taint gpu=a100:NoSchedule; needs "))
      << why;
}

TEST_F(GangGroundTest, ThePoolAndTheModelThatAreTooSmallForAGangAreNamed) {
  Add(ANode("n").Gpus(2).Model("H100").Labelled({{"pool", "train"}}));
  Add(ANode("m").Gpus(8).Model("H100").Labelled({{"pool", "serve"}}));
  NodeConstraints there;
  there.selector = {{"pool", LabelOperator::kIn, {"train"}}};
  const auto member = [&](const std::string& name) {
    return Member(name).Models({"H100"}).Constrained(there);
  };
  Arrive({member("a"), member("b"), member("c")});
  EXPECT_EQ(Filter(member("a")), kNoRoom);
  const GangView view = View();
  EXPECT_TRUE(view.never);
  EXPECT_TRUE(
      view.why.starts_with("never on these nodes: its pods ask for 3 GPUs of H100, and the "
                           "nodes in pool=train that they accept have 2"))
      << view.why;
}

NodeConstraints InPool(const std::string& pool) {
  NodeConstraints there;
  there.selector = {{"pool", LabelOperator::kIn, {pool}}};
  return there;
}

// What other pools have against a pod is no cause: it does not want them.
TEST_F(GangGroundTest, NoTaintOfAPoolThatTheMembersDoNotSelectIsNamed) {
  Add(ANode("n").Gpus(4).Labelled({{"pool", "train"}}).Tainted("gpu", "x"));
  for (const char* name : {"o", "p", "q"}) {
    Add(ANode(name).Gpus(4).Labelled({{"pool", "serve"}}).Tainted("serve", "y"));
  }
  const auto member = [](const std::string& name, const std::string& pool) {
    return Member(name, pool).Constrained(InPool(pool));
  };
  for (const char* name : {"a", "b", "c"}) Arrive(member(name, "train"));
  EXPECT_EQ(Filter(member("a", "train")), kNoRoom);
  EXPECT_TRUE(View().why.starts_with("a fits no node now: 1 node has taint gpu=x:NoSchedule"))
      << View().why;
  Delete(a_), Delete(b_), Delete(c_);
  for (const char* name : {"x", "y", "z"}) Arrive(member(name, "trian"));
  EXPECT_EQ(Filter(member("x", "trian")), kNoRoom);
  EXPECT_TRUE(View().why.starts_with("never while no node accepts x: no node is in pool=trian"))
      << View().why << ": a toleration would not help";
}

TEST_F(GangGroundTest, ALauncherWithoutGpusDoesNotHideWhatTheWorkersLack) {
  Add(ANode("n").Gpus(1).Labelled({{"pool", "train"}}));
  Add(ANode("o").Gpus(0));
  const auto worker = [](const std::string& name) {
    return Member(name).Constrained(InPool("train"));
  };
  Arrive({worker("a"), worker("b"), APod("launcher").Gang("berth:default/train").GangSize(3)});
  EXPECT_EQ(Filter(worker("a")), kNoRoom);
  EXPECT_TRUE(View().never);
  EXPECT_TRUE(View().why.starts_with(
      "never on these nodes: its pods ask for 2 GPUs, and the nodes in pool=train that they "
      "accept have 1"))
      << View().why;
}

TEST_F(GangGroundTest, GpusOfSeveralSizesAreCountedAsTheyFit) {
  const std::vector<int> all = {0, 1, 2, 3, 4, 5, 6, 7};
  for (const std::string name : {"m", "n", "o"}) {
    Add(ANode(name).Gpus(8));
    ShowBound(APod("low-" + name).Whole(8), name, all);
  }
  Arrive({Member("a").Whole(3), Member("b").Whole(8), Member("c").Whole(8)});
  EXPECT_EQ(Filter(Member("a").Whole(3)), kNoRoom);
  EXPECT_FALSE(View().never) << "they fit once others end: " << View().why;
}

TEST_F(GangGroundTest, AMemberThatIsEndingIsNotCountedAsStaying) {
  Add(ANode("n").Gpus(2));
  Add(ANode("m").Gpus(1));
  ShowBound(Member("old").Whole(2), "n", {0, 1}, true);
  Arrive({a_, b_, c_});
  EXPECT_EQ(Filter(a_), kNoRoom);
  EXPECT_FALSE(View().never) << View().why;
}

TEST_F(GangGroundTest, AConditionOfANodeIsNamedAsTheCause) {
  Add(ANode("n").Gpus(2).Tainted("node.kubernetes.io/disk-pressure"));
  Add(ANode("m").Gpus(1));
  Arrive({a_, b_, c_});
  EXPECT_EQ(Filter(a_), kNoRoom);
  EXPECT_TRUE(View().why.starts_with(
      "its pods ask for 3 GPUs, and the nodes open to them have 1; 1 node has taint "
      "node.kubernetes.io/disk-pressure:NoSchedule"))
      << View().why;
  Add(ANode("n").Gpus(2).NotReady().Tainted("node.kubernetes.io/not-ready"));
  Pass(seconds(61));
  EXPECT_NE(View().why.find("have 1; 1 node not ready"), std::string::npos) << View().why;
}

// A controller may write minimums of roles, and no roles on its pods.
TEST_F(GangGroundTest, PodsThatSayNoRoleStartAllTogether) {
  Add(ANode("n").Gpus(3));
  const auto member = [](const std::string& name) {
    return Member(name).Role("", {{"prefill", 1}, {"decode", 2}});
  };
  Arrive({member("a"), member("b"), member("c")});
  EXPECT_EQ(Filter(member("a")), "n");
}

TEST_F(GangGroundTest, WhatMembersLackBesideEachOtherIsNamed) {
  Add(ANode("n").Gpus(8).Cpu(6));
  const auto member = [](const std::string& name) { return Member(name).Cpu(3); };
  Arrive({member("a"), member("b"), member("c")});
  EXPECT_EQ(Filter(member("a")), kNoRoom);
  EXPECT_EQ(View().why,
            "a fits no node beside the others: 1 node had too little free CPU; needs room for 3 "
            "pods with 1 GPU each, has room for 2");
  EXPECT_FALSE(View().never);
}

// The GPUs of one node are the gang's own, and the other has idle ones without CPU.
TEST_F(GangGroundTest, WhatANodeLacksIsNotHiddenByGpusThatTheMembersHaveThemselves) {
  Add(ANode("m").Gpus(2).Cpu(4));
  ShowBound(APod("beside").Cpu(2), "m", {});
  Add(ANode("n").Gpus(2).Cpu(6));
  const auto member = [](const std::string& name) { return Member(name).Cpu(3); };
  Arrive({member("a"), member("b"), member("c")});
  EXPECT_EQ(Filter(member("a")), kNoRoom);
  EXPECT_TRUE(View().why.starts_with(
      "a fits no node beside the others: 1 node had too little free CPU; needs room for 3"))
      << View().why;
}

TEST_F(GangGroundTest, TheMemberOfAnotherSizeThatHasNoPlaceBesideTheOthersIsNamed) {
  for (const char* name : {"m", "n", "o"}) Add(ANode(name).Gpus(6));
  const auto of = [](const std::string& name, int gpus) {
    return APod(name).Whole(gpus).Gang("berth:default/train").GangSize(4);
  };
  Arrive({of("a", 4), of("b", 4), of("c", 4), of("d", 3)});
  EXPECT_EQ(Filter(of("a", 4)), kNoRoom);
  EXPECT_EQ(View().lacks, "d");
  EXPECT_TRUE(
      View().why.starts_with("d fits no node beside the others: 3 nodes had too few idle "
                             "GPUs; needs room for 4 pods together"))
      << View().why;
}

// The pool of the gang is full; there are more nodes of another one, which it does not tolerate.
TEST_F(GangGroundTest, WhoHoldsTheGpusIsNotHiddenByTheTaintsOfOtherNodes) {
  for (const std::string name : {"l", "m", "n"}) {
    Add(ANode(name).Gpus(1));
    ShowBound(APod("low-" + name).Whole(1), name, {0});
  }
  for (const char* name : {"s", "t", "u", "v", "w"}) {
    Add(ANode(name).Gpus(1).Tainted("dedicated", "infer"));
  }
  Arrive({a_, b_, c_});
  EXPECT_EQ(Filter(a_), kNoRoom);
  EXPECT_TRUE(View().why.starts_with("needs room for 3 pods with 1 GPU each, has room for 0"))
      << View().why;
}

TEST_F(GangGroundTest, AGpuThatIsSickIsNoReasonForNever) {
  Add(ANode("m").Gpus(2));
  Add(ANode("n").Gpus(2).Unhealthy(1));
  const auto of = [](const std::string& name) {
    return APod(name).Whole(2).Gang("berth:default/train").GangSize(2);
  };
  Arrive({of("a"), of("b")});
  EXPECT_EQ(Filter(of("a")), kNoRoom);
  EXPECT_FALSE(View().never) << View().why;
}

TEST_F(GangGroundTest, AnotherDeviceOrPlacesForPodsThatAreMissingAreNamed) {
  for (const std::string name : {"m", "n", "o"}) {
    Add(ANode(name).Gpus(1).Counts(110, {{"rdma/hca", name == "o" ? 0 : 1}}));
  }
  const auto member = [](const std::string& name) {
    return Member(name).Others({{"rdma/hca", 1}});
  };
  Arrive({member("a"), member("b"), member("c")});
  EXPECT_EQ(Filter(member("a")), kNoRoom);
  EXPECT_TRUE(View().never);
  EXPECT_TRUE(
      View().why.starts_with("never on these nodes: its pods ask for 3 GPUs, and the "
                             "nodes that they accept have 2; 1 node lacks rdma/hca"))
      << View().why;
  for (const std::string name : {"m", "n", "o"}) Add(ANode(name).Gpus(4).Counts(0, {}));
  const APod x = Member("x", "other"), y = Member("y", "other"), z = Member("z", "other");
  Delete(a_), Delete(b_), Delete(c_);
  Arrive({x, y, z});
  EXPECT_EQ(Filter(x), kNoRoom);
  EXPECT_TRUE(View().why.starts_with("never while no node accepts x: 3 nodes take no more pods"))
      << View().why;
}

TEST_F(GangGroundTest, TheMemberThatAsksForMoreThanAnyNodeHasIsNamedFirst) {
  for (const char* name : {"l", "m", "n", "o"}) Add(ANode(name).Gpus(1).Cpu(64));
  Arrive({a_, b_, Member("c").Cpu(80)});
  EXPECT_EQ(Filter(a_), kNoRoom);
  const GangView view = View();
  EXPECT_TRUE(view.never);
  EXPECT_TRUE(
      view.why.starts_with("never while no node accepts c: its 4 nodes have at most 64 CPUs, it "
                           "needs 80; needs "))
      << view.why;
}

TEST_F(GangGroundTest, WhatIsOpenToAGangAndWhyTheOthersAreNotComesFirst) {
  Add(ANode("n").Gpus(2));
  Add(ANode("m").Gpus(1).Tainted("maintenance", "x"));
  Arrive({a_, b_, c_});
  EXPECT_EQ(Filter(a_), kNoRoom);
  const GangView view = View();
  EXPECT_FALSE(view.never);
  EXPECT_TRUE(
      view.why.starts_with("its pods ask for 3 GPUs, and the nodes open to them have 2; 1 "
                           "node has taint maintenance=x:NoSchedule; needs "))
      << view.why;
}

TEST_F(GangGroundTest, NobodyIsEvictedForAGangOneOfWhosePodsPreemptsNobody) {
  for (const std::string name : {"m", "n", "o"}) {
    Add(ANode(name).Gpus(1));
    ShowBound(APod("low-" + name).Whole(1), name, {0});
  }
  const auto member = [](const std::string& name) { return Member(name).Priority(5); };
  Arrive({member("a"), member("b"), member("c").NeverPreempts()});
  for (const char* name : {"a", "b"}) EXPECT_EQ(Preempt(member(name), {"m", "n", "o"}), "");
  Add(ANode("p").Gpus(1));  // for c
  Pass(seconds(2));
  EXPECT_NE(Preempt(member("a"), {"m", "n", "o", "p"}), "");
}

TEST_F(GangGroundTest, AGangAboutWhichKubeSchedulerDoesNotAskIsToldSo) {
  Add(ANode("n").Gpus(8));
  Arrive({a_, b_, c_});
  Pass(seconds(1));
  EXPECT_EQ(StateOf(), "waiting");
  EXPECT_EQ(gangs_.Views(clock_.Now())[0].why, "kube-scheduler has not asked Berth about its pods");
}

TEST_F(GangGroundTest, TheLauncherThatIsNotThereIsNamed) {
  Add(ANode("n").Gpus(8));
  const auto worker = [](const std::string& name) {
    return Member(name).Labelled({{"training.kubeflow.org/job-role", "worker"}});
  };
  Arrive({worker("a"), worker("b")});
  Pass(seconds(1));
  const auto why = [this] { return gangs_.Views(clock_.Now())[0].why; };
  EXPECT_EQ(why(), "2 of 3 pods exist; all are workers: the launcher is missing");
  Arrive({Member("x").Labelled({{"training.kubeflow.org/job-role", "launcher"}})});
  Pass(seconds(6));
  EXPECT_EQ(why().find("launcher"), std::string::npos) << why();
}

TEST_F(GangGroundTest, MembersThatGatesHoldBackAreNamed) {
  Add(ANode("n").Gpus(8));
  Arrive({a_, b_});
  waiting_.Put({.pod = std::make_shared<const PodRequest>(c_.Request()),
                .held_back = "scheduling gates hold it back"});
  Pass(seconds(1));
  EXPECT_EQ(View().why, "2 of 3 pods exist; scheduling gates hold back c");
  Arrive(c_);
  Pass(seconds(6));
  EXPECT_EQ(View().why.find("gates"), std::string::npos);
}

// Nobody waits for them, so nothing is kept of them.
TEST_F(GangGroundTest, GangsWhosePodsAllRunOrAreGatedAreToldToo) {
  Add(ANode("n").Gpus(8));
  const auto of = [this](const APod& pod) {
    return gangs_.ViewOfOthers(pod.Request(), clock_.Now());
  };
  waiting_.Put({.pod = std::make_shared<const PodRequest>(c_.Request()),
                .held_back = "scheduling gates hold it back"});
  EXPECT_EQ(of(c_)->state, "gathering");
  EXPECT_EQ(of(c_)->why, "0 of 3 pods exist; scheduling gates hold back c");
  ShowBound(a_, "n", {0});
  ShowBound(b_, "n", {1});
  EXPECT_EQ(of(c_)->state, "whole") << "nobody waits";
  EXPECT_EQ(of(c_)->placed, 2);
  ShowBound(c_, "n", {2});
  EXPECT_EQ(of(a_)->state, "whole");
  EXPECT_EQ(of(a_)->placed, 3);
  EXPECT_FALSE(of(APod("x").Whole(1).Gang("kai:default/t").GangSize(2))) << "not in these words";
}

TEST_F(GangGroundTest, ANodeWhereVictimsArePartOfAGangIsLeftOutOfPreempt) {
  for (const char* name : {"n", "m", "k"}) Add(ANode(name).Gpus(1));
  ShowBound(Member("a").GangSize(2), "n", {0});
  ShowBound(Member("b").GangSize(2), "m", {0});
  ShowBound(APod("single").Whole(1), "k", {0});
  PodRequest high = APod("high").Whole(1).Priority(100).Request();
  const auto preempt = [&](const std::vector<NodeVictims>& asked) {
    std::string text;
    for (const auto& kept : extender_.Preempt(extender_.Now(), high, asked)) text += kept.node;
    return text;
  };
  const NodeVictims n{"n", {"uid-a"}}, m{"m", {"uid-b"}}, k{"k", {"uid-single"}};
  EXPECT_EQ(preempt({n, m}), "") << "nobody";
  EXPECT_EQ(preempt({n, m, k}), "k");
  Delete(APod("single"));  // nobody waits for its end any more
  Use({{"berth"}, seconds(50), 0, true});
  EXPECT_EQ(preempt({n, m}), "nm");
  ShowBound(APod("single").Whole(1), "k", {0});
  high.id.uid = "uid-another";  // nothing was agreed on for it
  EXPECT_EQ(preempt({n, m, k}), "k") << "only where no other node will do";
}

// kube-scheduler names whom it saw a moment ago, and Berth agrees to none of them.
TEST_F(GangGroundTest, NothingIsKeptForAGangForWhichNobodyIsEvicted) {
  Add(ANode("k").Gpus(1));
  const std::vector<APod> pods = WantsNodesOfOthers();
  for (const std::string name : {"l", "m", "n"}) {
    Delete(APod("low-" + name));
    ShowBound(APod("high-" + name).Whole(1).Priority(50), name, {0});
  }
  const Extender::Moment before = extender_.Now();
  for (const std::string name : {"l", "m", "n"}) {
    Delete(APod("high-" + name));
    ShowBound(APod("low-" + name).Whole(1), name, {0});
  }
  for (const APod& pod : pods) {
    const std::vector<NodeVictims> named = {{"l", {}}, {"m", {}}, {"n", {}}};
    EXPECT_TRUE(extender_.Preempt(before, pod.Request(), named).empty());
  }
  EXPECT_EQ(Free("k"), 1000);
  EXPECT_EQ(rooms_.Kept(), nullptr);
}

// As many pods as before, and not the same.
TEST_F(GangGroundTest, AGangThatIsChangedOrMadeAnewIsTriedAgain) {
  Add(ANode("n").Gpus(4).Labelled({{"pool", "train"}}));
  NodeConstraints nowhere;
  nowhere.selector = {{"pool", LabelOperator::kIn, {"other"}}};
  const auto on = [&](const char* name, const std::string& gang) {
    return Member(name, gang).Constrained(nowhere);
  };
  Arrive({on("a", "changed"), on("b", "changed"), on("c", "changed")});
  EXPECT_EQ(Filter(on("a", "changed")), kNoRoom);
  for (const char* name : {"a", "b", "c"}) Arrive(Member(name, "changed").Whole(1));
  Pass(seconds(6));
  EXPECT_EQ(Filter(Member("a", "changed")), "n");
  for (const char* name : {"a", "b", "c"}) Delete(Member(name, "changed"));
  Pass(seconds(6));

  Arrive({on("d", "anew"), on("e", "anew"), on("f", "anew")});
  EXPECT_EQ(Filter(on("d", "anew")), kNoRoom);
  for (const char* name : {"d", "e", "f"}) Delete(on(name, "anew"));
  Pass(seconds(2));
  Arrive({Member("g", "anew"), Member("h", "anew"), Member("i", "anew")});
  EXPECT_EQ(Filter(Member("g", "anew")), "n");
}

TEST_F(GangGroundTest, AGangThatIsMadeAnewMayPreempt) {
  Add(ANode("n").Gpus(3));
  ShowBound(APod("low").Whole(3).Priority(5), "n", {0, 1, 2});
  const auto members = [](const std::vector<const char*>& names, int priority) {
    std::vector<APod> pods;
    for (const char* name : names) pods.push_back(Member(name).Priority(priority));
    return pods;
  };
  const std::vector<APod> meek = members({"a", "b", "c"}, 1), bold = members({"d", "e", "f"}, 9);
  Arrive(meek);
  EXPECT_EQ(Filter(meek[0]), kNoRoom);
  EXPECT_EQ(Preempt(meek[0], {"n"}), "");
  for (const APod& pod : meek) Delete(pod);
  Arrive(bold);
  EXPECT_EQ(Preempt(bold[0], {"n"}), "n: low");
}

// kube-scheduler counts no member that keeps a place: where it has room for one by its own count it
// names nobody for the next.
TEST_F(GangGroundTest, WhereKubeSchedulerHasRoomForOneNobodyIsEvictedForTheNext) {
  const auto gpu = [](const std::string& name, int gpus) {
    return ANode(name).Gpus(gpus).Tainted("nvidia.com/gpu", "");
  };
  NodeConstraints tolerates;
  tolerates.tolerations = {{"nvidia.com/gpu", TolerationOperator::kExists, "", {}}};
  const auto tolerant = [&](APod pod) { return pod.Constrained(tolerates); };
  Add(gpu("m", 2));
  ShowBound(tolerant(APod("low-m").Whole(1)), "m", {0});
  Add(gpu("n", 1));
  ShowBound(tolerant(APod("low-n").Whole(1)), "n", {0});
  std::vector<APod> pods;
  for (const char* name : {"a", "b", "c"}) pods.push_back(tolerant(Member(name).Priority(10)));
  Arrive(pods);
  const auto evictions = [&](const Names& asked) {
    Names evicted;
    for (const APod& pod : pods) evicted.push_back(Preempt(pod, asked));
    std::ranges::sort(evicted);
    return evicted;
  };
  EXPECT_EQ(evictions({"n"}), (Names{"", "", ""})) << "low-m would stay, and the gang wait";
  Add(gpu("k", 1));
  ShowBound(tolerant(APod("low-k").Whole(1).Priority(5)), "k", {0});
  Pass(seconds(6));
  EXPECT_EQ(evictions({"k", "n"}), (Names{"", "k: low-k", "n: low-n"}));
  Delete(APod("low-k"));
  Delete(APod("low-n"));
  Pass(seconds(1));
  for (const APod& pod : pods) Place(pod);
  EXPECT_EQ(bound_.size(), 3U);
}

TEST_F(GangGroundTest, FromTheFirstEvictionTheNodesOfAllMembersAreKept) {
  const std::vector<APod> pods = WantsNodesOfOthers();
  EXPECT_EQ(Preempt(pods[0], {"m"}), "m: low-m");
  EXPECT_EQ(Preempt(APod("other").Whole(1).Priority(10), {"l"}), "")
      << "the eviction on m would be for nothing";
  Names evicted = {Preempt(pods[1], {"l", "n"}), Preempt(pods[2], {"l", "n"})};
  std::ranges::sort(evicted);
  EXPECT_EQ(evicted, (Names{"l: low-l", "n: low-n"}));
}

// kube-scheduler has each at the node that it is nominated to, and no other member there.
TEST_F(GangGroundTest, MembersGoWhereOthersWereEvictedForThem) {
  const std::vector<APod> pods = WantsNodesOfOthers();
  std::map<std::string, std::string> nominated;
  for (const APod& pod : pods) {
    nominated[pod.Request().id.name] = Preempt(pod, {"l", "m", "n"}).substr(0, 1);
  }
  Delete(APod("low-l"));
  Add(ANode("other").Gpus(2));
  Pass(seconds(2));
  EXPECT_EQ(Free("other"), 2000) << "on m and n others end for two of them";
  Delete(APod("low-m"));
  Delete(APod("low-n"));
  Pass(seconds(2));
  for (const APod& pod : pods) EXPECT_EQ(Filter(pod), nominated[pod.Request().id.name]);
}

TEST_F(GangGroundTest, WhatIsEvictedForAMemberThatGoesAloneIsKeptForIt) {
  extender_.Use({.engine = EngineOf("best-fit"),
                 .reservation_time = seconds(30),
                 .gangs = {{"berth"}, seconds(50)},
                 .earmarks = EarmarkLimits{}});
  Add(ANode("n").Gpus(3));
  Arrive({a_, b_, c_});
  for (const APod& pod : {a_, b_, c_}) Place(pod);
  for (const APod& pod : {a_, b_, c_}) {
    ShowBound(pod, "n", {});
    Delete(pod);
  }
  const APod low = APod("low").Whole(3), again = Member("again").Whole(2).Priority(10);
  ShowBound(low, "n", {0, 1, 2});
  Arrive(again);
  EXPECT_EQ(Filter(again), kIncomplete);
  Pass(seconds(61));
  EXPECT_EQ(Preempt(again, {"n"}), "n: low");
  ShowBound(low, "n", {0, 1, 2}, true);
  extender_.LookAtEarmarks();
  Delete(low);
  extender_.LookAtEarmarks();
  EXPECT_NE(Filter(APod("other").Whole(3)), "n");
  EXPECT_EQ(Filter(APod("small").Whole(1)), "n") << "there is room beside";
  EXPECT_EQ(Filter(again), "n");
}

// Its bind was on the way when nobody could say any more how many have to start together.
TEST_F(GangGroundTest, ALateBindDoesNotGoAloneWhereThePodGroupIsDeleted) {
  PodGroups groups;
  GangTable gangs{{state_, waiting_, domains_, &groups}};
  Extender extender{{.state = state_,
                     .binder = binder_,
                     .sink = sink_,
                     .clock = clock_,
                     .behind_scheduler = true,
                     .gangs = &gangs,
                     .waiting = &waiting_},
                    {.engine = EngineOf("best-fit"),
                     .reservation_time = seconds(30),
                     .gangs = {{"coscheduling"}, seconds(50)}}};
  PodGroupTable& table = groups.Of("coscheduling");
  table.Reset({{.namespace_name = "default", .name = "train", .min_members = 3}});
  Add(ANode("n").Gpus(3));
  const auto member = [&groups](const std::string& name) {
    PodRequest pod =
        APod(name).Whole(1).Gang("coscheduling:default/train").WithoutGangObject().Request();
    groups.Update(pod.gang);
    return pod;
  };
  const std::vector<NodeIndex> all = {0};
  std::map<std::string, std::string> answers;
  const auto bind = [&](const PodRequest& pod) {
    (void)extender.Bind({pod.id.namespace_name, pod.id.name, pod.id.uid, "n", clock_.Now()},
                        [&answers, name = pod.id.name](const Status& bound) {
                          answers[name] = bound ? "bound" : bound.error().message;
                        });
  };
  const PodRequest a = member("a"), b = member("b"), c = member("c");
  for (const PodRequest& pod : {a, b, c}) {
    waiting_.Put({.pod = std::make_shared<const PodRequest>(pod)});
  }
  for (const PodRequest& pod : {a, b, c}) {
    EXPECT_TRUE(extender.Filter(extender.Now(), pod, all).fits);
  }
  bind(a);
  bind(b);
  table.Remove("default", "train");
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(milliseconds(100));
    extender.LookAtGangs();
  }
  bind(c);
  clock_.Advance(seconds(2));
  extender.LookAtGangs();
  EXPECT_EQ(bound_, Names());
  EXPECT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers["c"], "the PodGroup that set the gang's size was deleted");
}

}  // namespace
}  // namespace berth::test::gang_ground_test
