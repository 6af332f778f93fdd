// SPDX-License-Identifier: Apache-2.0
#include "scoring/waste/market.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace berth::test::share_worth_test {
namespace {

TEST(ShareWorth, IsNothingWhereNothingIsAsked) { EXPECT_EQ(WorthOfLevels({}, Levels{}), Levels{}); }

TEST(ShareWorth, OfASizeThatNobodyWillAskForIsNothing) {
  const std::vector<ShareDemand> demand = {{30, 0}, {70, 10}};
  const Levels worth = ExpectedWorthOfLevels(demand, Levels{});
  EXPECT_EQ(worth[69], 0);
  EXPECT_NEAR(worth[70], 1, 1e-9);
}

TEST(ShareWorth, OfOneSizeIsItsPartOfAFreshGpu) {
  const std::vector<ShareDemand> thirds = {{30, 9}};
  const Levels fresh = WorthOfLevels(thirds, Levels{});
  EXPECT_NEAR(fresh[29], 0, 1e-9);
  EXPECT_NEAR(fresh[30], 1.0 / 3, 1e-9);
  EXPECT_NEAR(fresh[99], 1, 1e-9);
  Levels open{};
  open[60] = 4;
  EXPECT_NEAR(WorthOfLevels(thirds, open)[30], 1.0 / 3, 1e-9) << "eight of nine find room";
  open[60] = 5;
  EXPECT_NEAR(WorthOfLevels(thirds, open)[30], 0, 1e-9);
}

// Gilmore and Gomory: prices of demands are feasible where no pattern is worth more than its GPU,
// and best where what they make of the demand is what the best cut takes. Sizes that fill a GPU
// together are cut without rest, so that the best cut is known.
TEST(ShareWorth, PricesAllDemandsAtTheGpusThatTheyNeed) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    const int small = 1 + static_cast<int>(random.Below(49));
    const double pairs = 1 + static_cast<double>(random.Below(100));
    const double singles = static_cast<double>(random.Below(100));
    Levels open{};
    open[static_cast<std::size_t>(100 - small)] = static_cast<double>(random.Below(50));
    const std::vector<ShareDemand> demand = {{small, pairs}, {100 - small, pairs + singles}};
    const Levels worth = WorthOfLevels(demand, open);
    double value = 0;
    for (const ShareDemand& each : demand) {
      value += each.count * worth[static_cast<std::size_t>(each.level)];
    }
    for (std::size_t level = 1; level < kLevels; ++level) value -= open[level] * worth[level];
    // A large share needs a GPU or an open part of just its size; then small ones fill the rest.
    const double fresh =
        std::max(pairs + singles - open[static_cast<std::size_t>(100 - small)], 0.0);
    const double beside = std::max(pairs - fresh, 0.0) / (kLevels / small);
    const double saved = open[static_cast<std::size_t>(100 - small)] - (pairs + singles);
    EXPECT_LE(value, fresh + beside + 1e-6) << "round " << round;
    if (saved <= 0) {
      EXPECT_NEAR(value, fresh + beside, 1e-6) << "round " << round;
    }
    EXPECT_LE(worth[kLevels], 1 + 1e-6);
  }
}

TEST(ShareWorth, IsNeverLessForMoreAndNeverMoreThanItsParts) {
  Random random(1);
  for (int round = 0; round < 100; ++round) {
    std::vector<ShareDemand> demand;
    Levels open{};
    for (int level = 1 + static_cast<int>(random.Below(9)); level <= kLevels;
         level += 1 + static_cast<int>(random.Below(20))) {
      demand.push_back({level, static_cast<double>(random.Below(300))});
      open[static_cast<std::size_t>(kLevels - level)] = static_cast<double>(random.Below(60));
    }
    const Levels worth = ExpectedWorthOfLevels(demand, open);
    EXPECT_EQ(worth, ExpectedWorthOfLevels(demand, open)) << "the same each time";
    for (std::size_t a = 1; a <= kLevels; ++a) {
      ASSERT_GE(worth[a], worth[a - 1]);
      ASSERT_LE(worth[a], 1 + 1e-6);
      for (std::size_t b = 1; a + b <= kLevels; ++b) {
        ASSERT_GE(worth[a + b] + 1e-6, worth[a] + worth[b]) << "two parts do not do as much as one";
      }
    }
  }
}

}  // namespace
}  // namespace berth::test::share_worth_test
