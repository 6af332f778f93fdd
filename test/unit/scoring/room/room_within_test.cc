// SPDX-License-Identifier: Apache-2.0
#include "scoring/room/room_within.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scoring/room/move_bound.h"
#include "test/support/builders.h"
#include "test/support/random_world.h"

namespace berth::test::room_within_test {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kNow = WallTime(std::chrono::hours(24 * 365 * 50));
using Nodes = std::array<std::int64_t, 4>;

APod Moves(const std::string& name) {
  APod pod(name);
  pod.Mobile(Mobility::kMoves).Checkpointed(kNow - 60min);
  return pod;
}

std::vector<RoomWithin> Within(const std::vector<ANode>& nodes) {
  return FindRoomWithin({.snapshot = SnapshotOf(nodes), .rules = {.now = kNow}});
}

TEST(RoomWithin, CountsTheNodesThatFewMovesMakeIdle) {
  const auto found = Within(
      {ANode("one").Gpus(4).Holding(Moves("a").Whole(1), {0}),
       ANode("two").Gpus(4).Holding(Moves("b").Whole(1), {0}).Holding(Moves("c").Whole(1), {1}),
       ANode("full").Gpus(4).Holding(APod("x").Whole(1), {0}), ANode("idle").Gpus(4)});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].gpus, 4);
  EXPECT_EQ(found[0].nodes, (Nodes{1, 1, 2, 2}));
}

TEST(RoomWithin, AnIdleNodeIsNoPlaceForThem) {
  EXPECT_EQ(Within({ANode("a").Gpus(2).Holding(Moves("p").Whole(1), {0}), ANode("idle").Gpus(2)})
                .front()
                .nodes,
            Nodes());
}

TEST(RoomWithin, NorIsANodeThatTheyMayNotUse) {
  NodeConstraints here;
  here.selector = {{"kubernetes.io/hostname", LabelOperator::kIn, {"a"}}};  // as Kueue pins pods
  const auto within = [&](const NodeConstraints& constraints) {
    return Within({ANode("a")
                       .Gpus(2)
                       .Labelled({{"kubernetes.io/hostname", "a"}})
                       .Holding(Moves("p").Whole(1).Constrained(constraints), {0}),
                   ANode("b").Gpus(2).Holding(APod("stays").Whole(1), {0})})
        .front()
        .nodes;
  };
  EXPECT_EQ(within(here), Nodes());
  EXPECT_EQ(within({}), (Nodes{1, 1, 1, 1}));
}

TEST(RoomWithin, NorDoPodsMoveThatStay) {
  EXPECT_EQ(Within({ANode("a").Gpus(2).Holding(APod("stays").Whole(1), {0}),
                    ANode("b").Gpus(2).Holding(APod("stays-too").Whole(1), {0})})
                .front()
                .nodes,
            Nodes());
}

TEST(RoomWithin, EachModelAndSizeIsCountedForItself) {
  const auto found = Within({ANode("a").Model("A100").Gpus(2).Holding(Moves("p").Whole(1), {0}),
                             ANode("b").Model("T4").Gpus(2).Holding(Moves("q").Whole(1), {0}),
                             ANode("c").Model("T4").Gpus(4).Holding(APod("x").Whole(1), {0}),
                             ANode("d").Model("A100").Gpus(4).Holding(APod("y").Whole(1), {0})});
  ASSERT_EQ(found.size(), 4u);
  for (const RoomWithin& kind : found) {
    EXPECT_EQ(kind.nodes[0], kind.gpus == 2 ? 1 : 0) << kind.model << " " << kind.gpus;
  }
}

// As many moves as it says are enough only if no proof says that more are needed.
TEST(RoomWithin, IsNeverMoreThanTheBoundAllows) {
  int more = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomWorld world(seed);
    std::vector<ANode> nodes;
    int idle = 0;
    for (int i = 0; i < 6; ++i) {
      ANode node("n" + std::to_string(i));
      node.Gpus(4);
      const int pods = world.Between(0, 3);
      for (int p = 0; p < pods; ++p) {
        const std::string name = "p" + std::to_string(i) + std::to_string(p);
        node.Holding(world.Chance(80) ? Moves(name).Whole(1) : APod(name).Whole(1), {p});
      }
      idle += pods == 0 ? 1 : 0;
      nodes.push_back(node);
    }
    RoomAsk ask{.snapshot = SnapshotOf(nodes), .rules = {.now = kNow}};
    const std::vector<RoomWithin> found = FindRoomWithin(ask);
    ASSERT_EQ(found.size(), 1u);
    ASSERT_TRUE(std::ranges::is_sorted(found[0].nodes));
    for (std::size_t i = 0; i < kMovesWithin.size(); ++i) {
      if (found[0].nodes[i] == 0) continue;
      ++more;
      ask.goal.idle_nodes = idle + static_cast<int>(found[0].nodes[i]);
      const RoomBound bound = BoundOfMoves(RoomNodes(ask), Prices::kMoves);
      ASSERT_FALSE(bound.impossible);
      ASSERT_LE(bound.price, kMovesWithin[i]);
    }
  }
  EXPECT_GT(more, 200);
}

TEST(RoomWithin, EndsWhenItIsEnough) {
  RoomAsk ask{.snapshot = SnapshotOf(
                  std::vector<ANode>{ANode("a").Gpus(2).Holding(Moves("p").Whole(1), {0}),
                                     ANode("b").Gpus(2).Holding(APod("x").Whole(1), {0})}),
              .rules = {.now = kNow}};
  ask.limits.enough = [] { return true; };
  EXPECT_EQ(FindRoomWithin(ask).front().nodes, Nodes());
}

}  // namespace
}  // namespace berth::test::room_within_test
