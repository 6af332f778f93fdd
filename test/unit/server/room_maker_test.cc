// SPDX-License-Identifier: Apache-2.0
//
// Room that Berth makes by itself: whom it evicts, what it holds meanwhile, when it stops.
#include "server/planners/moves/room_maker.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/unit/server/room_world.h"

namespace berth::test::room_maker_test {
namespace {

using Names = std::vector<std::string>;
using What = RoomNews::What;

// Two nodes of two GPUs with a pod of one GPU each, and one that waits for two.
class RoomMakerTest : public testing::Test {
 protected:
  RoomMakerTest() {
    world_.Runs(RoomWorld::Moves("a"), "n0", {0});
    world_.Runs(RoomWorld::Moves("b").Checkpointed(world_.clock.Wall()), "n1", {0});
  }
  // "b" has lost nothing: it moves to "a".
  void BeginsToMoveB() {
    world_.Waits(big_);
    world_.After(2);
    ASSERT_EQ(world_.evictor.asked, Names{"b"});
  }
  APod Successor() {
    APod pod = RoomWorld::Moves("b2");
    pod.Controller("c-b").Whole(1);
    return pod;
  }
  static APod Other() { return RoomWorld::Moves("x"); }
  void ExpectGivenUp(const std::string& why) {
    EXPECT_EQ(world_.sink.what(), What::kGivenUp);
    EXPECT_NE(world_.sink.text().find(why), std::string::npos) << world_.sink.text();
    EXPECT_EQ(world_.StillHeld(), "");
    EXPECT_EQ(world_.maker->stats().given_up, 1u);
  }

  RoomWorld world_{{2, 2}};
  const APod big_ = APod("big").Whole(2);
};

TEST_F(RoomMakerTest, MovesAPodAndLetsTheOtherIn) {
  BeginsToMoveB();
  EXPECT_EQ(world_.Filter(APod("other").Whole(1).Request()), Names()) << "both places are kept";
  EXPECT_EQ(world_.Comes(Successor()), Names{"n0"}) << "the place that is held for it";
  ASSERT_TRUE(world_.Bind(Successor().Request(), "n0"));
  world_.After(3);
  EXPECT_EQ(world_.maker->stats().left, 1u) << "the old one still ends";
  EXPECT_EQ(world_.Filter(big_.Request()), Names());
  world_.Ends("b");
  EXPECT_EQ(world_.Filter(APod("other").Whole(1).Request()), Names());
  world_.After(2);
  EXPECT_EQ(world_.waker.woken, Names{"big"});
  EXPECT_EQ(world_.Filter(big_.Request()), Names{"n1"});
  ASSERT_TRUE(world_.Bind(big_.Request(), "n1"));
  world_.After(1);
  EXPECT_EQ(world_.sink.what(), What::kDone);
  EXPECT_EQ(world_.StillHeld(), "");
  const RoomMaker::Stats stats = world_.maker->stats();
  EXPECT_EQ(stats.done, 1u);
  EXPECT_EQ(stats.evicted, 1u);
  EXPECT_EQ(stats.left, 0u);
  EXPECT_EQ(world_.evictor.asked, Names{"b"});
  EXPECT_TRUE(world_.maker->progress()->is_done);
  EXPECT_EQ(world_.maker->progress()->ended, "1 pod was moved for it");
}

TEST_F(RoomMakerTest, ShowsHowFarItsPlanIs) {
  using Step = RoomProgress::Step;
  EXPECT_EQ(world_.maker->progress(), nullptr);
  BeginsToMoveB();
  const auto shown = [this] { return *world_.maker->progress(); };
  EXPECT_EQ(shown().name, "default/big");
  EXPECT_FALSE(shown().is_gang);
  ASSERT_EQ(shown().moves.size(), 1u);
  EXPECT_EQ(shown().moves[0].from + ">" + shown().moves[0].to, "n1>n0");
  EXPECT_EQ(shown().moves[0].step, Step::kEnds);
  (void)world_.Comes(Successor());
  ASSERT_TRUE(world_.Bind(Successor().Request(), "n0"));
  world_.Ends("b");
  world_.After(1);
  EXPECT_EQ(shown().moves[0].step, Step::kMoved);
  EXPECT_EQ(shown().ended, "");
  world_.maker->LetGo();
  EXPECT_EQ(shown().ended, "this replica no longer leads (1 of 1 move made)");
  EXPECT_FALSE(shown().is_done);
}

TEST_F(RoomMakerTest, TellsEveryPodConcerned) {
  BeginsToMoveB();
  (void)world_.Comes(Successor());
  ASSERT_TRUE(world_.Bind(Successor().Request(), "n0"));
  world_.Ends("b");
  world_.After(1);
  std::vector<std::string> told;
  for (const RoomNews& news : world_.sink.news) {
    told.push_back((news.moved.name.empty() ? news.pod : news.moved).name + ": " + news.text);
  }
  EXPECT_EQ(told, (Names{"big: Berth moves 1 pod so that default/big has room: default/b from n1 "
                         "to n0",
                         "b: Berth evicts it from n1 so that default/big has room; a place on n0 "
                         "is held for its successor",
                         "b2: It takes the place on n0 that Berth held for the successor of "
                         "default/b"}));
}

TEST_F(RoomMakerTest, HoldsThePlaceOfALateSuccessorWhenThePodIsIn) {
  BeginsToMoveB();
  world_.Ends("b");
  (void)world_.Filter(big_.Request());
  ASSERT_TRUE(world_.Bind(big_.Request(), "n1"));
  world_.After(30);
  EXPECT_TRUE(world_.rooms.Current()->empty()) << "no node is kept any more";
  EXPECT_EQ(world_.Filter(APod("other").Whole(1).Request()), Names());
  EXPECT_EQ(world_.Comes(Successor()), Names{"n0"});
  ASSERT_TRUE(world_.Bind(Successor().Request(), "n0"));
  world_.After(1);
  EXPECT_EQ(world_.sink.text(), "1 pod was moved for it");
  EXPECT_EQ(world_.StillHeld(), "");
}

TEST_F(RoomMakerTest, AnotherPodOfTheControllersKindOnlyTakesThePlace) {
  BeginsToMoveB();
  APod larger = Successor();
  larger.Cpu(3);
  EXPECT_EQ(world_.Filter(larger.Request()), Names()) << "it asks for something else";
  EXPECT_EQ(world_.Filter(APod(Successor()).Namespace("others").Request()), Names());
  EXPECT_EQ(world_.Comes(Successor()), Names{"n0"});
  EXPECT_EQ(world_.Filter(RoomWorld::Moves("b3").Controller("c-b").Whole(1).Request()), Names())
      << "one place, one pod";
}

// A StatefulSet makes its pod anew once the old one is gone, under the same name.
TEST_F(RoomMakerTest, TheSuccessorMayHaveTheSameName) {
  BeginsToMoveB();
  world_.Ends("b");
  APod anew = RoomWorld::Moves("b");
  anew.Uid("uid-b-anew");
  EXPECT_EQ(world_.Comes(anew), Names{"n0"});
  ASSERT_TRUE(world_.Bind(anew.Request(), "n0"));
  world_.After(3);
  EXPECT_EQ(world_.Filter(big_.Request()), Names{"n1"});
  ASSERT_TRUE(world_.Bind(big_.Request(), "n1"));
  world_.After(1);
  EXPECT_EQ(world_.sink.what(), What::kDone);
  EXPECT_EQ(world_.evictor.asked, Names{"b"});
  EXPECT_EQ(world_.StillHeld(), "");
}

TEST_F(RoomMakerTest, StopsWhenABudgetRefuses) {
  world_.evictor.answer = [](const PodId&) { return PodEvictor::Outcome::kBlocked; };
  BeginsToMoveB();
  ExpectGivenUp(
      "a PodDisruptionBudget does not allow the eviction of default/b (0 of 1 move made)");
  EXPECT_EQ(world_.maker->stats().blocked, 1u);
  world_.After(1700);
  EXPECT_EQ(world_.evictor.asked.size(), 1u) << "not again for half an hour";
}

TEST_F(RoomMakerTest, StopsWhenTheApiServerDoesNotAnswer) {
  world_.evictor.answer = [](const PodId&) { return PodEvictor::Outcome::kFailed; };
  BeginsToMoveB();
  ExpectGivenUp("the eviction of default/b failed");
}

TEST_F(RoomMakerTest, StopsWhenTheSuccessorGoesElsewhere) {
  world_.Apply(NodeUpserted{ANode("n2").Gpus(1).Spec()});
  world_.Runs(APod("c").Whole(1), "n2", {0});
  BeginsToMoveB();
  world_.Ends("c");
  (void)world_.Comes(Successor());
  ASSERT_TRUE(world_.Bind(Successor().Request(), "n2"));
  world_.After(1);
  ExpectGivenUp("default/b2 went to n2 and not to n0");
}

TEST_F(RoomMakerTest, StopsWhenNoSuccessorComes) {
  BeginsToMoveB();
  world_.Ends("b");
  world_.After(10 * 60);
  EXPECT_NE(world_.StillHeld(), "") << "the grace period counts too";
  world_.After(40);
  ExpectGivenUp("no successor of default/b came in time");
}

TEST_F(RoomMakerTest, StopsWhenAPodFromElsewhereComes) {
  BeginsToMoveB();
  world_.Ends("b");
  world_.Runs(APod("stranger").Whole(1), "n1", {1});
  world_.After(1);
  ExpectGivenUp("default/stranger came to n1");
}

TEST_F(RoomMakerTest, StopsWhenItsPodIsGone) {
  BeginsToMoveB();
  world_.Gone("big");
  world_.After(1);
  ExpectGivenUp("default/big is gone");
}

TEST_F(RoomMakerTest, StopsWhenANodeIsGone) {
  BeginsToMoveB();
  world_.Apply(NodeRemoved{"n1"});
  world_.After(1);
  ExpectGivenUp("node n1 is gone");
}

TEST_F(RoomMakerTest, StopsWhenTheTargetNoLongerTakesThePod) {
  world_.Waits(big_);
  world_.After(1);  // the plan is there, and nobody was evicted yet
  ASSERT_EQ(world_.evictor.asked, Names());
  world_.Apply(
      NodeUpserted{ANode("n0").Gpus(2).Tainted("node.kubernetes.io/unschedulable").Spec()});
  world_.After(1);
  EXPECT_EQ(world_.evictor.asked, Names());
  ExpectGivenUp("node n0 no longer takes default/b");
}

TEST_F(RoomMakerTest, EvictsNoPodThatMayGoNowhereElse) {
  NodeConstraints in_a;
  in_a.selector = {{"zone", LabelOperator::kIn, {"a"}}};
  for (const char* const name : {"n0", "n1"}) {
    world_.Apply(NodeUpserted{
        ANode(name).Gpus(2).Labelled({{"zone", name == std::string("n0") ? "a" : "b"}}).Spec()});
  }
  world_.Runs(RoomWorld::Moves("a").Constrained(in_a), "n0", {0});
  world_.Runs(APod("b").Whole(1), "n1", {0});
  world_.Waits(big_);
  world_.After(60);
  EXPECT_EQ(world_.evictor.asked, Names());
  world_.Runs(RoomWorld::Moves("a").Constrained({}), "n0", {0});
  world_.After(6 * 60);
  EXPECT_EQ(world_.evictor.asked, Names{"a"}) << "it may go anywhere now";
}

TEST_F(RoomMakerTest, TheSuccessorOfAPodWithTolerationsTakesItsPlace) {
  NodeConstraints tolerates;
  tolerates.tolerations = {{"nvidia.com/gpu", TolerationOperator::kExists, "", {}}};
  world_.Runs(RoomWorld::Moves("b").Checkpointed(world_.clock.Wall()).Constrained(tolerates), "n1",
              {0});
  BeginsToMoveB();
  EXPECT_EQ(world_.Comes(Successor().Constrained(tolerates)), Names{"n0"});
}

TEST_F(RoomMakerTest, EvictsNobodyWhileThePodsBindToAnotherNodeIsOnItsWay) {
  world_.Waits(big_);
  world_.After(1);  // the plan is there, and nobody was evicted yet
  world_.Apply(NodeUpserted{ANode("n2").Gpus(2).Spec()});
  ASSERT_TRUE(world_.state.Reserve(big_.Request(), APod(big_).On("n2", {0, 1}), Instant::max()));
  world_.After(60);
  EXPECT_EQ(world_.evictor.asked, Names());
  ASSERT_TRUE(world_.state.Forget("uid-big"));  // the bind has failed
  world_.After(1);
  EXPECT_EQ(world_.evictor.asked, Names{"b"});
}

TEST_F(RoomMakerTest, EvictsNobodyWhileItsPodIsPlannedElsewhere) {
  world_.Waits(big_);
  world_.After(1);
  world_.Apply(NodeUpserted{ANode("n2").Gpus(2).Spec()});
  const PodPlacement planned{big_.Request(), APod(big_).On("n2", {0, 1})};
  ASSERT_TRUE(world_.state.Plan(std::span(&planned, 1)));
  world_.After(30);
  EXPECT_EQ(world_.evictor.asked, Names());
  const std::string uid = "uid-big";
  ASSERT_EQ(world_.state.Unplan(std::span(&uid, 1)), 1u);
  world_.After(1);
  EXPECT_EQ(world_.evictor.asked, Names{"b"});
}

TEST_F(RoomMakerTest, PodsThatNoMoveHelpsKeepNobodyElseWaiting) {
  for (int i = 0; i < 70; ++i) {
    world_.Waits(APod("hopeless" + std::to_string(i)).Namespace("evil").Whole(9).Priority(9));
  }
  world_.After(3);
  world_.Waits(big_);
  world_.After(20);
  EXPECT_EQ(world_.evictor.asked, Names{"b"});
}

TEST_F(RoomMakerTest, APodThatNoMoveHelpsComesAgainLaterEachTime) {
  // Sixty of them would fill the line of their own namespace, too: one is looked at in five
  // seconds, and each again after five minutes.
  for (int i = 0; i < 60; ++i) world_.Waits(APod("a" + std::to_string(i)).Whole(9).Priority(9));
  world_.After(10 * 60);
  world_.Waits(big_);
  world_.After(6 * 60);
  EXPECT_EQ(world_.evictor.asked, Names{"b"});
}

TEST_F(RoomMakerTest, StopsWhenKubeSchedulerDoesNotPlaceIt) {
  BeginsToMoveB();
  (void)world_.Comes(Successor());
  ASSERT_TRUE(world_.Bind(Successor().Request(), "n0"));
  world_.Ends("b");
  world_.After(60);
  EXPECT_EQ(world_.Filter(big_.Request()), Names{"n1"});
  world_.After(70);
  ExpectGivenUp("kube-scheduler did not place it in time (1 of 1 move made)");
}

TEST_F(RoomMakerTest, StopsWhenItIsTurnedOffOrNoLongerLeads) {
  BeginsToMoveB();
  world_.maker->LetGo();
  ExpectGivenUp("this replica no longer leads");
}

TEST_F(RoomMakerTest, StopsWhenItIsTurnedOff) {
  BeginsToMoveB();
  world_.maker->Use({});
  ExpectGivenUp("makeRoom.mode is no longer act");
}

TEST_F(RoomMakerTest, MovesNobodyUnlessItIsToAct) {
  MakeRoomConfig config = RoomWorld::Acts();
  world_.Waits(big_);
  config.mode = MakeRoomMode::kOff;
  world_.maker->Use(config);
  world_.After(60);
  EXPECT_TRUE(world_.sink.news.empty());
  config.mode = MakeRoomMode::kAdvise;
  world_.maker->Use(config);
  world_.After(600);
  EXPECT_EQ(world_.sink.news.size(), 1u) << "once an hour";
  EXPECT_EQ(world_.sink.what(), What::kAdvised);
  EXPECT_EQ(world_.sink.text(), "1 move would let it in: berth plan --make-room --for default/big");
  EXPECT_EQ(world_.evictor.asked, Names());
}

TEST_F(RoomMakerTest, ANewLeaderWaitsAsLongAsThePodHasTo) {
  MakeRoomConfig config = RoomWorld::Acts();
  config.after_minutes = 30;
  world_.maker->Use(config);
  world_.Waits(big_);
  world_.After(29 * 60);
  EXPECT_EQ(world_.evictor.asked, Names());
  world_.After(2 * 60);
  EXPECT_EQ(world_.evictor.asked, Names{"b"});
}

TEST_F(RoomMakerTest, KeepsToItsBudgets) {
  for (int MakeRoomConfig::*budget :
       {&MakeRoomConfig::moves_per_hour, &MakeRoomConfig::moves_per_namespace,
        &MakeRoomConfig::moves_per_node}) {
    RoomWorld world{{2, 2}};
    MakeRoomConfig config = RoomWorld::Acts();
    config.*budget = 1;
    world.maker->Use(config);
    world.Runs(RoomWorld::Moves("a"), "n0", {0});
    world.Runs(RoomWorld::Moves("b").Checkpointed(world.clock.Wall()), "n1", {0});
    world.evictor.answer = [](const PodId&) { return PodEvictor::Outcome::kFailed; };
    world.Waits(APod("big").Whole(2));
    world.After(40 * 60);
    EXPECT_EQ(world.evictor.asked.size(), 1u) << "it may have been carried out";
    world.After(40 * 60);
    EXPECT_EQ(world.evictor.asked.size(), 2u);
  }
}

TEST_F(RoomMakerTest, MovesOnlyPodsThatItMay) {
  RoomWorld world{{2, 2}};
  OwnToScheduler own;
  own.volumes = true;
  world.Runs(RoomWorld::Moves("a").LeftToScheduler(own), "n0", {0});
  world.Runs(RoomWorld::Moves("b").Controller(""), "n1", {0});
  world.Waits(APod("big").Whole(2));
  world.After(60);
  EXPECT_EQ(world.evictor.asked, Names()) << "volumes are not judged; whose pod it is is unknown";
  MakeRoomConfig config = RoomWorld::Acts();
  config.namespaces = {"batch"};
  world_.maker->Use(config);
  world_.Waits(big_);
  world_.After(60);
  EXPECT_EQ(world_.evictor.asked, Names());
}

TEST_F(RoomMakerTest, NorAPodThatMayTakeLongToEndOrIsMoreImportant) {
  RoomWorld world{{2, 2}};
  PodRequest slow = RoomWorld::Moves("a").Request();
  slow.grace_seconds = 601;
  world.Apply(PodBound{slow, RoomWorld::Moves("a").On("n0", {0}), false});
  world.Runs(RoomWorld::Moves("b").Priority(1), "n1", {0});
  world.Waits(APod("big").Whole(2));
  world.After(60);
  EXPECT_EQ(world.evictor.asked, Names());
}

TEST_F(RoomMakerTest, SoManyNodesAreKeptAtMost) {
  for (std::size_t i = 0; i < DeviceRooms::kMost; ++i) {
    DeviceRoom room;
    room.node = "kept-" + std::to_string(i);
    ASSERT_TRUE(world_.rooms.Put(room));
  }
  world_.Waits(big_);
  world_.After(2);
  EXPECT_EQ(world_.evictor.asked, Names());
  EXPECT_EQ(world_.sink.what(), What::kGivenUp);
  EXPECT_EQ(world_.rooms.Current()->size(), DeviceRooms::kMost);
}

TEST_F(RoomMakerTest, NorAPodWhoseControllerHasOneThatWaits) {
  world_.Waits(APod(Successor()).Whole(2));
  world_.After(60);
  EXPECT_EQ(world_.evictor.asked, Names{"a"});
}

TEST_F(RoomMakerTest, AKilledProcessLeavesNothingHeld) {
  BeginsToMoveB();
  world_.StartMaker(RoomWorld::Acts());
  EXPECT_EQ(world_.StillHeld(), "");
  world_.Ends("b");
  EXPECT_EQ(world_.Comes(Successor()).size(), 2u) << "it is a pod like others";
}

TEST(WhyNotByItself, RefusesWhatWouldGoBackAndForth) {
  const auto snapshot = SnapshotOf(
      std::vector<ANode>{ANode("full").Gpus(4).Holding(RoomWorld::Moves("p").Whole(2), {0, 1}),
                         ANode("empty").Gpus(4)});
  RoomPlan plan;
  plan.found = true;
  plan.moves.push_back({.pod = snapshot->node(0).pods().front(), .from = 0, .to = 1, .place = {}});
  EXPECT_EQ(WhyNotByItself(plan, *snapshot, 8),
            "default/p would go to empty, which has as much room as is made");
  EXPECT_EQ(WhyNotByItself(plan, *snapshot, 0), "it has 1 move, and at most 0 are allowed");
  plan.moves[0].to = 0;
  EXPECT_EQ(WhyNotByItself(plan, *snapshot, 8), "default/p would only change its devices");
}

// As when a pod leaves a node that has one GPU free for one that has two.
TEST(WhyNotByItself, TakesANodeThatIsEmptierNowButHasLessRoomThanIsMade) {
  const auto snapshot =
      SnapshotOf(std::vector<ANode>{ANode("crowded")
                                        .Gpus(8)
                                        .Holding(RoomWorld::Moves("p").Whole(2), {0, 1})
                                        .Holding(RoomWorld::Moves("q").Whole(5), {2, 3, 4, 5, 6}),
                                    ANode("small").Gpus(2)});
  RoomPlan plan;
  plan.found = true;
  const Node& crowded = snapshot->node(0);
  const auto p =
      std::ranges::find_if(crowded.pods(), [](const auto& pod) { return pod->pod.id.name == "p"; });
  ASSERT_NE(p, crowded.pods().end());
  plan.moves.push_back({.pod = *p, .from = 0, .to = 1, .place = {}});
  ASSERT_LT(crowded.free_gpu_milli(), snapshot->node(1).free_gpu_milli());
  EXPECT_EQ(WhyNotByItself(plan, *snapshot, 8), "");
}

// The node in the middle takes a pod as large as the one that it gives away: it is no emptier.
TEST(WhyNotByItself, CountsWhatComesToANodeThatIsLeft) {
  const auto snapshot = SnapshotOf(
      std::vector<ANode>{ANode("a").Gpus(4).Holding(RoomWorld::Moves("p").Whole(2), {0, 1}),
                         ANode("b").Gpus(4).Holding(RoomWorld::Moves("q").Whole(2), {0, 1}),
                         ANode("c").Gpus(4).Holding(RoomWorld::Moves("r").Whole(1), {0})});
  RoomPlan plan;
  plan.found = true;
  const auto pod_on = [&](NodeIndex node) { return snapshot->node(node).pods().front(); };
  plan.moves.push_back({.pod = pod_on(1), .from = 1, .to = 2, .place = {}});
  EXPECT_EQ(WhyNotByItself(plan, *snapshot, 8), "") << "b has four free then, c has three now";
  plan.moves.push_back({.pod = pod_on(0), .from = 0, .to = 1, .place = {}});
  EXPECT_EQ(WhyNotByItself(plan, *snapshot, 8), "") << "a has four free then";
  plan.moves[1] = {.pod = pod_on(2), .from = 2, .to = 1, .place = {}};
  EXPECT_EQ(WhyNotByItself(plan, *snapshot, 8),
            "default/q would go to c, which has as much room as is made");
}

// A pod of a Berth that was killed: what the API server says of it is all that is known.
TEST_F(RoomMakerTest, WaitsForAPodThatAProcessBeforeItEvicted) {
  PodBound ends{Other().Request(), APod(Other()).On("n2", {0}), false};
  world_.Apply(NodeUpserted{ANode("n2").Gpus(1).Spec()});
  ends.leaving = true;
  ends.life.evicted = true;
  world_.Apply(ends);
  world_.Waits(big_);
  world_.After(60);
  EXPECT_EQ(world_.evictor.asked, Names()) << "it still ends";
  world_.Ends("x");
  world_.waiting.Put(
      {.pod = std::make_shared<const PodRequest>(APod(Other()).Uid("uid-x-anew").Request()),
       .created = world_.clock.Wall()});
  world_.After(60);
  EXPECT_EQ(world_.evictor.asked, Names()) << "its successor has no place";
  world_.Gone("x-anew");
  world_.After(6);
  EXPECT_EQ(world_.evictor.asked, Names{"b"});
}

TEST_F(RoomMakerTest, WaitsForEvictionsOfOthersOnlyWhereTheyMayHaveBeenItsOwn) {
  world_.Apply(NodeUpserted{ANode("n2").Gpus(4).Spec()});
  const auto ends = [&](const APod& pod, int gpu, bool evicted) {
    PodBound bound{pod.Request(), APod(pod).On("n2", {gpu}), false};
    bound.leaving = true;
    bound.life.evicted = evicted;
    world_.Apply(bound);
  };
  ends(RoomWorld::Moves("deleted"), 0, false);
  ends(RoomWorld::Moves("alone").Controller(""), 1, true);
  ends(RoomWorld::Moves("daemon").Mobile(Mobility::kComesBack), 2, true);
  world_.Waits(big_);
  world_.After(6);
  EXPECT_EQ(world_.evictor.asked, Names{"b"});
}

TEST_F(RoomMakerTest, WaitsForAnEvictionOfOthersForSomeTimeOnly) {
  world_.Apply(NodeUpserted{ANode("n2").Gpus(1).Spec()});
  PodBound ends{Other().Request(), APod(Other()).On("n2", {0}), false};
  ends.leaving = true;
  ends.life.evicted = true;
  world_.Apply(ends);
  world_.Waits(big_);
  world_.After(20 * 60);
  EXPECT_EQ(world_.evictor.asked, Names());
  world_.After(11 * 60);
  EXPECT_EQ(world_.evictor.asked, Names{"b"}) << "a finalizer may keep it for ever";
}

TEST_F(RoomMakerTest, WaitsForItsOwnEvictionAfterItsPlanWasGivenUp) {
  BeginsToMoveB();
  world_.Gone("big");
  world_.After(1);
  ExpectGivenUp("default/big is gone");
  PodBound ends{RoomWorld::Moves("b").Request(), RoomWorld::Moves("b").On("n1", {0}), false};
  ends.leaving = true;
  world_.Apply(ends);
  world_.Waits(APod("larger").Whole(2));
  world_.After(60);
  EXPECT_EQ(world_.evictor.asked, Names{"b"}) << "b still ends";
}

// The answer was lost: it may have been evicted, and is not told to end.
TEST_F(RoomMakerTest, WaitsNoLongerForAPodThatIsNotToldToEnd) {
  world_.evictor.answer = [](const PodId&) { return PodEvictor::Outcome::kFailed; };
  BeginsToMoveB();
  world_.Waits(APod("larger").Whole(2));
  world_.After(20);
  EXPECT_EQ(world_.evictor.asked, Names{"b"});
  world_.After(20);
  EXPECT_EQ(world_.evictor.asked, (Names{"b", "b"}));
}

// Nobody waits; one of the two nodes is to be idle.
class IdleNodesTest : public RoomMakerTest {
 protected:
  void Keeps(int idle, int after_minutes = 0) {
    MakeRoomConfig config = RoomWorld::Acts();
    config.idle_nodes = idle;
    config.after_minutes = after_minutes;
    world_.maker->Use(config);
  }
};

TEST_F(IdleNodesTest, ANodeIsEmptiedWhereTooFewAreIdle) {
  Keeps(1);
  world_.After(2);
  ASSERT_EQ(world_.evictor.asked, Names{"b"}) << "which loses no work";
  EXPECT_EQ(world_.maker->progress()->name, "1 idle node");
  EXPECT_EQ(world_.sink.text(),
            "Berth evicts it from n1 for 1 idle node; a place on n0 is held for its successor");
  EXPECT_EQ(world_.Filter(APod("other").Whole(1).Request()), Names()) << "both places are kept";
  EXPECT_EQ(world_.Comes(Successor()), Names{"n0"});
  ASSERT_TRUE(world_.Bind(Successor().Request(), "n0"));
  world_.Ends("b");
  world_.After(2);
  EXPECT_EQ(world_.sink.what(), What::kDone);
  EXPECT_EQ(world_.StillHeld(), "");
  EXPECT_EQ(world_.maker->stats().done, 1u);
  EXPECT_EQ(world_.Filter(APod("other").Whole(1).Request()), Names{"n1"}) << "it is for anybody";
  world_.After(40 * 60);
  EXPECT_EQ(world_.evictor.asked.size(), 1u) << "one is idle";
}

TEST_F(IdleNodesTest, ItHasToHaveBeenSoForAsLongAsAPodHasToWait) {
  Keeps(1, 30);
  world_.After(30 * 60);  // a leader that is new looks at nothing
  world_.After(29 * 60);
  EXPECT_EQ(world_.evictor.asked, Names());
  world_.After(2 * 60);
  EXPECT_EQ(world_.evictor.asked, Names{"b"});
}

TEST_F(IdleNodesTest, WhoIsInNeedComesFirst) {
  Keeps(1);
  world_.Waits(big_);
  world_.After(2);
  EXPECT_EQ(world_.maker->progress()->name, "default/big");
}

TEST_F(IdleNodesTest, PodsOfAHigherPriorityStayAndMayCome) {
  Keeps(2);
  world_.After(2);
  EXPECT_EQ(world_.evictor.asked, Names()) << "two nodes cannot be idle";
  Keeps(1);
  world_.After(5 * 60);
  ASSERT_EQ(world_.evictor.asked, Names{"b"});
  const APod other = APod("other").Whole(1).Priority(1);
  EXPECT_EQ(world_.Comes(other), Names{"n1"});
  ASSERT_TRUE(world_.Bind(other.Request(), "n1"));
  world_.After(1);
  ExpectGivenUp("default/other came to n1");
}

TEST_F(IdleNodesTest, NoPodOfAHigherPriorityIsMoved) {
  world_.Ends("a");
  world_.Ends("b");
  world_.Runs(RoomWorld::Moves("c").Priority(1), "n0", {0});
  world_.Runs(RoomWorld::Moves("d").Priority(1), "n1", {0});
  Keeps(1);
  world_.After(40 * 60);
  EXPECT_EQ(world_.evictor.asked, Names());
}

TEST_F(IdleNodesTest, GivesUpWhereTwoNodesThatItKeptIdleVanishWithinAnHour) {
  world_.Apply(NodeUpserted{ANode("n2").Gpus(2).Spec()});
  world_.Apply(NodeUpserted{ANode("n3").Gpus(2).Spec()});
  Keeps(1);
  world_.After(2);
  EXPECT_EQ(world_.maker->idle(), std::set<std::string>{"n2"});
  world_.Apply(NodeRemoved{"n2"});
  world_.After(2);
  EXPECT_EQ(world_.maker->idle(), std::set<std::string>{"n3"});
  EXPECT_FALSE(world_.maker->stats().gave_idle_up);
  world_.Apply(NodeRemoved{"n3"});
  world_.After(60 * 60);
  EXPECT_EQ(world_.evictor.asked, Names()) << "it empties no more nodes";
  ASSERT_EQ(world_.sink.what(), What::kGaveIdleUp);
  EXPECT_TRUE(world_.sink.text().starts_with("2 nodes that Berth kept idle vanished"));
  EXPECT_TRUE(world_.maker->stats().gave_idle_up);
  EXPECT_EQ(world_.maker->idle(), std::set<std::string>());
  Keeps(1);  // somebody has looked
  world_.After(10);
  EXPECT_FALSE(world_.maker->stats().gave_idle_up);
  EXPECT_EQ(world_.evictor.asked, Names{"b"});
}

TEST_F(IdleNodesTest, OneThatVanishesADayIsNoAutoscaler) {
  world_.Apply(NodeUpserted{ANode("n2").Gpus(2).Spec()});
  Keeps(1);
  for (int i = 0; i < 3; ++i) {
    world_.After(2);
    world_.Apply(NodeRemoved{"n2"});
    world_.Apply(NodeUpserted{ANode("n2").Gpus(2).Spec()});
    world_.clock.Advance(std::chrono::hours(2));
  }
  EXPECT_FALSE(world_.maker->stats().gave_idle_up);
}

TEST_F(IdleNodesTest, AnotherLeaderLeavesNothingBehind) {
  Keeps(1);
  world_.After(2);
  ASSERT_EQ(world_.evictor.asked, Names{"b"});
  world_.maker->LetGo();
  ExpectGivenUp("this replica no longer leads");
}

}  // namespace
}  // namespace berth::test::room_maker_test
