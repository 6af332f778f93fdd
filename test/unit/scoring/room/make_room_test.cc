// SPDX-License-Identifier: Apache-2.0
#include "scoring/room/make_room.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scoring/room/room_units.h"
#include "test/support/builders.h"
#include "test/unit/scoring/room/every_plan.h"

namespace berth::test::make_room_test {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kNow = WallTime(std::chrono::hours(24 * 365 * 50));

// One that may be moved, and has saved its work so long ago.
APod Moves(const std::string& name, std::chrono::minutes since = 60min) {
  APod pod(name);
  pod.Mobile(Mobility::kMoves).Checkpointed(kNow - since);
  return pod;
}

RoomAsk AskOf(const std::vector<ANode>& nodes, std::vector<PodRequest> pods) {
  return {.snapshot = SnapshotOf(nodes), .goal = {.pods = std::move(pods)}, .rules = {.now = kNow}};
}

std::string Told(const RoomPlan& plan, const Snapshot& snapshot) {
  std::string text;
  for (const PodMove& move : plan.moves) {
    text += move.pod->pod.id.name + ":" + snapshot.node(move.from).spec().name + ">" +
            snapshot.node(move.to).spec().name;
    if (move.waits_for != kNoMove) text += "(after " + std::to_string(move.waits_for) + ")";
    text += " ";
  }
  return text;
}

TEST(MakeRoom, MovesTheOneThatLosesLeast) {
  const auto nodes =
      std::vector<ANode>{ANode("a").Gpus(2).Holding(Moves("old", 300min).Whole(1), {0}),
                         ANode("b").Gpus(2).Holding(Moves("young", 20min).Whole(1), {0}),
                         ANode("c").Gpus(2).Holding(Moves("dear", 600min).Whole(1), {1})};
  const RoomAsk ask = AskOf(nodes, {APod("w").Whole(2).Request()});
  const RoomPlan plan = MakeRoom(ask);
  ASSERT_TRUE(plan.found);
  EXPECT_EQ(Told(plan, *ask.snapshot), "young:b>a ");
  EXPECT_TRUE(plan.optimal);
  EXPECT_EQ(plan.least_moves.price, 1);
  EXPECT_EQ(plan.cost, plan.least_cost.price);
  EXPECT_EQ(plan.moves[0].place.grants.front().gpu, 1);
  EXPECT_EQ(CarriedOut(ask, plan), "");
}

TEST(MakeRoom, AChainComesInTheOrderInWhichPlacesAreFree) {
  // "big" has to go to b, which "small" has to leave for c first.
  const auto nodes = std::vector<ANode>{
      ANode("a").Gpus(4).Holding(Moves("big").Whole(2), {0, 1}),
      ANode("b").Gpus(3).Holding(Moves("small").Whole(1), {0}).Holding(APod("x").Whole(1), {1}),
      ANode("c").Gpus(1)};
  const RoomAsk ask = AskOf(nodes, {APod("w").Whole(4).Request()});
  const RoomPlan plan = MakeRoom(ask);
  ASSERT_TRUE(plan.found);
  EXPECT_EQ(Told(plan, *ask.snapshot), "small:b>c big:a>b ");
  EXPECT_EQ(CarriedOut(ask, plan), "");
}

TEST(MakeRoom, ACircleSaysWhoWaitsForWhom) {
  // Each has to go where the other one is, and no GPU is free: the goal asks for CPUs of a.
  const auto nodes = std::vector<ANode>{
      ANode("a").Gpus(1).Cpu(10).Model("T4").Holding(Moves("many").Whole(1).Cpu(8), {0}),
      ANode("b").Gpus(1).Cpu(20).Model("T4").Holding(Moves("few").Whole(1).Cpu(1), {0})};
  RoomAsk ask = AskOf(nodes, {APod("w").Cpu(9).Request()});
  NodeConstraints on_a;
  on_a.either.emplace(1).front().fields = {{"metadata.name", LabelOperator::kIn, {"a"}}};
  ask.goal.pods[0].constraints = std::make_shared<const NodeConstraints>(on_a);
  const RoomPlan plan = MakeRoom(ask);
  ASSERT_TRUE(plan.found);
  ASSERT_EQ(plan.moves.size(), 2u);
  EXPECT_EQ(plan.moves[0].waits_for, 1u);
  EXPECT_EQ(plan.moves[0].spare, kNoNode);
  EXPECT_EQ(plan.moves[1].waits_for, kNoMove);
  EXPECT_EQ(CarriedOut(ask, plan), "");
}

TEST(MakeRoom, EmptiesTheCheapestNodesOfAModel) {
  const auto nodes = std::vector<ANode>{
      ANode("a").Gpus(2).Model("H100").Holding(Moves("a1", 500min).Whole(1), {0}),
      ANode("b").Gpus(2).Model("H100").Holding(Moves("b1", 50min).Whole(1), {0}),
      ANode("c").Gpus(2).Model("T4"),
      ANode("d").Gpus(2).Model("H100").Holding(APod("d1").Whole(1), {0})};
  RoomAsk ask = AskOf(nodes, {});
  ask.goal.idle_nodes = 1;
  ask.goal.model = "H100";
  const RoomPlan plan = MakeRoom(ask);
  ASSERT_TRUE(plan.found);
  EXPECT_EQ(Told(plan, *ask.snapshot).substr(0, 5), "b1:b>");
  EXPECT_EQ(plan.idle, std::vector<NodeIndex>{1});
  EXPECT_TRUE(plan.optimal);
  ask.goal.idle_nodes = 3;
  EXPECT_TRUE(MakeRoom(ask).least_cost.impossible) << "d1 stays";
}

TEST(MakeRoom, MovesNoPodToANodeThatItMayNotUse) {
  NodeConstraints in_a;
  in_a.selector = {{"zone", LabelOperator::kIn, {"a"}}};
  const auto nodes = std::vector<ANode>{
      ANode("n0")
          .Gpus(2)
          .Labelled({{"zone", "a"}})
          .Holding(Moves("p").Whole(1).Constrained(in_a), {0}),
      ANode("n1").Gpus(2).Labelled({{"zone", "b"}}).Holding(APod("stays").Whole(1), {0})};
  const RoomPlan plan = MakeRoom(AskOf(nodes, {APod("w").Whole(2).Request()}));
  EXPECT_FALSE(plan.found);
  EXPECT_TRUE(plan.optimal);
}

TEST(MakeRoom, MovesPodsThatTolerateTheTaintOfAllNodes) {
  NodeConstraints tolerates;
  tolerates.tolerations = {{"nvidia.com/gpu", TolerationOperator::kExists, "", {}}};
  const auto on = [&](const std::string& name, const std::string& pod) {
    return ANode(name)
        .Gpus(2)
        .Tainted("nvidia.com/gpu", "present")
        .Holding(Moves(pod).Whole(1).Constrained(tolerates), {0});
  };
  const RoomAsk ask =
      AskOf({on("a", "p"), on("b", "q")}, {APod("w").Whole(2).Constrained(tolerates).Request()});
  const RoomPlan plan = MakeRoom(ask);
  ASSERT_TRUE(plan.found);
  EXPECT_EQ(plan.moves.size(), 1u);
  EXPECT_EQ(CarriedOut(ask, plan), "");
}

TEST(MakeRoom, AMovedPodKeepsItsModelUnlessItMayChange) {
  const auto nodes =
      std::vector<ANode>{ANode("a").Gpus(2).Model("H100").Holding(Moves("p").Whole(1), {0}),
                         ANode("b").Gpus(2).Model("A40").Holding(APod("x").Whole(1), {0})};
  RoomAsk ask = AskOf(nodes, {APod("w").Whole(2).Request()});
  EXPECT_FALSE(MakeRoom(ask).found);
  ask.rules.keep_model = false;
  EXPECT_EQ(Told(MakeRoom(ask), *ask.snapshot), "p:a>b ");
  ask.rules.keep_model = true;
  ask.goal.pods = {APod("cpu").Cpu(60).Request()};
  EXPECT_TRUE(MakeRoom(ask).found);
}

TEST(MakeRoom, FreesNoGpuThatIsNotThere) {
  const auto nodes = std::vector<ANode>{
      ANode("a").Gpus(2).Holding(Moves("p").Whole(1), {0}),
      ANode("b").Gpus(2).Holding(Moves("q").Whole(1), {0}).Holding(Moves("r").Whole(1), {1})};
  const RoomPlan plan = MakeRoom(AskOf(nodes, {APod("w").Whole(2).Request()}));
  EXPECT_FALSE(plan.found);
  EXPECT_TRUE(plan.optimal);
  EXPECT_EQ(plan.least_cost.by, BoundBy::kFreeGpus);
}

TEST(MakeRoom, MovesNobodyWhoStays) {
  const auto with = [](const PodRecord& record) { return WhyItStays(record, {.now = kNow}); };
  PodRecord pod = *Moves("p").Whole(1).BoundOn("a", {0});
  EXPECT_EQ(with(pod), Stays::kNot);
  PodRecord unreadable = pod;
  unreadable.pod.refusal = "annotation berth.dev/gpu-model: want a name";
  EXPECT_EQ(with(unreadable), Stays::kUnknown) << "nobody knows where it may go";
  PodRecord other = pod;
  other.pod.mobility = Mobility::kUnknown;
  EXPECT_EQ(with(other), Stays::kUnknown);
  other.pod.mobility = Mobility::kDoNotDisrupt;
  EXPECT_EQ(with(other), Stays::kDoNotDisrupt);
  other = pod;
  other.pod.keep = true;
  EXPECT_EQ(with(other), Stays::kKeep);
  other = pod;
  other.life.started = kNow - 9min;
  EXPECT_EQ(with(other), Stays::kYoung);
  other = pod;
  other.pod.gang.id = GangId::Of("ns/g");
  EXPECT_EQ(with(other), Stays::kGang);
  other = pod;
  other.pod.scheduler = "volcano";
  EXPECT_EQ(WhyItStays(other, {.now = kNow, .schedulers = {""}}), Stays::kScheduler);
  EXPECT_EQ(WhyItStays(other, {.now = kNow, .schedulers = {"volcano"}}), Stays::kNot);
  EXPECT_EQ(with(other), Stays::kNot) << "nobody knows who asks Berth";
  other = pod;
  other.pod.claims = {"c"};
  EXPECT_EQ(with(other), Stays::kClaims);
  other = pod;
  other.leaving = true;
  EXPECT_EQ(with(other), Stays::kUnder);
}

TEST(MakeRoom, ABudgetHasToAllowOneEviction) {
  std::vector<PodDisruptionBudget> budgets = {{"default", "b", LabelSelector{}, 0}};
  const PodRecord pod = *Moves("p").Whole(1).BoundOn("a", {0});
  EXPECT_EQ(WhyItStays(pod, {.now = kNow, .budgets = budgets}), Stays::kBudget);
  budgets[0].disruptions_allowed = 1;
  EXPECT_EQ(WhyItStays(pod, {.now = kNow, .budgets = budgets}), Stays::kNot);
  budgets.push_back({"default", "c", LabelSelector{}, 1});
  EXPECT_EQ(WhyItStays(pod, {.now = kNow, .budgets = budgets}), Stays::kBudget)
      << "the API server evicts no pod with two budgets";
}

TEST(MakeRoom, WorkGpusAndImportanceMakeTheCost) {
  const auto cost = [](const APod& pod) { return MoveCost(*pod.BoundOn("a", {0}), kNow); };
  EXPECT_EQ(cost(Moves("p", 55min).Whole(1)), 60'500) << "55 min of work, 5 and a half to restart";
  EXPECT_LT(cost(Moves("p", 55min).Whole(1)), cost(Moves("p", 56min).Whole(1)));
  PodRecord dear = *Moves("p", 55min).Whole(1).BoundOn("a", {0});
  dear.pod.deletion_cost = 1 << 27;
  EXPECT_EQ(MoveCost(dear, kNow), 121'000);
  dear.pod.deletion_cost = std::numeric_limits<int>::min();
  dear.pod.priority = std::numeric_limits<int>::min();
  EXPECT_EQ(MoveCost(dear, kNow), 6'050) << "a tenth, and never nothing";
  dear.pod.checkpointed = kNow + 48h;  // a clock that is ahead
  EXPECT_GT(MoveCost(dear, kNow), 0);
}

TEST(RoomFor, PlansOneAfterTheOtherAndMovesNobodyTwice) {
  const auto nodes =
      std::vector<ANode>{ANode("a").Gpus(2).Holding(Moves("p", 20min).Whole(1), {0}),
                         ANode("b").Gpus(2).Holding(Moves("q", 30min).Whole(1), {0}),
                         ANode("c").Gpus(2).Holding(Moves("r", 40min).Whole(1), {0}),
                         ANode("d").Gpus(2).Holding(Moves("s", 50min).Whole(1), {0})};
  const std::vector<PodRequest> pods = {APod("w1").Whole(2).Request(),
                                        APod("w2").Whole(2).Request()};
  RoomWish wish{.ask = {.snapshot = SnapshotOf(nodes), .rules = {.now = kNow}}, .pods = pods};
  const RoomUnits told = RoomFor(wish);
  ASSERT_EQ(told.units.size(), 2u);
  EXPECT_EQ(Told(told.units[0].plan, *wish.ask.snapshot), "p:a>b ");
  EXPECT_EQ(Told(told.units[1].plan, *wish.ask.snapshot), "r:c>d ");
}

TEST(RoomFor, AGangHasAPlanTogetherInOneDomain) {
  std::vector<ANode> nodes;
  for (const char* const name : {"a", "b", "c", "d"}) {
    nodes.push_back(
        ANode(name)
            .Gpus(2)
            .Labelled({{"rack", name[0] < 'c' ? "1" : "2"}})
            .Holding(Moves(std::string("p") + name, name[0] < 'c' ? 60min : 20min).Whole(1), {0}));
  }
  nodes.push_back(ANode("e").Gpus(8));
  std::vector<PodRequest> pods;
  for (int i = 0; i < 2; ++i) {
    pods.push_back(
        APod("g" + std::to_string(i)).Whole(2).Gang("ns/g").GangSize(2).Requires(0).Request());
  }
  RoomWish wish{.ask = {.snapshot = SnapshotOf(nodes), .rules = {.now = kNow}}, .pods = pods};
  const std::vector<std::string_view> racks = {"1", "1", "2", "2", ""};
  wish.tree = std::make_shared<const DomainTree>(5, 1, racks);
  wish.starts_whole = [](const PodRequest&) { return true; };
  const RoomUnits told = RoomFor(wish);
  ASSERT_EQ(told.units.size(), 1u);
  EXPECT_EQ(told.units[0].name, "ns/g");
  ASSERT_TRUE(told.units[0].plan.found);
  ASSERT_EQ(told.units[0].plan.places.size(), 2u);
  for (const auto& place : told.units[0].plan.places) EXPECT_GE(place.placement.node, "c");
  pods.pop_back();
  wish.pods = pods;
  EXPECT_EQ(RoomFor(wish).units[0].problem, "of the 2 pods that it needs, 1 waits");
}

// A cluster may have thousands of pods that wait, and a tenant makes as many as it likes.
TEST(RoomFor, PlansForSoManyAndNamesHowManyAreLeft) {
  std::vector<PodRequest> pods;
  for (int i = 0; i < 70; ++i) pods.push_back(APod("w" + std::to_string(i)).Whole(2).Request());
  RoomWish wish{.ask = {.snapshot = SnapshotOf({ANode("a").Gpus(1)}), .rules = {.now = kNow}},
                .pods = pods};
  const RoomUnits told = RoomFor(wish);
  EXPECT_EQ(told.units.size(), kMostUnits);
  EXPECT_EQ(told.beyond, 70 - kMostUnits);
}

TEST(RoomFor, PlansForNoGangOfThousands) {
  std::vector<PodRequest> pods;
  for (int i = 0; i < 3000; ++i) {
    pods.push_back(
        APod("m" + std::to_string(i)).Whole(1).Gang("berth:ml/train").GangSize(3000).Request());
  }
  RoomWish wish{.ask = {.snapshot = SnapshotOf({ANode("a").Gpus(8)}), .rules = {.now = kNow}},
                .pods = pods,
                .starts_whole = [](const PodRequest&) { return true; }};
  const RoomUnits told = RoomFor(wish);
  ASSERT_EQ(told.units.size(), 1U);
  EXPECT_EQ(told.units[0].problem, "it has 3000 pods, and room is planned for at most 256");
}

// 800 pods that could displace each other in a row, since the only idle GPUs are of a model that
// none of them takes: the search gives up.
TEST(MakeRoom, ARowOfPodsThatDisplaceEachOtherEnds) {
  std::vector<ANode> nodes{ANode("idle").Gpus(8).Model("T4")};
  for (int i = 0; i < 100; ++i) {
    ANode node = ANode("n" + std::to_string(i)).Gpus(8).Model("A100");
    for (int gpu = 0; gpu < 8; ++gpu) {
      const std::string name = "p" + std::to_string(i) + "-" + std::to_string(gpu);
      node.Holding(Moves(name).Whole(1).Models({"A100"}), {gpu});
    }
    nodes.push_back(node);
  }
  const RoomPlan plan = MakeRoom(AskOf(nodes, {APod("w").Whole(1).Models({"A100"}).Request()}));
  EXPECT_FALSE(plan.found);
}

}  // namespace
}  // namespace berth::test::make_room_test
