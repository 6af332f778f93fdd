// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/time/seed_means.h"

#include <gtest/gtest.h>

namespace berth::replay::seed_means_test {
namespace {

ClassService& Eight(SimulationResult& result) {
  return result.service[static_cast<std::size_t>(SizeClass::kEight)];
}

TEST(SeedMeans, OfOneRunAreItsFigures) {
  SimulationResult run;
  run.horizon_hours = 6;
  run.gpus_total = 8;
  run.attempts = 7;
  Eight(run) = {.arrived = 3, .never = 1, .wait_p99_s = 5, .starvation = 2, .p99_cut_off = true};
  const SimulationResult mean = MeanOf({run});
  EXPECT_DOUBLE_EQ(mean.horizon_hours, 6);
  EXPECT_EQ(mean.gpus_total, 8);
  EXPECT_EQ(mean.attempts, 7);
  const ClassService& eight = Of(mean, SizeClass::kEight);
  EXPECT_EQ(eight.arrived, 3);
  EXPECT_EQ(eight.never, 1);
  EXPECT_DOUBLE_EQ(eight.wait_p99_s, 5);
  EXPECT_DOUBLE_EQ(eight.starvation, 2);
  EXPECT_TRUE(eight.p99_cut_off);
  EXPECT_FALSE(eight.p50_cut_off);
  EXPECT_EQ(Of(mean, SizeClass::kOne).arrived, 0);
}

TEST(SeedMeans, AreMeansAndCutOffWhereOneRunIs) {
  SimulationResult one, two;
  one.kwh = 1, two.kwh = 2;
  one.arrivals = 10, two.arrivals = 13;
  Eight(one) = {.wait_longest_s = 60, .slowdown_mean = 1, .served_gpu_hours = 4};
  Eight(two) = {.wait_longest_s = 90, .slowdown_mean = 4, .p50_cut_off = true};
  Eight(two).longer[3] = 0.5;
  const SimulationResult mean = MeanOf({one, two});
  EXPECT_DOUBLE_EQ(mean.kwh, 1.5);
  EXPECT_EQ(mean.arrivals, 12) << "rounded";
  const ClassService& eight = Of(mean, SizeClass::kEight);
  EXPECT_DOUBLE_EQ(eight.wait_longest_s, 75);
  EXPECT_DOUBLE_EQ(eight.slowdown_mean, 2.5);
  EXPECT_DOUBLE_EQ(eight.served_gpu_hours, 2);
  EXPECT_DOUBLE_EQ(eight.longer[3], 0.25);
  EXPECT_TRUE(eight.p50_cut_off);
}

}  // namespace
}  // namespace berth::replay::seed_means_test
