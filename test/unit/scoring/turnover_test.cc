// SPDX-License-Identifier: Apache-2.0
#include "scoring/waste/request_mix.h"

#include <gtest/gtest.h>

namespace berth::turnover_test {
namespace {

TEST(Turnover, IsTheShareOfArrivalsThatReplaceDepartures) {
  Turnover turnover;
  turnover.Look(1000, 400);  // a beginning: what was before says nothing
  EXPECT_EQ(turnover.share(), 0);
  turnover.Look(1100, 450);
  EXPECT_DOUBLE_EQ(turnover.share(), 0.5);
  turnover.Look(1300, 650);
  EXPECT_DOUBLE_EQ(turnover.share(), (25.0 + 200) / (50 + 200)) << "what was before counts half";
}

TEST(Turnover, StaysWithinItsRange) {
  Turnover turnover;
  turnover.Look(0, 0);
  turnover.Look(0, 7);
  EXPECT_EQ(turnover.share(), 0) << "nothing came";
  turnover.Look(1, 100);
  EXPECT_EQ(turnover.share(), 1) << "a cluster that empties";
}

TEST(AtTurnover, GoesFromFillingUpToBalance) {
  WasteParameters parameters;
  parameters.patience = 100;
  parameters.settled_patience = 4;
  parameters.optimism = 0.5;
  parameters.fragmentation = 0.5;
  parameters.settled_fragmentation = 1;
  parameters.best_fit = 0.25;
  parameters.settled_best_fit = 0.75;
  EXPECT_EQ(AtTurnover(parameters, 0), parameters);
  EXPECT_EQ(AtTurnover(parameters, 0.125).patience, 20);
  EXPECT_DOUBLE_EQ(AtTurnover(parameters, 0.125).optimism, 0.25);
  EXPECT_DOUBLE_EQ(AtTurnover(parameters, 0.125).fragmentation, 0.75);
  EXPECT_DOUBLE_EQ(AtTurnover(parameters, 0.125).best_fit, 0.5);
  EXPECT_EQ(AtTurnover(parameters, 0.25), AtTurnover(parameters, 1));
  EXPECT_EQ(AtTurnover(parameters, 1).patience, 4);
  EXPECT_EQ(AtTurnover(parameters, 1).optimism, 0);
  EXPECT_EQ(AtTurnover(parameters, 1).fragmentation, 1);
  EXPECT_EQ(AtTurnover(parameters, 1).best_fit, 0.75);
}

TEST(AtTurnover, AClusterWithRoomForAllThatComesWaitsForWhatSuitsIt) {
  const WasteParameters filling, half = AtTurnover(filling, 1, 0.5), full = AtTurnover(filling, 1);
  EXPECT_EQ(half.patience, filling.patience);
  EXPECT_EQ(half.fragmentation, filling.fragmentation);
  EXPECT_EQ(half.optimism, filling.optimism);
  EXPECT_GT(half.slot_price, filling.slot_price) << "and packs, since it will not fill up";
  EXPECT_EQ(AtTurnover(filling, 1, 0.8), full);
  EXPECT_LT(AtTurnover(filling, 1, 0.65).patience, filling.patience);
  EXPECT_GT(AtTurnover(filling, 1, 0.65).patience, full.patience);
}

}  // namespace
}  // namespace berth::turnover_test
