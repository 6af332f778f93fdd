// SPDX-License-Identifier: Apache-2.0
#include "scoring/room/most_room.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scoring/room/room_units.h"
#include "test/support/builders.h"

namespace berth::test::most_room_test {
namespace {

constexpr WallTime kNow = WallTime(std::chrono::hours(24 * 365 * 50));

APod Moves(const std::string& name) {
  return APod(name).Whole(1).Mobile(Mobility::kMoves).Checkpointed(kNow);
}

RoomUnits MostOf(const std::vector<ANode>& nodes, const std::vector<PodRequest>& pods, int moves) {
  RoomWish wish{.ask = {.snapshot = SnapshotOf(nodes), .rules = {.now = kNow}}, .pods = pods};
  wish.most_moves = moves;
  wish.starts_whole = [](const PodRequest&) { return true; };
  return RoomFor(wish);
}

TEST(MostRoom, OneMoveLetsInThreeWhereNoneLetsInTwo) {
  const std::vector<ANode> nodes = {ANode("a").Gpus(4).Holding(Moves("p"), {0}),
                                    ANode("b").Gpus(3).Holding(Moves("q").Whole(2), {0, 1}),
                                    ANode("c").Gpus(2)};
  const auto half = [](const std::string& name) { return APod(name).Whole(2).Request(); };
  // With p on b, a has four GPUs free.
  const RoomUnits most = MostOf(nodes, {half("w1"), half("w2"), half("w3")}, 1);
  ASSERT_TRUE(most.most);
  EXPECT_EQ(most.most->names.size(), 3u);
  EXPECT_EQ(MostOf(nodes, {half("w1")}, 1).units.front().plan.moves.size(), 0u);
  EXPECT_TRUE(most.units.front().plan.optimal);
}

TEST(MostRoom, AGangComesAsAWholeOrNotAtAll) {
  const std::vector<ANode> nodes = {ANode("a").Gpus(2).Holding(Moves("p"), {0}), ANode("b").Gpus(1),
                                    ANode("c").Gpus(2).Holding(APod("x").Whole(1), {0})};
  std::vector<PodRequest> pods;
  for (const char* name : {"g1", "g2"}) {
    pods.push_back(APod(name).Gang("g").Whole(2).Request());
    pods.back().gang.minimum = 2;
  }
  pods.push_back(APod("w").Whole(2).Request());
  const RoomUnits most = MostOf(nodes, pods, 5);
  EXPECT_EQ(most.most->names, std::vector<std::string>{"default/w"});
  EXPECT_EQ(most.most->asked, 3u);
  EXPECT_EQ(most.units.front().pods, std::vector<std::size_t>{2});
  EXPECT_EQ(most.most->at_most, 1u);
}

TEST(MostRoom, OfSoManyTheMostAreFound) {
  std::vector<PodRequest> pods;
  for (std::size_t i = 0; i < kMostGoals + 3; ++i) {
    pods.push_back(APod("w" + std::to_string(i)).Whole(1).Request());
  }
  const RoomUnits most = MostOf({ANode("a").Gpus(2)}, pods, 1);
  EXPECT_EQ(most.beyond, 3u);
  EXPECT_EQ(most.most->asked, kMostGoals);
  EXPECT_EQ(most.most->names, (std::vector<std::string>{"default/w0", "default/w1"}));
  EXPECT_EQ(most.most->at_most, 2u) << "two GPUs are free";
}

// A large cluster is not searched with every choice: what was found can be made, and the bound
// holds.
TEST(MostRoom, IsFoundInALargeCluster) {
  std::vector<ANode> nodes;
  for (int i = 0; i < 100; ++i) {
    ANode node("n" + std::to_string(1000 + i));
    node.Gpus(4).Holding(Moves("p" + std::to_string(i)), {i % 4});
    nodes.push_back(node);
  }
  std::vector<PodRequest> pods;
  for (int i = 0; i < 20; ++i) pods.push_back(APod("w" + std::to_string(i)).Whole(4).Request());
  const RoomUnits most = MostOf(nodes, pods, 8);
  EXPECT_EQ(most.most->names.size(), 8u) << "each needs one";
  EXPECT_EQ(most.most->at_most, 8u);
  EXPECT_EQ(most.units.front().plan.moves.size(), 8u);
}

}  // namespace
}  // namespace berth::test::most_room_test
