// SPDX-License-Identifier: Apache-2.0
#include "server/planners/moves/room_maker.h"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/builders.h"
#include "test/unit/server/room_world.h"

namespace berth::test::evictions_under_way_test {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

const std::vector<WaitingPod> kNobodyWaits;

TEST(EvictionsUnderWay, OfMoreOnlyThoseThatAreStillThereCount) {
  ClusterState state;
  const Instant now = Instant() + hours(1);
  EvictionsUnderWay under_way(state);
  for (std::size_t i = 0; i < EvictionsUnderWay::kMost; ++i) {
    under_way.Add(RoomWorld::Moves("p" + std::to_string(i)).Request(), now);
  }
  const APod more = RoomWorld::Moves("a");  // by name before the others
  under_way.Add(more.Request(), now);
  EXPECT_EQ(under_way.First(kNobodyWaits, now, Instant()), "default/p0") << "it is not remembered";
  PodBound ends{more.Request(), APod(more).On("n", {0}), false};
  ends.leaving = true;
  ends.life.evicted = true;
  const std::vector<ClusterEvent> events = {NodeUpserted{ANode("n").Gpus(1).Spec()}, ends};
  ASSERT_TRUE(state.Apply(events));
  const Instant later = now + EvictionsUnderWay::kMadeAnew;
  EXPECT_EQ(under_way.First(kNobodyWaits, later, later), "default/a") << "the others are settled";
  EXPECT_EQ(under_way.First(kNobodyWaits, later + hours(1), Instant()), "");
}

TEST(EvictionsUnderWay, ASuccessorThatWaitsCounts) {
  ClusterState state;
  const Instant now = Instant() + hours(1);
  EvictionsUnderWay under_way(state);
  under_way.Add(RoomWorld::Moves("p").Request(), now);
  std::vector<WaitingPod> waiting(1);
  waiting[0].pod =
      std::make_shared<const PodRequest>(RoomWorld::Moves("q").Controller("c-p").Request());
  const auto first = [&](seconds after) {
    return under_way.First(waiting, now + after, Instant());
  };
  EXPECT_EQ(first(seconds(600)), "default/p");
  EXPECT_EQ(first(seconds(629)), "default/p");
  EXPECT_EQ(first(seconds(630)), "") << "ten minutes and its grace period";
}

}  // namespace
}  // namespace berth::test::evictions_under_way_test
