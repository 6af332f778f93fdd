// SPDX-License-Identifier: Apache-2.0
#include "scoring/earmarks/earmark_line.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "scoring/registry.h"
#include "test/support/builders.h"

namespace berth::test::earmark_line_test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class EarmarkLineTest : public testing::Test {
 protected:
  using Snapshots = std::shared_ptr<const Snapshot>;

  static std::shared_ptr<const PodRequest> Of(const APod& pod) {
    return std::make_shared<const PodRequest>(pod.Request());
  }
  void Stand(const APod& pod, int since) {
    line_.Stand({{Of(pod)}, WallTime(seconds(since))}, now_, at_);
  }
  void StandGang(const std::vector<APod>& members, int since) {
    InLine gang{{}, WallTime(seconds(since))};
    for (const APod& member : members) gang.pods.push_back(Of(member));
    line_.Stand(std::move(gang), now_, at_);
  }
  // The same nodes, one of them as it is given.
  void Becomes(NodeIndex index, const ANode& node) {
    now_ = std::make_shared<const Snapshot>(now_->With(index, SnapshotOf({node})->shared(0)));
  }
  std::vector<PodId> Look() { return line_.Look(now_, limits_, Time()); }
  // The wall clock shows as much as the other one, and a day.
  [[nodiscard]] EarmarkLine::Time Time() const {
    return {at_, WallTime(std::chrono::hours(24)) + at_.time_since_epoch()};
  }
  // The life of a pod that started so long ago.
  [[nodiscard]] PodLife Started(minutes ago) const { return {.started = Time().wall - ago}; }
  bool Keeps(NodeIndex node, const APod& from) {
    return line_.earmarks()->KeptFor(from.Request(), *now_, node) != nullptr;
  }
  // Who has something on the node, the first in line first.
  std::string OwnersOn(NodeIndex node) {
    std::string names;
    const Earmarks::OnNode* const on = line_.earmarks()->On(*now_, node);
    if (on == nullptr) return names;
    for (const EarmarkOwner& owner : on->owners) {
      names += (names.empty() ? "" : " ") + owner.pod.name;
    }
    return names;
  }

  EarmarkLine line_;
  EarmarkLimits limits_{100, minutes(60)};
  Snapshots now_ =
      SnapshotOf({ANode("a").Gpus(8).Holding(APod("x").Whole(8), {0, 1, 2, 3, 4, 5, 6, 7}),
                  ANode("b").Gpus(8).Holding(APod("y").Whole(8), {0, 1, 2, 3, 4, 5, 6, 7})});
  Instant at_{};
};

TEST_F(EarmarkLineTest, KeepsWhatBecomesFreeForTheFirstThatFits) {
  Stand(APod("large").Whole(8), 1);
  Stand(APod("later").Whole(8), 2);
  Look();
  EXPECT_TRUE(line_.earmarks()->empty()) << "nothing is free";
  Becomes(0, ANode("a").Gpus(8));
  EXPECT_TRUE(Look().empty()) << "kube-scheduler tries them again by itself";
  EXPECT_EQ(OwnersOn(0), "large");
  EXPECT_TRUE(Keeps(0, APod("small").Whole(1)));
  EXPECT_TRUE(Keeps(0, APod("share").Share(100)));
  EXPECT_TRUE(Keeps(0, APod("later").Whole(8)));
  EXPECT_FALSE(Keeps(0, APod("large").Whole(8)));
  EXPECT_FALSE(Keeps(0, APod("urgent").Whole(1).Priority(1)));
  EXPECT_FALSE(Keeps(1, APod("small").Whole(1))) << "nothing is kept there";
  Becomes(1, ANode("b").Gpus(8));
  Look();
  EXPECT_EQ(OwnersOn(1), "later");
}

TEST_F(EarmarkLineTest, LeavesToAnyoneWhatItsOwnersDoNotNeed) {
  Stand(APod("four").Whole(4), 1);
  Stand(APod("two").Whole(2), 2);
  Stand(APod("eight").Whole(8), 0);
  Becomes(0, ANode("a").Gpus(8).Holding(APod("x").Whole(1), {0}));
  Look();
  EXPECT_EQ(OwnersOn(0), "four two") << "eight does not fit, and keeps nothing";
  EXPECT_FALSE(Keeps(0, APod("one").Whole(1))) << "it fits beside them";
  EXPECT_TRUE(Keeps(0, APod("pair").Whole(2)));
  EXPECT_EQ(line_.earmarks()->gpus(), 6);
}

TEST_F(EarmarkLineTest, PutsHigherPrioritiesFirst) {
  Stand(APod("old").Whole(8), 1);
  Stand(APod("urgent").Whole(8).Priority(5), 9);
  Becomes(0, ANode("a").Gpus(8));
  Look();
  EXPECT_EQ(OwnersOn(0), "urgent");
}

// Pods of a set: the labels of its controller number them.
TEST_F(EarmarkLineTest, TheSuccessorOfALostPodHasTheAgeOfTheOthersOfItsSet) {
  for (const char* key :
       {"apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index",
        "leaderworkerset.sigs.k8s.io/worker-index"}) {
    const auto of_set = [&](const std::string& name, const char* number) {
      return APod(name).Whole(8).Controller("set").Labelled({{key, number}});
    };
    const auto first = [&](const APod& waits) {
      at_ = Instant(minutes(60));
      now_ = SnapshotOf({ANode("a").Gpus(8).Holding(APod("x").Whole(8), {0, 1, 2, 3, 4, 5, 6, 7}),
                         ANode("b").Gpus(8).Holding(of_set("set-1", "1"), {0, 1, 2, 3, 4, 5, 6, 7},
                                                    Started(minutes(50)))});
      line_ = EarmarkLine();
      line_.Stand({{Of(APod("single").Whole(8))}, Time().wall - minutes(10)}, now_, at_);
      line_.Stand({{Of(waits)}, Time().wall}, now_, at_);
      Becomes(0, ANode("a").Gpus(8));
      Look();
      return OwnersOn(0);
    };
    EXPECT_EQ(first(of_set("set-0", "0")), "set-0") << key;
    EXPECT_EQ(first(of_set("set-2", "2")), "single") << "the set has grown: " << key;
    EXPECT_EQ(first(of_set("set-0", "0").Namespace("other")), "single") << key;
    EXPECT_EQ(first(of_set("set-0", "0").Controller("next")), "single") << key;
    EXPECT_EQ(first(of_set("set-0", "x")), "single") << key;
  }
}

TEST_F(EarmarkLineTest, GivesOnWhatIsLeftByWhoLeaves) {
  Stand(APod("first").Whole(8), 1);
  Stand(APod("second").Whole(8), 2);
  Becomes(0, ANode("a").Gpus(8));
  Look();
  ASSERT_EQ(OwnersOn(0), "first");
  line_.Leave(APod("first").Request().id.uid);
  const auto wakes = Look();
  EXPECT_EQ(OwnersOn(0), "second");
  ASSERT_EQ(wakes.size(), 1U) << "nothing that kube-scheduler sees has changed";
  EXPECT_EQ(wakes[0].name, "second");
  line_.KeepIf([](const PodRequest&) { return false; });
  Look();
  EXPECT_TRUE(line_.earmarks()->empty());
  EXPECT_EQ(line_.size(), 0U);
}

TEST_F(EarmarkLineTest, KeepsNothingForWhoHasGone) {
  std::set<std::string> gone;
  const auto look = [&] {
    line_.Look(now_, limits_, Time(),
               [&gone](const PodRequest& pod) { return !gone.contains(pod.id.name); });
  };
  Stand(APod("first").Whole(8), 1);
  Stand(APod("second").Whole(8), 2);
  gone = {"first"};
  Becomes(0, ANode("a").Gpus(8));
  look();
  EXPECT_EQ(OwnersOn(0), "second");
  EXPECT_EQ(line_.size(), 1U);
  gone = {"second"};
  look();
  EXPECT_TRUE(line_.earmarks()->empty());
}

TEST_F(EarmarkLineTest, PassesOverWhoDoesNotComeForLongerEachTime) {
  Stand(APod("never").Whole(8), 1);
  Becomes(0, ANode("a").Gpus(8));
  Look();
  ASSERT_EQ(OwnersOn(0), "never");
  at_ += EarmarkLine::kOffer;
  ASSERT_LE(*line_.NextLook(), at_);
  Look();
  EXPECT_EQ(OwnersOn(0), "");
  Stand(APod("never").Whole(8), 1);  // asked about again: it is known
  at_ += EarmarkLine::kPassOver - seconds(1);
  Look();
  EXPECT_EQ(OwnersOn(0), "");
  at_ += seconds(1);
  Look();
  EXPECT_EQ(OwnersOn(0), "never") << "it has another try";
  at_ += EarmarkLine::kOffer;
  Look();
  Stand(APod("never").Whole(8), 1);
  at_ += EarmarkLine::kPassOver;
  Look();
  EXPECT_EQ(OwnersOn(0), "") << "later than the first time";
  Stand(APod("never").Whole(8), 1);
  at_ += EarmarkLine::kPassOver;
  Look();
  EXPECT_EQ(OwnersOn(0), "never");
}

TEST_F(EarmarkLineTest, ForgetsPodsThatNobodyAsksAboutAnyMore) {
  Stand(APod("gone").Whole(8), 1);
  at_ += EarmarkLine::kForgotten;
  Look();
  EXPECT_EQ(line_.size(), 0U);
}

// What a pod that ends with its work is, as the API server says it.
constexpr bool kCompletes = true;
PodLife Job() { return {.completes = kCompletes}; }
const std::vector<int> kAll = {0, 1, 2, 3, 4, 5, 6, 7};

APod Member(const std::string& name, int gpus = 8, int size = 2) {
  return APod(name).Whole(gpus).Gang("berth:default/train").GangSize(size);
}

TEST_F(EarmarkLineTest, GathersNodesForAGangUntilItsTimeIsOver) {
  Becomes(0, ANode("a").Gpus(8));
  Becomes(1, ANode("b").Gpus(8).Holding(APod("y").Whole(4), {0, 1, 2, 3}, Job()));
  StandGang({Member("m0"), Member("m1")}, 1);
  Look();
  EXPECT_EQ(OwnersOn(0), "m0");
  EXPECT_TRUE(Keeps(0, APod("small").Whole(1)));
  EXPECT_TRUE(Keeps(1, APod("small").Whole(1))) << "b would never be empty";
  EXPECT_FALSE(Keeps(1, Member("m7"))) << "it is of the gang";
  EXPECT_FALSE(Keeps(1, APod("cheap").Whole(1).Priority(-1))) << "the gang may evict it";
  EXPECT_EQ(line_.earmarks()->gpus(), 12) << "idle ones of both nodes";
  Becomes(1, ANode("b").Gpus(8));
  Look();
  EXPECT_EQ(OwnersOn(1), "m1");
  EXPECT_EQ(line_.earmarks()->gpus(), 16);
  at_ += limits_.gang;
  Look();
  EXPECT_TRUE(line_.earmarks()->empty());
  at_ += limits_.gang - seconds(1);
  Look();
  EXPECT_TRUE(line_.earmarks()->empty());
  at_ += seconds(1);
  Look();
  EXPECT_EQ(line_.earmarks()->gpus(), 16);
}

// Services run until somebody deletes them: no node is kept for a gang that needs theirs.
TEST_F(EarmarkLineTest, KeepsNothingForAGangThatCannotAllFit) {
  Becomes(0, ANode("a").Gpus(8));
  Becomes(1, ANode("b").Gpus(8).Holding(APod("service").Whole(1), {0}));
  StandGang({Member("m0"), Member("m1")}, 1);
  Look();
  EXPECT_TRUE(line_.earmarks()->empty());
  StandGang({Member("n0", 4).Gang("berth:default/next"), Member("n1", 4).Gang("berth:default/next"),
             Member("n2", 4).Gang("berth:default/next")},
            2);
  Look();
  EXPECT_EQ(OwnersOn(0), "n0") << "the next in line that could";
}

TEST_F(EarmarkLineTest, AwaitsTheNodesOfWhichTheLeastIsHeld) {
  now_ = SnapshotOf({ANode("a").Gpus(8).Holding(APod("x").Whole(6), {0, 1, 2, 3, 4, 5}, Job()),
                     ANode("b").Gpus(8).Holding(APod("y").Whole(2), {0, 1}, Job()),
                     ANode("c").Gpus(8).Holding(APod("z").Whole(4), {0, 1, 2, 3}, Job())});
  StandGang({Member("m0"), Member("m1")}, 1);
  Look();
  const APod small = APod("small").Whole(1);
  EXPECT_FALSE(Keeps(0, small));
  EXPECT_TRUE(Keeps(1, small));
  EXPECT_TRUE(Keeps(2, small));
  StandGang({Member("m0", 6), Member("m1", 6)}, 1);
  Look();
  EXPECT_EQ(OwnersOn(1), "m0") << "b has room for it now";
  EXPECT_FALSE(Keeps(2, APod("pair").Whole(2))) << "it fits beside the member";
  EXPECT_TRUE(Keeps(2, APod("three").Whole(3)));
}

// The bound counts what is awaited until it is there, and not twice then.
TEST_F(EarmarkLineTest, KeepsForAGangWhatItHasAwaited) {
  limits_.most_gpus = 1;
  std::vector<ANode> nodes;
  std::vector<APod> gang;
  for (int i = 0; i < 8; ++i) {
    const std::string name = std::to_string(i);
    nodes.push_back(ANode("n" + name).Gpus(8).Holding(APod("j" + name).Whole(8), kAll, Job()));
    gang.push_back(Member("m" + name, 8, 8));
  }
  now_ = SnapshotOf(nodes);
  StandGang(gang, 1);
  Look();
  for (NodeIndex i = 0; i < 8; ++i) {
    Becomes(i, ANode("n" + std::to_string(i)).Gpus(8));
    Look();
    EXPECT_EQ(OwnersOn(i), "m" + std::to_string(i));
  }
  EXPECT_EQ(line_.earmarks()->gpus(), 64);
}

TEST_F(EarmarkLineTest, OneGangAtATimeGathersNodes) {
  Becomes(0, ANode("a").Gpus(8));
  Becomes(1, ANode("b").Gpus(8).Holding(APod("y").Whole(8), kAll, Job()));
  StandGang({Member("m0").Gang("berth:default/late"), Member("m1").Gang("berth:default/late")}, 5);
  Look();
  EXPECT_EQ(OwnersOn(0), "m0");
  StandGang({Member("n0").Gang("berth:default/early"), Member("n1").Gang("berth:default/early")},
            1);
  Look();
  EXPECT_EQ(OwnersOn(0), "n0") << "it has waited longer";
  line_.Leave("berth:default/early");
  Look();
  EXPECT_EQ(OwnersOn(0), "m0");
  line_.Leave("berth:default/late");
  Look();
  EXPECT_TRUE(line_.earmarks()->empty());
}

TEST_F(EarmarkLineTest, KeepsNoMoreThanItMayButOnePodsWorth) {
  limits_.most_gpus = 25;  // four of sixteen
  Stand(APod("large").Whole(8), 2);
  Stand(APod("next").Whole(2), 3);
  Becomes(0, ANode("a").Gpus(8).Holding(APod("x").Share(100), {0}));
  Becomes(1, ANode("b").Gpus(8).Holding(APod("y").Share(100), {0}));
  Look();
  Becomes(1, ANode("b").Gpus(8));
  Look();
  EXPECT_EQ(line_.earmarks()->gpus(), 2) << "the first that fitted";
}

TEST_F(EarmarkLineTest, KeepsALittleForOneGangWhateverTheBound) {
  limits_.most_gpus = 25;
  now_ = SnapshotOf({ANode("a").Gpus(40), ANode("b").Gpus(40)});
  StandGang({Member("m0", 40), Member("m1", 40)}, 1);
  Look();
  EXPECT_EQ(line_.earmarks()->gpus(), 40) << "no more than kMostAlone";
}

TEST_F(EarmarkLineTest, FollowsNodesThatComeAndGo) {
  Stand(APod("large").Whole(8), 1);
  Becomes(1, ANode("b").Gpus(8));
  Look();
  ASSERT_EQ(OwnersOn(1), "large");
  now_ = SnapshotOf({ANode("aa"), ANode("ab"), ANode("b").Gpus(8)});
  Look();
  EXPECT_EQ(OwnersOn(2), "large");
  now_ = SnapshotOf({ANode("aa").Gpus(8), ANode("c")});
  Look();
  EXPECT_EQ(OwnersOn(0), "large") << "its node has gone, and another one has room";
  EXPECT_EQ(line_.earmarks()->gpus(), 8);
}

TEST_F(EarmarkLineTest, ReadsEarmarksOfOtherNodesByName) {
  Stand(APod("large").Whole(8), 1);
  Becomes(1, ANode("b").Gpus(8));
  Look();
  const auto later = SnapshotOf({ANode("aa").Gpus(8), ANode("b").Gpus(8), ANode("c").Gpus(8)});
  EXPECT_NE(line_.earmarks()->KeptFor(APod("s").Whole(1).Request(), *later, 1), nullptr);
  EXPECT_EQ(line_.earmarks()->KeptFor(APod("s").Whole(1).Request(), *later, 0), nullptr);
  EXPECT_EQ(line_.earmarks()->KeptFor(APod("s").Whole(1).Request(), *later, 2), nullptr);
}

TEST_F(EarmarkLineTest, IsBounded) {
  for (std::size_t i = 0; i < EarmarkLine::kMost + 10; ++i) {
    Stand(APod("p" + std::to_string(i)).Whole(8), static_cast<int>(i));
  }
  EXPECT_EQ(line_.size(), EarmarkLine::kMost);
  Becomes(0, ANode("a").Gpus(8));
  Look();
  EXPECT_EQ(OwnersOn(0), "p0");
}

TEST_F(EarmarkLineTest, WhoHasWaitedLongerTakesThePlaceOfTheLast) {
  for (std::size_t i = 0; i < EarmarkLine::kMost; ++i) {
    Stand(APod("p" + std::to_string(i)).Whole(1), static_cast<int>(100 + i));
  }
  Stand(APod("late").Whole(8), 1'000'000);
  Stand(APod("old").Whole(8), 1);
  EXPECT_EQ(line_.size(), EarmarkLine::kMost);
  Becomes(0, ANode("a").Gpus(8));
  Look();
  EXPECT_EQ(OwnersOn(0), "old");
}

// --- With what is known of how long pods run

TEST_F(EarmarkLineTest, ReservesTheNodeThatHasRoomFirst) {
  const auto held = [&](const char* name, minutes left) {
    return ANode(name).Gpus(8).Holding(APod(std::string("on-") + name).Whole(8).EndsWithin(left),
                                       kAll, Started(minutes(0)));
  };
  now_ = SnapshotOf({held("a", minutes(90)), held("b", minutes(20)), held("c", minutes(60))});
  Stand(APod("large").Whole(8), 1);
  Look();
  const Earmarks::OnNode* const on = line_.earmarks()->On(*now_, 1);
  ASSERT_NE(on, nullptr);
  EXPECT_EQ(on->awaiting.pod.name, "large");
  EXPECT_EQ(on->from, Time().wall + minutes(20) + seconds(30)) << "with its grace period";
  EXPECT_EQ(line_.earmarks()->On(*now_, 0), nullptr);
  EXPECT_EQ(line_.earmarks()->On(*now_, 2), nullptr);
  EXPECT_EQ(line_.earmarks()->gpus(), 0) << "nothing is idle there";
}

// Three GPUs would be idle for weeks otherwise, because of a pod with a long deadline.
TEST_F(EarmarkLineTest, ReservesNoRoomThatComesLate) {
  constexpr minutes kGrace(1);
  limits_.reserve_within = minutes(200);
  limits_.reserve_idle = minutes(600);
  const minutes most(200);
  for (const minutes left : {most - kGrace, most + kGrace}) {
    Becomes(0, ANode("a").Gpus(8).Holding(APod("x").Whole(5).EndsWithin(left), {0, 1, 2, 3, 4},
                                          Started(minutes(0))));
    Stand(APod("large").Whole(8), 1);
    at_ += EarmarkLine::kBetweenScans;
    Look();
    EXPECT_EQ(line_.earmarks()->empty(), left > most);
    EXPECT_EQ(Keeps(0, APod("service").Whole(1)), left < most);
  }
}

// One pod says five hours and a half, or pods like it ran for so long: seven GPUs beside it would
// stand idle.
TEST_F(EarmarkLineTest, ReservesNoNodeOnWhichTooMuchWouldStandIdle) {
  const auto room = [&](int held, minutes left) {
    std::vector<int> gpus;
    for (int i = 0; i < held; ++i) gpus.push_back(i);
    Becomes(0, ANode("a").Gpus(8).Holding(APod("x").Whole(held).Expects(left), gpus,
                                          Started(minutes(0))));
    Stand(APod("large").Whole(8), 1);
    at_ += EarmarkLine::kBetweenScans;
    Look();
    return Keeps(0, APod("service").Whole(1));
  };
  EXPECT_FALSE(room(1, minutes(340)));
  EXPECT_FALSE(room(1, minutes(70)));
  EXPECT_TRUE(room(1, minutes(68))) << "less than 8 GPU-hours";
  EXPECT_FALSE(room(4, minutes(121)));
  EXPECT_TRUE(room(4, minutes(119)));
  EXPECT_TRUE(room(8, minutes(340))) << "nothing is idle";
  EXPECT_EQ(line_.earmarks()->On(*now_, 0)->idle, minutes(0));
  limits_.reserve_idle = minutes(0);
  EXPECT_FALSE(room(7, minutes(30)));
  EXPECT_TRUE(room(8, minutes(30)));
}

TEST_F(EarmarkLineTest, ReservesTheNodeOnWhichTheLeastStandsIdle) {
  const auto held = [&](const char* name, int first, minutes left) {
    ANode node(name);
    node.Gpus(8);
    std::vector<int> gpus, others;
    for (int i = 0; i < 8; ++i) (i < first ? gpus : others).push_back(i);
    node.Holding(APod(std::string("x-") + name).Whole(first).Expects(left), gpus,
                 Started(minutes(0)));
    if (!others.empty()) {
      node.Holding(APod(std::string("y-") + name).Whole(8 - first).Expects(left / 2), others,
                   Started(minutes(0)));
    }
    return node;
  };
  now_ =
      SnapshotOf({held("a", 4, minutes(40)), held("b", 7, minutes(60)), held("c", 4, minutes(60))});
  Stand(APod("large").Whole(8), 1);
  Look();
  ASSERT_NE(line_.earmarks()->On(*now_, 1), nullptr) << "half a GPU-hour";
  EXPECT_EQ(line_.earmarks()->On(*now_, 1)->idle, minutes(30));
}

// Its pods end sooner than they said, but for one: what has stood idle counts.
TEST_F(EarmarkLineTest, GivesUpAReservationForWhichTooMuchHasStoodIdle) {
  limits_.reserve_idle = minutes(30);  // four GPU-hours
  Becomes(0, ANode("a").Gpus(8).Holding(APod("x").Whole(4).Expects(minutes(59)), {0, 1, 2, 3},
                                        Started(minutes(0))));
  Stand(APod("large").Whole(8), 1);
  Look();
  ASSERT_TRUE(Keeps(0, APod("service").Whole(1)));
  for (int i = 0; i < 30; ++i) {
    at_ += minutes(1);
    Stand(APod("large").Whole(8), 1);
    Look();
  }
  ASSERT_TRUE(Keeps(0, APod("service").Whole(1)));
  // The word is longer now.
  Becomes(0, ANode("a").Gpus(8).Holding(APod("x").Whole(4).Expects(minutes(70)), {0, 1, 2, 3},
                                        Started(minutes(30))));
  at_ += EarmarkLine::kBetweenScans;
  Look();
  EXPECT_FALSE(Keeps(0, APod("service").Whole(1))) << "two GPU-hours have gone, and more would";
}

TEST_F(EarmarkLineTest, OnAReservedNodeGoesWhoHasEndedByThen) {
  Becomes(0, ANode("a").Gpus(8).Cpu(64).Holding(APod("x").Whole(5).EndsWithin(minutes(60)),
                                                {0, 1, 2, 3, 4}, Started(minutes(0))));
  Stand(APod("large").Whole(8).Cpu(8), 1);
  Look();
  ASSERT_NE(line_.earmarks()->On(*now_, 0), nullptr);
  EXPECT_EQ(line_.earmarks()->gpus(), 3);
  EXPECT_TRUE(Keeps(0, APod("service").Whole(1)));
  EXPECT_TRUE(Keeps(0, APod("long").Whole(1).EndsWithin(minutes(61))));
  EXPECT_FALSE(Keeps(0, APod("short").Whole(1).EndsWithin(minutes(59))));
  EXPECT_FALSE(Keeps(0, APod("honest").Whole(1).Expects(minutes(59))));
  EXPECT_FALSE(Keeps(0, APod("no-gpu").Cpu(1))) << "it fits beside the large one";
  EXPECT_TRUE(Keeps(0, APod("much-cpu").Cpu(60)));
  EXPECT_FALSE(Keeps(0, APod("urgent").Whole(1).Priority(1)));
  at_ += minutes(30);
  Stand(APod("large").Whole(8).Cpu(8), 1);
  Look();
  EXPECT_TRUE(Keeps(0, APod("short").Whole(1).EndsWithin(minutes(59)))) << "half an hour is left";
}

// A service that never ends, or a job that says nothing: the node may never be empty.
TEST_F(EarmarkLineTest, ReservesNothingWhereNobodyKnowsWhenItEnds) {
  Becomes(0, ANode("a").Gpus(8).Holding(APod("x").Whole(1), {0}));
  Becomes(1, ANode("b").Gpus(8).Holding(APod("y").Whole(1), {0}, Job()));
  Stand(APod("large").Whole(8), 1);
  Look();
  EXPECT_TRUE(line_.earmarks()->empty());
}

TEST_F(EarmarkLineTest, ReservesForPodsOfSeveralGpusThatHaveWaited) {
  Becomes(0, ANode("a").Gpus(8).Holding(APod("x").Whole(8).EndsWithin(minutes(5)), kAll,
                                        Started(minutes(0))));
  const auto created = std::chrono::duration_cast<seconds>(Time().wall.time_since_epoch());
  Stand(APod("one").Whole(1), 1);
  Stand(APod("new").Whole(2), static_cast<int>(created.count()));
  Look();
  EXPECT_TRUE(line_.earmarks()->empty());
  at_ += EarmarkLimits().reserve_after;
  Look();
  ASSERT_NE(line_.earmarks()->On(*now_, 0), nullptr);
  EXPECT_EQ(line_.earmarks()->On(*now_, 0)->awaiting.pod.name, "new");
}

TEST_F(EarmarkLineTest, ReservesWhenPodsHaveWaitedAsLongAsIsSaidOrNever) {
  Becomes(0, ANode("a").Gpus(8).Holding(APod("x").Whole(8).EndsWithin(minutes(60)), kAll,
                                        Started(minutes(0))));
  const auto created = std::chrono::duration_cast<seconds>(Time().wall.time_since_epoch());
  Stand(APod("large").Whole(8), static_cast<int>(created.count()));
  limits_.reserve_after = minutes(8);
  at_ += minutes(7);
  Look();
  EXPECT_TRUE(line_.earmarks()->empty());
  at_ += minutes(1);
  Look();
  EXPECT_FALSE(line_.earmarks()->empty());
  limits_.reserve_after = {};
  at_ += EarmarkLine::kBetweenScans;
  Look();
  EXPECT_TRUE(line_.earmarks()->empty()) << "also what was reserved before";
}

// Who lies goes on no reserved node as long as a tenth of the pods of its namespace are past
// their word, and nothing is reserved that counts on it.
TEST_F(EarmarkLineTest, TheWordOfANamespaceThatDoesNotKeepItCountsForNothing) {
  const auto with = [&](const char* liar) {
    now_ = SnapshotOf(
        {ANode("a").Gpus(8).Holding(APod("x").Whole(5).EndsWithin(minutes(60)), {0, 1, 2, 3, 4},
                                    Started(minutes(0))),
         ANode("b").Gpus(8).Holding(APod("y").Namespace(liar).Whole(8).Expects(minutes(1)), kAll,
                                    Started(minutes(10)))});
    Stand(APod("large").Whole(8), 1);
    at_ += EarmarkLine::kBetweenScans;
    Look();
    return Keeps(0, APod("short").Namespace("team-b").Whole(1).Expects(minutes(5)));
  };
  EXPECT_FALSE(with("team-a"));
  EXPECT_TRUE(with("team-b"));
  EXPECT_FALSE(Keeps(0, APod("s").Namespace("team-b").Whole(1).EndsWithin(minutes(5))))
      << "a deadline is no word";
}

// What becomes free on a reserved node is kept for no other pod that would stay too long.
TEST_F(EarmarkLineTest, KeepsNothingForOthersOnAReservedNode) {
  const auto half = [&](bool first, bool second) {
    ANode node("a");
    node.Gpus(8);
    if (first) {
      node.Holding(APod("x").Whole(4).EndsWithin(minutes(60)), {0, 1, 2, 3}, Started(minutes(0)));
    }
    if (second) {
      node.Holding(APod("y").Whole(4).EndsWithin(minutes(60)), {4, 5, 6, 7}, Started(minutes(0)));
    }
    return node;
  };
  Becomes(0, half(true, true));
  Stand(APod("large").Whole(8), 10);
  Stand(APod("older").Whole(1), 5);
  Look();
  Becomes(0, half(true, false));
  Look();
  EXPECT_EQ(OwnersOn(0), "");
  EXPECT_TRUE(Keeps(0, APod("older").Whole(1)));
  Becomes(0, half(false, false));
  Look();
  EXPECT_EQ(OwnersOn(0), "large");
  EXPECT_FALSE(Keeps(0, APod("large").Whole(8)));
}

TEST_F(EarmarkLineTest, GivesUpAReservationWhosePodsStayLonger) {
  Becomes(0, ANode("a").Gpus(8).Holding(APod("x").Whole(8).Expects(minutes(10)), kAll,
                                        Started(minutes(0))));
  Stand(APod("large").Whole(8), 1);
  Look();
  ASSERT_FALSE(line_.earmarks()->empty());
  at_ += minutes(12);
  Stand(APod("large").Whole(8), 1);
  Look();
  EXPECT_TRUE(line_.earmarks()->empty());
}

TEST_F(EarmarkLineTest, AGangAwaitsTheNodesThatAreFreeFirst) {
  const auto node = [&](const char* name, int gpus, minutes left) {
    std::vector<int> held;
    for (int i = 0; i < gpus; ++i) held.push_back(i);
    PodLife life = Started(minutes(0));
    life.completes = true;
    return ANode(name).Gpus(8).Holding(APod(std::string("on-") + name).Whole(gpus).EndsWithin(left),
                                       held, life);
  };
  now_ =
      SnapshotOf({node("a", 1, minutes(90)), node("b", 6, minutes(10)), node("c", 6, minutes(20))});
  StandGang({Member("m0"), Member("m1")}, 1);
  Look();
  EXPECT_FALSE(Keeps(0, APod("small").Whole(1))) << "little is held there, for long";
  EXPECT_TRUE(Keeps(1, APod("small").Whole(1)));
  EXPECT_TRUE(Keeps(2, APod("small").Whole(1)));
  EXPECT_FALSE(Keeps(1, APod("short").Whole(1).EndsWithin(minutes(15))))
      << "the gang starts in 20 minutes";
}

// A tenant may write requests of 2 MiB; those that have left take nothing.
TEST_F(EarmarkLineTest, IsBoundedInBytes) {
  const auto large = [](int i) {
    return APod("p" + std::to_string(i)).Whole(8).Models({std::string(std::size_t{1} << 20, 'm')});
  };
  for (int i = 0; i < 40; ++i) Stand(large(i), i);
  EXPECT_LE(line_.size(), 32U);
  EXPECT_GT(line_.size(), 8U);
  for (int i = 0; i < 40; ++i) line_.Leave(large(i).Request().id.uid);
  EXPECT_EQ(line_.size(), 0U);
  for (int i = 0; i < 8; ++i) Stand(large(i), i);
  EXPECT_EQ(line_.size(), 8U);
}

// Whatever comes and goes: owners fit their nodes together, nobody has more than one place, and
// nothing is kept beyond the bound but for one pod.
TEST_F(EarmarkLineTest, KeepsItsPromisesOnRandomClusters) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto nodes = static_cast<int>(2 + random.Below(6));
    const auto node_with = [&](int index) {
      ANode node("n" + std::to_string(index));
      node.Gpus(8);
      const auto held = static_cast<int>(random.Below(9));
      std::vector<int> gpus;
      for (int g = 0; g < held; ++g) gpus.push_back(g);
      APod pod("h" + std::to_string(index));
      if (random.Below(2) == 0) pod.EndsWithin(seconds(1 + random.Below(4000)));
      if (random.Below(2) == 0) pod.Expects(seconds(1 + random.Below(4000)));
      if (held > 0) node.Holding(pod.Whole(held), gpus, Started(minutes(random.Below(30))));
      return node;
    };
    std::vector<ANode> all;
    for (int i = 0; i < nodes; ++i) all.push_back(node_with(i));
    now_ = SnapshotOf(all);
    line_ = EarmarkLine();
    limits_.most_gpus = 50;
    for (int step = 0; step < 200; ++step) {
      at_ += seconds(random.Below(40));
      const std::string name = "p" + std::to_string(random.Below(12));
      switch (random.Below(4)) {
        case 0:
          Stand(APod(name)
                    .Whole(static_cast<int>(1 + random.Below(8)))
                    .Priority(static_cast<int>(random.Below(2))),
                step);
          break;
        case 1:
          line_.Leave(APod(name).Request().id.uid);
          break;
        default: {
          const auto index = static_cast<int>(random.Below(static_cast<std::uint64_t>(nodes)));
          Becomes(static_cast<NodeIndex>(index), node_with(index));
        }
      }
      Look();
      std::map<std::string, int> places;
      for (const Earmarks::OnNode& on : line_.earmarks()->nodes()) {
        int kept = 0;
        for (const EarmarkOwner& owner : on.owners) {
          ++places[owner.pod.uid];
          kept += owner.gpus;
        }
        int idle = 0;
        for (const GpuFree& gpu : now_->node(on.node).gpus()) idle += gpu.idle() ? 1 : 0;
        EXPECT_LE(kept, idle);
      }
      for (const auto& [uid, count] : places) EXPECT_EQ(count, 1) << uid;
      const int kept = line_.earmarks()->gpus();
      EXPECT_TRUE(kept * 2 <= nodes * 8 || places.size() == 1) << kept;
    }
  }
}

}  // namespace
}  // namespace berth::test::earmark_line_test
