// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "bench/replay/time/sim_clock.h"

#include <gtest/gtest.h>

namespace berth::clock_test {
namespace {

using std::chrono::seconds;

TEST(SimClock, MovesOnlyWhenTold) {
  SimClock clock;
  const Instant start = clock.Now();
  EXPECT_EQ(clock.Now(), start);
  clock.Advance(seconds(3));
  clock.Advance(seconds(4));
  EXPECT_EQ(clock.Now() - start, seconds(7));
}

TEST(SimClock, ItsWallClockIsSimulatedTooAndMovesAlong) {
  SimClock clock;
  const WallTime start = clock.Wall();
  EXPECT_EQ(SimClock().Wall(), start);
  clock.Advance(seconds(3));
  EXPECT_EQ(clock.Wall() - start, seconds(3));
}

TEST(SystemClock, NeverGoesBack) {
  const SystemClock clock;
  Instant before = clock.Now();
  for (int i = 0; i < 1000; ++i) {
    const Instant now = clock.Now();
    ASSERT_GE(now, before);
    before = now;
  }
}

}  // namespace
}  // namespace berth::clock_test
