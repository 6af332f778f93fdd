// SPDX-License-Identifier: Apache-2.0
//
// In small clusters the most pods are let in, as a search over every set of pods and moves says; in
// those that are searched in part no plan lets in more than it says, and each can be carried out.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scoring/room/most_room.h"
#include "test/support/builders.h"
#include "test/support/random_world.h"
#include "test/unit/scoring/room/every_plan.h"

namespace berth::test::most_room_property_test {
namespace {

constexpr WallTime kNow = WallTime(std::chrono::hours(24 * 365 * 50));

// A small cluster, nearly full, and up to four pods that wait, some of them in gangs of two.
class FewWait {
 public:
  explicit FewWait(std::uint64_t seed) : world_(seed) {
    const int nodes = world_.Between(2, 4), gpus = world_.OneOf<int>({2, 2, 3, 4});
    has_shares_ = world_.Chance(20);
    std::vector<std::shared_ptr<const Node>> built;
    for (int i = 0; i < nodes; ++i) built.push_back(std::make_shared<Node>(Filled(i, gpus)));
    wish_.ask.snapshot = std::make_shared<const Snapshot>(built);
    wish_.ask.rules.now = kNow;
    wish_.ask.most_moves = world_.Between(1, 2);
    for (int waiting = world_.Between(1, 4); waiting > 0;) {
      RoomGoal& goal = wish_.goals.emplace_back();
      for (int i = waiting > 1 && world_.Chance(25) ? 2 : 1; i > 0; --i, --waiting) {
        goal.pods.push_back(Drawn("w" + std::to_string(waiting), gpus, 60).Request());
      }
    }
  }
  [[nodiscard]] MostWish& wish() { return wish_; }

 private:
  APod Drawn(const std::string& name, int gpus, int large) {
    APod pod(name);
    if (world_.Chance(20)) {
      NodeConstraints constraints;
      constraints.selector = {{"zone", LabelOperator::kIn, {world_.Chance(50) ? "a" : "b"}}};
      pod.Constrained(constraints);
    }
    if (has_shares_ && world_.Chance(40)) return pod.Share(world_.OneOf<int>({300, 500}));
    return pod.Whole(world_.Chance(large) ? gpus : world_.Between(1, gpus));
  }
  Node Filled(int index, int gpus) {
    Node node = ANode("n" + std::to_string(index))
                    .Gpus(gpus)
                    .Named()
                    .Labelled({{"zone", world_.Chance(50) ? "a" : "b"}})
                    .Build();
    for (int i = world_.OneOf<int>({0, 1, 1, 2}); i > 0 && total_ < 6; --i) {
      const std::string name = "p" + std::to_string(index) + "-" + std::to_string(i);
      PodRequest pod = Drawn(name, world_.Chance(70) ? 1 : gpus - 1, 0).Request();
      pod.mobility = world_.Chance(85) ? Mobility::kMoves : Mobility::kNoController;
      pod.checkpointed = kNow - std::chrono::minutes(world_.Between(0, 300));
      const auto placement = PlaceOnNode(node, pod);
      if (!placement) continue;
      ++total_;
      node.Put(std::make_shared<const PodRecord>(PodRecord{pod, *placement, PodState::kBound, {}}));
    }
    return node;
  }

  RandomWorld world_;
  bool has_shares_ = false;
  int total_ = 0;
  MostWish wish_;
};

RoomAsk AskFor(const MostWish& wish, std::uint32_t goals) {
  RoomAsk ask = wish.ask;
  for (std::size_t i = 0; i < wish.goals.size(); ++i) {
    if ((goals >> i & 1) == 0) continue;
    ask.goal.pods.insert(ask.goal.pods.end(), wish.goals[i].pods.begin(), wish.goals[i].pods.end());
  }
  return ask;
}

// By every set of the goals, and every set of moves.
std::size_t MostByBruteForce(const MostWish& wish) {
  std::size_t most = 0;
  for (std::uint32_t goals = 1; goals < 1u << wish.goals.size(); ++goals) {
    const RoomAsk ask = AskFor(wish, goals);
    if (ask.goal.pods.size() <= most) continue;
    if (EveryPlan(ask).Least(Prices::kMoves, *wish.ask.most_moves)) most = ask.goal.pods.size();
  }
  return most;
}

std::string CarriedOut(const MostWish& wish, const MostRoom& most) {
  std::uint32_t goals = 0;
  for (const std::size_t goal : most.in) goals |= 1u << goal;
  return test::CarriedOut(AskFor(wish, goals), most.plan);
}

TEST(MostRoomProperty, LetsTheMostInWithSoManyMoves) {
  constexpr std::uint64_t kCases = 3000;
  int moved = 0, left_out = 0, several = 0;
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    FewWait few(seed);
    const MostRoom most = FindMostRoom(few.wish());
    const std::size_t best = MostByBruteForce(few.wish());
    ASSERT_EQ(most.pods, best);
    ASSERT_EQ(most.at_most, best);
    ASSERT_TRUE(most.plan.optimal);
    ASSERT_LE(std::ssize(most.plan.moves), *few.wish().ask.most_moves);
    ASSERT_EQ(most.plan.places.size(), best);
    ASSERT_EQ(best > 0 ? CarriedOut(few.wish(), most) : "", "");
    moved += most.plan.moves.empty() ? 0 : 1;
    several += most.plan.moves.size() > 1 ? 1 : 0;
    left_out += most.in.size() < few.wish().goals.size() ? 1 : 0;
  }
  RecordProperty("moved", moved);
  RecordProperty("several", several);
  RecordProperty("left_out", left_out);
  // The cases have to be worth something.
  EXPECT_GT(moved, 200);
  EXPECT_GT(several, 50);
  EXPECT_GT(left_out, 500);
}

// As where there is no time for every set: each search ends early.
TEST(MostRoomProperty, NeverSaysThatFewerFitThanDo) {
  int short_of = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    FewWait few(seed);
    int calls = 0;
    const int most_calls = static_cast<int>(seed % 7);
    few.wish().limits = [&]() -> std::optional<SearchLimits> {
      if (++calls > most_calls) return std::nullopt;
      return SearchLimits{.steps = 20};
    };
    const MostRoom most = FindMostRoom(few.wish());
    const std::size_t best = MostByBruteForce(few.wish());
    ASSERT_GE(most.at_most, best);
    ASSERT_LE(most.pods, best);
    ASSERT_LE(std::ssize(most.plan.moves), *few.wish().ask.most_moves);
    ASSERT_EQ(most.pods > 0 ? CarriedOut(few.wish(), most) : "", "");
    short_of += most.pods < best ? 1 : 0;
  }
  EXPECT_GT(short_of, 10) << "the limits were none";
}

}  // namespace
}  // namespace berth::test::most_room_property_test
