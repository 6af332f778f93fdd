// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace berth::random_test {
namespace {

// The values were computed apart from this code, from the published definition of splitmix64.

TEST(Mix64, IsOneStepOfSplitmix64) {
  static_assert(Mix64(0) == 0xe220a8397b1dcdafULL);
  EXPECT_EQ(Mix64(1), 0x910a2dec89025cc1ULL);
}

TEST(Random, GivesTheSameSequenceOnEveryMachine) {
  Random random(42);
  EXPECT_EQ(random.Next(), 0xf4abd143feb24055ULL);
  EXPECT_EQ(random.Next(), 0x7c816738c12903b2ULL);
  EXPECT_EQ(random.Next(), 0x113e5dec6f8fd8a8ULL);
  EXPECT_EQ(random.Next(), 0xad4a599062fd1739ULL);
  EXPECT_EQ(Random(0).Next(), 0xb382a305f4414f5eULL);
}

TEST(Random, DrawsUnitFromTheHighest53Bits) {
  EXPECT_EQ(Random(42).Unit(), 8608601199334984.0 * 0x1.0p-53);
}

TEST(Random, ShufflesTheSameWayOnEveryMachine) {
  std::vector<int> values(10);
  std::iota(values.begin(), values.end(), 0);
  Random(42).Shuffle(values);
  EXPECT_EQ(values, (std::vector<int>{1, 6, 9, 4, 2, 3, 5, 0, 8, 7}));
}

TEST(Random, ShufflesNothingAndOneWithoutADraw) {
  Random random(42);
  std::vector<int> none, one = {7};
  random.Shuffle(none);
  random.Shuffle(one);
  EXPECT_EQ(one, std::vector<int>{7});
  EXPECT_EQ(random.Next(), 0xf4abd143feb24055ULL);
}

TEST(Random, StaysBelowItsBoundAndReachesEveryValue) {
  Random random(1);
  std::vector<int> seen(7);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t drawn = random.Below(7);
    ASSERT_LT(drawn, 7U);
    ++seen[drawn];
    const double unit = random.Unit();
    ASSERT_GE(unit, 0.0);
    ASSERT_LT(unit, 1.0);
  }
  EXPECT_GT(*std::ranges::min_element(seen), 100) << "of about 143 each";
  EXPECT_EQ(random.Below(1), 0U);
}

}  // namespace
}  // namespace berth::random_test
