// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/cluster_state.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/replay/time/sim_clock.h"
#include "test/support/builders.h"
#include "test/support/mig_nodes.h"

namespace berth::test::cluster_state_test {
namespace {

using std::chrono::seconds;

constexpr Instant kStart{};
constexpr Instant kLater = kStart + seconds(30);

class ClusterStateTest : public testing::Test {
 protected:
  void Apply(const std::vector<ClusterEvent>& events) {
    const Status applied = state_.Apply(events);
    ASSERT_TRUE(applied.has_value()) << applied.error().message;
  }
  void Up(const ANode& node) { Apply({NodeUpserted{node.Spec()}}); }
  void Bound(const APod& pod, const Placement& placement) {
    Apply({PodBound{pod.Request(), placement}});
  }
  using Uids = std::vector<std::string>;
  [[nodiscard]] Uids Overdue(Instant now) const {
    Uids uids;
    for (const auto& doubt : state_.Overdue(now)) uids.push_back(doubt.pod.uid);
    return uids;
  }
  void Reserve(const APod& pod, const Placement& placement, Instant settle_after = kLater) {
    const auto reserved = state_.Reserve(pod.Request(), placement, settle_after);
    ASSERT_TRUE(reserved.has_value()) << reserved.error().message;
  }
  // Free thousandths of a GPU; -9999 where the node is not there.
  int Free(const std::string& node, std::size_t gpu = 0) {
    const auto snapshot = state_.Current();
    const NodeIndex index = snapshot->names().Find(node);
    return index == kNoNode ? -9999 : snapshot->node(index).gpus()[gpu].milli;
  }

  ClusterState state_;
  const APod half_ = APod("half").Share(500);
  const APod one_ = APod("one").Whole(1);
};

TEST_F(ClusterStateTest, AReservationReturnsTheNodeForWhichItWasMade) {
  Up(ANode("n").Gpus(2));
  const APod two = APod("two").Whole(2);
  const auto node = state_.Reserve(two.Request(), two.On("n", {0, 1}), kLater);
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ((*node)->FindPod("uid-two"), nullptr) << "without the pod";
  Up(ANode("n").Gpus(1));
  EXPECT_TRUE(CheckDevices(two.On("n", {0, 1}), (*node)->spec())) << "as it was then";
  const auto again = state_.Reserve(two.Request(), two.On("n", {0, 1}), kLater);
  EXPECT_FALSE(again) << "as it is now";
}

TEST_F(ClusterStateTest, StartsEmpty) {
  EXPECT_EQ(state_.Current()->size(), 0U);
  EXPECT_TRUE(state_.Everything().pods.empty());
  EXPECT_FALSE(state_.FindPod("uid-one").has_value());
}

// Annotations of a pod that runs: where it is stays as it was.
TEST_F(ClusterStateTest, ABoundPodsClassAndCheckpointAreThoseThatItSaidLast) {
  Up(ANode("n").Gpus(1));
  PodRequest pod = one_.Request();
  const Placement placement = one_.BoundOn("n", {0})->placement;
  Apply({PodBound{pod, placement}});
  pod.classes = {"training"};
  Apply({PodBound{pod, placement}});
  EXPECT_EQ(state_.FindPod(pod.id.uid)->pod.classes, pod.classes);
  pod.checkpointed = WallTime(std::chrono::hours(1));
  Apply({PodBound{pod, placement}});
  EXPECT_EQ(state_.FindPod(pod.id.uid)->pod.checkpointed, pod.checkpointed);
}

TEST_F(ClusterStateTest, KnowsWhereAPodMayGoThatMayBeMovedAndSharesWhatIsAlike) {
  Up(ANode("n").Gpus(4));
  NodeConstraints constraints;
  constraints.selector = {{"zone", LabelOperator::kIn, {"a"}}};
  constraints.tolerations = {{"nvidia.com/gpu", TolerationOperator::kExists, "", {}}};
  const auto of = [&](const std::string& name, Mobility mobility, std::vector<int> gpus) {
    const APod pod = APod(name).Whole(1).Mobile(mobility).Constrained(constraints);
    Bound(pod, pod.On("n", gpus));
    return state_.FindPod("uid-" + name)->pod.constraints;
  };
  const auto first = of("a", Mobility::kMoves, {0}), second = of("b", Mobility::kMoves, {1});
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(*first, constraints);
  EXPECT_EQ(first, second) << "one object for both";
  EXPECT_EQ(of("c", Mobility::kNoController, {2}), nullptr) << "nobody asks where it may go";
  Reserve(APod("d").Whole(1).Mobile(Mobility::kMoves).Constrained(constraints),
          APod("d").Whole(1).On("n", {3}));
  ASSERT_TRUE(state_.Confirm("uid-d"));
  EXPECT_EQ(state_.FindPod("uid-d")->pod.constraints, first) << "also of one that was bound here";
  constraints.selector.front().values = {"b"};
  EXPECT_EQ(*of("a", Mobility::kMoves, {0}), constraints) << "as it said last";
}

TEST(SharedConstraints, ForgetsWhatNobodyHasAnyMore) {
  SharedConstraints shared;
  for (int i = 0; i < 100'000; ++i) {
    NodeConstraints constraints;
    constraints.selector = {{"host", LabelOperator::kIn, {std::to_string(i)}}};
    (void)shared.Share(std::make_shared<const NodeConstraints>(constraints));
  }
  EXPECT_LE(shared.size(), 2000u);
}

TEST_F(ClusterStateTest, CountsTheBoundPodsWithGpusThatHaveGone) {
  Up(ANode("n").Gpus(1));
  Reserve(one_, one_.On("n", {0}));
  Apply({PodGone{"uid-one"}});
  EXPECT_EQ(state_.Current()->departed(), 0U) << "it had not come yet";
  Bound(one_, one_.On("n", {0}));
  const APod cpu("cpu");
  Bound(cpu, cpu.On("n", {}));
  Apply({PodGone{"uid-cpu"}, PodGone{"uid-one"}, PodGone{"uid-one"}});
  EXPECT_EQ(state_.Current()->departed(), 1U);
  Up(ANode("other"));
  EXPECT_EQ(state_.Current()->departed(), 1U) << "also in a snapshot that was built anew";
}

TEST_F(ClusterStateTest, HoldsAReservationUntilItIsForgotten) {
  Up(ANode("n").Gpus(1));
  const auto before = state_.Current();
  Reserve(one_, one_.On("n", {0}));
  EXPECT_EQ(Free("n"), 0);
  const auto record = state_.FindPod("uid-one");
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->state, PodState::kReserved);
  EXPECT_EQ(record->settle_after, kLater);
  EXPECT_EQ(record->placement, one_.On("n", {0}));
  EXPECT_TRUE(state_.Forget("uid-one"));
  EXPECT_TRUE(*state_.Current() == *before);
  EXPECT_FALSE(state_.FindPod("uid-one").has_value());
  EXPECT_FALSE(state_.Forget("uid-one")) << "a second time there is none";
}

TEST_F(ClusterStateTest, KeepsASnapshotThatWasTakenAsItWas) {
  Up(ANode("n").Gpus(1));
  const auto before = state_.Current();
  Reserve(one_, one_.On("n", {0}));
  EXPECT_EQ(before->node(0).gpus()[0].milli, 1000);
  EXPECT_EQ(state_.Current()->node(0).gpus()[0].milli, 0);
}

TEST_F(ClusterStateTest, ConfirmsAReservationForGood) {
  Up(ANode("n").Gpus(1));
  Reserve(one_, one_.On("n", {0}));
  EXPECT_TRUE(state_.Confirm("uid-one").has_value());
  EXPECT_EQ(state_.FindPod("uid-one")->state, PodState::kBound);
  EXPECT_TRUE(state_.Overdue(kLater + seconds(1)).empty()) << "bound pods are settled";
  EXPECT_FALSE(state_.Forget("uid-one")) << "nor are they forgotten";
  EXPECT_EQ(Free("n"), 0);
  Apply({PodGone{"uid-one"}});
  EXPECT_EQ(Free("n"), 1000);
}

TEST_F(ClusterStateTest, CannotConfirmWhatItDoesNotHold) {
  Up(ANode("n").Gpus(1));
  EXPECT_EQ(state_.Confirm("uid-one").error().code, Errc::kNotFound);
  Reserve(one_, one_.On("n", {0}));
  EXPECT_TRUE(state_.Forget("uid-one"));
  const Status late = state_.Confirm("uid-one");
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Errc::kNotFound);
  EXPECT_EQ(late.error().message, "no reservation for pod uid-one");
}

TEST_F(ClusterStateTest, ConfirmsAPodThatTheWatchSawBoundFirst) {
  Up(ANode("n").Gpus(1));
  Reserve(one_, one_.On("n", {0}));
  Bound(one_, one_.On("n", {0}));
  EXPECT_TRUE(state_.Confirm("uid-one").has_value());
  EXPECT_EQ(Free("n"), 0) << "counted once";
}

TEST_F(ClusterStateTest, TellsWhichReservationsAreOverdueAndKeepsThem) {
  Up(ANode("n").Gpus(3));
  SimClock clock;
  Reserve(APod("a").Whole(1), APod("a").Whole(1).On("n", {0}), clock.Now() + seconds(10));
  Reserve(APod("b").Whole(1), APod("b").Whole(1).On("n", {1}), clock.Now() + seconds(20));
  Bound(APod("c").Whole(1), APod("c").Whole(1).On("n", {2}));
  clock.Advance(seconds(10) - Duration(1));
  EXPECT_EQ(Overdue(clock.Now()), Uids());
  clock.Advance(Duration(1));
  EXPECT_EQ(Overdue(clock.Now()), (Uids{"uid-a"}));
  clock.Advance(seconds(1000));
  EXPECT_EQ(Overdue(clock.Now()), (Uids{"uid-a", "uid-b"}));
  EXPECT_EQ(Free("n", 0), 0) << "the pod may be bound";
  state_.Forget("uid-a");
  EXPECT_EQ(Overdue(clock.Now()), (Uids{"uid-b"}));
  EXPECT_TRUE(state_.Confirm("uid-b"));
  EXPECT_EQ(Overdue(clock.Now()), Uids());
  EXPECT_EQ(Free("n", 0), 1000);
  EXPECT_EQ(Free("n", 1), 0);
}

TEST_F(ClusterStateTest, MovesAReservationThatIsReservedAgain) {
  Up(ANode("n").Gpus(2));
  Up(ANode("m").Gpus(1));
  Reserve(one_, one_.On("n", {0}));
  Reserve(one_, one_.On("m", {0}));
  EXPECT_EQ(Free("n", 0), 1000);
  EXPECT_EQ(Free("m"), 0);
  EXPECT_EQ(state_.Everything().pods.size(), 1U);
}

TEST_F(ClusterStateTest, CountsThePodsOwnHoldingsAsFreeWhenItMovesOnItsNode) {
  Up(ANode("n").Gpus(2));
  const APod two = APod("two").Whole(2);
  Reserve(two, two.On("n", {0, 1}));
  Reserve(two, two.On("n", {0, 1}), kLater + seconds(5));
  EXPECT_EQ(state_.FindPod("uid-two")->settle_after, kLater + seconds(5));
  EXPECT_EQ(Overdue(kLater), Uids()) << "the old deadline no longer counts";
  EXPECT_EQ(Overdue(kLater + seconds(5)), (Uids{"uid-two"}));
}

TEST_F(ClusterStateTest, MovesAReservationToAnEarlierDeadline) {
  Up(ANode("n").Gpus(1));
  Reserve(one_, one_.On("n", {0}), kLater + seconds(5));
  Reserve(one_, one_.On("n", {0}), kLater);
  EXPECT_EQ(Overdue(kLater), (Uids{"uid-one"}));
}

TEST_F(ClusterStateTest, NamesOnceWhatWasReservedTwiceWithOneDeadline) {
  Up(ANode("n").Gpus(1));
  Reserve(one_, one_.On("n", {0}));
  Reserve(one_, one_.On("n", {0}));
  EXPECT_EQ(Overdue(kLater), (Uids{"uid-one"}));
}

TEST_F(ClusterStateTest, RefusesAReservationThatDoesNotFitAndChangesNothing) {
  Up(ANode("n").Gpus(2));
  Up(ANode("m").Gpus(1));
  Reserve(half_, half_.On("n", {0}));
  Reserve(one_, one_.On("m", {0}));
  const auto before = state_.Current();
  const auto refused = state_.Reserve(one_.Request(), one_.On("n", {0}), kLater);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::kConflict);
  EXPECT_EQ(refused.error().message, "node n: gpu 0 milli: want 1000, free 500");
  EXPECT_TRUE(*state_.Current() == *before);
  EXPECT_EQ(state_.FindPod("uid-one")->placement.node, "m") << "the old reservation is kept";
}

TEST_F(ClusterStateTest, PlansAllPodsOfAListWithOneSnapshotOrNone) {
  Up(ANode("n").Gpus(2));
  const APod two("two");
  const auto before = state_.Current();
  int published = 0;
  state_.OnPublish([&published] { ++published; });
  const PodPlacement one{one_.Request(), one_.On("n", {0})};
  const Status refused = state_.Plan(std::vector{
      one, PodPlacement{APod("big").Whole(2).Request(), APod("big").Whole(2).On("n", {0, 1})}});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::kConflict);
  EXPECT_EQ(state_.Current(), before) << "nothing was changed";
  EXPECT_EQ(published, 0);

  const PodPlacement half{half_.Request(), half_.On("n", {1})};
  ASSERT_TRUE(state_.Plan(std::vector{one, half}).has_value());
  EXPECT_EQ(published, 1);
  EXPECT_EQ(Free("n", 0), 0);
  EXPECT_EQ(Free("n", 1), 500);
  EXPECT_EQ(state_.FindPod("uid-one")->state, PodState::kPlanned);
  EXPECT_EQ(Overdue(Instant::max()), Uids()) << "no bind has begun, so nothing is in doubt";
  EXPECT_FALSE(state_.Forget("uid-one")) << "there is no reservation";
  EXPECT_FALSE(state_.Confirm("uid-one").has_value());
}

TEST_F(ClusterStateTest, MovesPodsThatArePlannedAlready) {
  Up(ANode("n").Gpus(2));
  const APod other = APod("other").Whole(1);
  ASSERT_TRUE(state_.Plan(std::vector{PodPlacement{one_.Request(), one_.On("n", {0})},
                                      PodPlacement{other.Request(), other.On("n", {1})}}));
  ASSERT_TRUE(state_.Plan(std::vector{PodPlacement{one_.Request(), one_.On("n", {1})},
                                      PodPlacement{other.Request(), other.On("n", {0})}}))
      << "each takes what the other gives up";
  EXPECT_EQ(state_.FindPod("uid-one")->placement.grants[0].gpu, 1);
}

TEST_F(ClusterStateTest, HandsAPlannedPlaceOver) {
  Up(ANode("n").Gpus(2));
  const APod heir = APod("heir").Whole(1);
  ASSERT_TRUE(state_.Plan(std::vector{PodPlacement{one_.Request(), one_.On("n", {1})}}));
  ASSERT_TRUE(state_.HandOver("uid-one", heir.Request()));
  EXPECT_FALSE(state_.FindPod("uid-one"));
  EXPECT_EQ(state_.FindPod("uid-heir")->placement.grants[0].gpu, 1);
  EXPECT_EQ(state_.FindPod("uid-heir")->state, PodState::kPlanned);
  EXPECT_EQ(Free("n", 1), 0);
  EXPECT_EQ(state_.HandOver("uid-one", heir.Request()).error().code, Errc::kNotFound);
  ASSERT_TRUE(state_.Plan(std::vector{PodPlacement{one_.Request(), one_.On("n", {0})}}));
  EXPECT_EQ(state_.HandOver("uid-one", heir.Request()).error().code, Errc::kConflict)
      << "it has a place already";
  Reserve(one_, one_.On("n", {0}));
  EXPECT_EQ(state_.HandOver("uid-one", APod("third").Request()).error().code, Errc::kNotFound)
      << "a bind has begun";
}

TEST_F(ClusterStateTest, ReservesAPlannedPodAndDropsPlansAlone) {
  Up(ANode("n").Gpus(3));
  const APod other = APod("other").Whole(1);
  const PodPlacement planned{other.Request(), other.On("n", {1})};
  ASSERT_TRUE(state_.Plan(std::vector{PodPlacement{one_.Request(), one_.On("n", {0})}, planned}));
  Reserve(one_, one_.On("n", {0}));
  EXPECT_EQ(Overdue(Instant::max()), Uids{"uid-one"});
  EXPECT_EQ(state_.Plan(std::vector{PodPlacement{one_.Request(), one_.On("n", {2})}}).error().code,
            Errc::kConflict)
      << "its bind is under way";
  EXPECT_EQ(state_.Unplan(std::vector<std::string>{"uid-one", "uid-other", "uid-nobody"}), 1U);
  EXPECT_EQ(Free("n", 0), 0);
  EXPECT_EQ(Free("n", 1), 1000);
  ASSERT_TRUE(state_.Plan(std::vector{planned}));
  Apply({PodGone{"uid-other"}});
  EXPECT_EQ(Free("n", 1), 1000) << "a plan goes with its pod";
}

TEST_F(ClusterStateTest, ListsTheMembersOfAGang) {
  Up(ANode("n").Gpus(4));
  const APod a = APod("a").Whole(1).Gang("ns/g"), b = APod("b").Whole(1).Gang("ns/g");
  const APod c = APod("c").Whole(1).Gang("ns/h");
  Bound(a, a.On("n", {0}));
  Bound(c, c.On("n", {1}));
  ASSERT_TRUE(state_.Plan(std::vector{PodPlacement{b.Request(), b.On("n", {2})}}));
  const ClusterState::GangContents gang = state_.GangPods(a.Request().gang.id);
  EXPECT_EQ(gang.snapshot, state_.Current()) << "of the same moment";
  const PodRecords& members = gang.pods;
  ASSERT_EQ(members.size(), 2U);
  EXPECT_EQ(members[0]->state, PodState::kBound);
  EXPECT_EQ(members[1]->state, PodState::kPlanned);
}

TEST_F(ClusterStateTest, RefusesToReserveOnANodeThatItDoesNotKnow) {
  const auto refused = state_.Reserve(one_.Request(), one_.On("n", {0}), kLater);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::kNotFound);
  EXPECT_EQ(refused.error().message, "node n is not known");
  EXPECT_FALSE(state_.FindPod("uid-one").has_value());
}

TEST_F(ClusterStateTest, RefusesToReserveForABoundPod) {
  Up(ANode("n").Gpus(2));
  Bound(one_, one_.On("n", {0}));
  const auto refused = state_.Reserve(one_.Request(), one_.On("n", {1}), kLater);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::kConflict);
  EXPECT_EQ(refused.error().message, "pod is already bound to node n");
  EXPECT_EQ(Free("n", 1), 1000);
}

TEST_F(ClusterStateTest, BelievesTheWatchOverItsReservation) {
  Up(ANode("n").Gpus(2));
  Reserve(one_, one_.On("n", {0}));
  Bound(one_, one_.On("n", {1}));
  EXPECT_EQ(Free("n", 0), 1000);
  EXPECT_EQ(Free("n", 1), 0);
  EXPECT_EQ(state_.FindPod("uid-one")->state, PodState::kBound);
  EXPECT_EQ(Overdue(kLater), Uids());
}

TEST_F(ClusterStateTest, TakesABoundPodAlsoBeyondTheCapacity) {
  Up(ANode("n").Gpus(1));
  Bound(one_, one_.On("n", {0}));
  Bound(half_, half_.On("n", {0}));
  EXPECT_EQ(Free("n"), -500);
}

TEST_F(ClusterStateTest, CountsAPodOnceHoweverOftenItIsSeenBound) {
  Up(ANode("n").Gpus(1));
  for (int i = 0; i < 3; ++i) Bound(half_, half_.On("n", {0}));
  EXPECT_EQ(Free("n"), 500);
  Apply({PodGone{"uid-half"}, PodGone{"uid-half"}, PodGone{"uid-never-seen"}});
  EXPECT_EQ(Free("n"), 1000);
}

TEST_F(ClusterStateTest, PublishesNothingWhereAnEventSaysWhatIsKnown) {
  Up(ANode("n").Gpus(2));
  Bound(one_, one_.On("n", {0}));
  const auto before = state_.Current();
  Bound(one_, one_.On("n", {0}));
  Up(ANode("n").Gpus(2));
  EXPECT_EQ(state_.Current(), before);
  PodRequest urgent = one_.Request();
  urgent.priority = 7;
  Apply({PodBound{urgent, one_.On("n", {0})}});
  EXPECT_EQ(state_.FindPod("uid-one")->pod.priority, 7);
  Apply({PodBound{urgent, one_.On("n", {1})}});
  EXPECT_EQ(Free("n", 0), 1000);
  EXPECT_EQ(Free("n", 1), 0);
}

TEST_F(ClusterStateTest, DropsAReservationWithItsPod) {
  Up(ANode("n").Gpus(1));
  Reserve(one_, one_.On("n", {0}));
  Apply({PodGone{"uid-one"}});
  EXPECT_EQ(Free("n"), 1000);
  EXPECT_EQ(Overdue(kLater), Uids());
}

TEST_F(ClusterStateTest, CountsAPodThatWasBoundBeforeItsNodeWasKnown) {
  Bound(half_, half_.On("n", {0}));
  EXPECT_EQ(state_.Current()->size(), 0U);
  Up(ANode("n").Gpus(1));
  EXPECT_EQ(Free("n"), 500);
  Apply({PodGone{"uid-half"}});
  EXPECT_EQ(Free("n"), 1000);
}

TEST_F(ClusterStateTest, FindsTheSamePodsOnANodeThatComesBack) {
  Up(ANode("n").Gpus(2));
  Bound(half_, half_.On("n", {0}));
  Reserve(one_, one_.On("n", {1}));
  Apply({NodeRemoved{"n"}});
  EXPECT_EQ(state_.Current()->size(), 0U);
  EXPECT_EQ(state_.Everything().pods.size(), 2U);
  EXPECT_TRUE(state_.Forget("uid-one")) << "while the node is away";
  Up(ANode("n").Gpus(2));
  EXPECT_EQ(Free("n", 0), 500);
  EXPECT_EQ(Free("n", 1), 1000);
}

TEST_F(ClusterStateTest, CountsTheSamePodsAgainstAChangedSpec) {
  Up(ANode("n").Gpus(2));
  Bound(half_, half_.On("n", {1}));
  Up(ANode("n").Gpus(1));
  EXPECT_EQ(Free("n", 0), 500) << "the grant's GPU is gone for now, and its pod is not";
  Up(ANode("n").Gpus(4));
  EXPECT_EQ(Free("n", 1), 500);
}

TEST_F(ClusterStateTest, MigOffersJoinTheirNodeInAnyOrder) {
  const NodeMig offered(MigByClaims(2)), other(MigByClaims(1));
  const auto mig = [this](const std::string& node) {
    const auto snapshot = state_.Current();
    return snapshot->node(snapshot->names().Find(node)).spec().mig;
  };
  Up(ANode("n"));
  Apply({GpusOffered{"n", offered}, GpusOffered{"later", offered}, GpusOffered{"n", offered}});
  EXPECT_EQ(mig("n"), offered);
  Up(ANode("later"));
  EXPECT_EQ(mig("later"), offered);
  Up(ANode("n").Cpu(1));
  EXPECT_EQ(mig("n"), offered) << "the node says nothing of it";
  Up(ANode("n").Mig(*other));
  EXPECT_EQ(mig("n"), offered) << "who read the node's spec before says what it read";
  Apply({GpusOffered{"n", {}}, GpusOffered{"nowhere", {}}});
  EXPECT_FALSE(mig("n").known());
  Up(ANode("n").Mig(*other));
  EXPECT_FALSE(mig("n").known());
}

TEST_F(ClusterStateTest, TheMigDevicesOfANodesOwnGoBeforeWhatIsOffered) {
  const MigSpec own = StaticMig(1, kBalanced);
  Apply({NodeUpserted{ANode("n").Mig(own).Spec()}, GpusOffered{"n", NodeMig(MigByClaims(2))}});
  const auto mig = [this] { return *state_.Current()->node(0).spec().mig; };
  EXPECT_EQ(mig(), own);
  Up(ANode("n"));
  EXPECT_TRUE(mig().by_claims());
  Up(ANode("n").Mig(own));
  EXPECT_EQ(mig(), own);
}

TEST_F(ClusterStateTest, AppliesNothingOfABatchWithInvalidOffers) {
  MigSpec twice = MigByClaims(2);
  twice.gpus[1].index = 0;
  const std::vector<ClusterEvent> events = {NodeUpserted{ANode("n").Spec()},
                                            GpusOffered{"n", NodeMig(twice)}};
  const Status refused = state_.Apply(events);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message,
            "node n.mig.gpus[1].index: want each GPU once and in ascending order, got 0");
  EXPECT_EQ(state_.Current()->size(), 0U);
}

TEST_F(ClusterStateTest, AppliesABatchInOrder) {
  Apply({NodeUpserted{ANode("n").Gpus(1).Spec()}, PodBound{half_.Request(), half_.On("n", {0})},
         NodeRemoved{"n"}, NodeUpserted{ANode("n").Gpus(2).Spec()},
         NodeUpserted{ANode("m").Gpus(1).Spec()}, PodBound{one_.Request(), one_.On("m", {0})},
         PodGone{"uid-one"}, NodeRemoved{"never-seen"}});
  EXPECT_EQ(Free("n", 0), 500);
  EXPECT_EQ(Free("n", 1), 1000);
  EXPECT_EQ(Free("m"), 1000);
  EXPECT_EQ(state_.Current()->names().name(0), "m") << "sorted by name";
}

TEST_F(ClusterStateTest, AppliesNothingOfABatchWithAnInvalidNode) {
  Up(ANode("n").Gpus(1));
  const auto before = state_.Current();
  const std::vector<ClusterEvent> events = {PodBound{half_.Request(), half_.On("n", {0})},
                                            NodeUpserted{ANode("m").Spec()}, NodeRemoved{"n"},
                                            NodeUpserted{ANode("Bad").Spec()}};
  const Status refused = state_.Apply(events);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::kInvalidArgument);
  EXPECT_EQ(refused.error().message, "node.name: want a DNS-1123 name, got \"Bad\"");
  EXPECT_EQ(state_.Current(), before) << "not even a new snapshot";
  EXPECT_FALSE(state_.FindPod("uid-half").has_value());
}

TEST_F(ClusterStateTest, KeepsTheNameTableWhileTheSetOfNodesStays) {
  Up(ANode("n").Gpus(1));
  const auto before = state_.Current();
  Up(ANode("n").Gpus(2));
  Bound(half_, half_.On("n", {0}));
  EXPECT_TRUE(state_.Current()->SameNodes(*before));
  Up(ANode("m").Gpus(1));
  EXPECT_FALSE(state_.Current()->SameNodes(*before));
}

TEST_F(ClusterStateTest, ListsEverythingByUid) {
  Up(ANode("n").Gpus(3));
  Reserve(APod("c").Whole(1), APod("c").Whole(1).On("n", {0}));
  Bound(APod("a").Whole(1), APod("a").Whole(1).On("n", {1}));
  Bound(APod("b").Cpu(1), APod("b").Cpu(1).On("elsewhere"));
  const ClusterState::Contents everything = state_.Everything();
  EXPECT_EQ(everything.snapshot, state_.Current());
  ASSERT_EQ(everything.pods.size(), 3U);
  EXPECT_EQ(everything.pods[0].pod.id.uid, "uid-a");
  EXPECT_EQ(everything.pods[1].placement.node, "elsewhere");
  EXPECT_EQ(everything.pods[2].state, PodState::kReserved);
}

}  // namespace
}  // namespace berth::test::cluster_state_test
