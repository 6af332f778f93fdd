// SPDX-License-Identifier: Apache-2.0
#include "server/wire/json/json_text.h"

#include <gtest/gtest.h>

namespace berth::wire::wall_time_test {
namespace {

TEST(ParseTime, ReadsTimesOfAnyZoneToTheSecond) {
  const WallTime time = WallTime(std::chrono::seconds(1'000'000'000));
  EXPECT_EQ(ParseTime("2001-09-09T01:46:40Z"), time);
  EXPECT_EQ(ParseTime("2001-09-09T01:46:40.999Z"), time);
  EXPECT_EQ(ParseTime("2001-09-09T03:46:40+02:00"), time);
  EXPECT_EQ(ParseTime("2001-09-08T21:16:40-04:30"), time);
}

TEST(ParseTime, WhatIsNoTimeIsNone) {
  for (const char* const text :
       {"", "now", "2001-09-09", "2001-09-09 01:46:40Z", "2001-02-30T00:00:00Z",
        "2001-09-09T01:46:40", "2001-09-09T24:46:40Z"}) {
    EXPECT_EQ(ParseTime(text), std::nullopt) << text;
  }
}

// The clock counts nanoseconds in 64 bits.
TEST(ParseTime, ATimeThatTheClockCannotHoldIsNone) {
  EXPECT_EQ(ParseTime("9999-12-31T23:59:59Z"), std::nullopt);
  EXPECT_EQ(ParseTime("0001-01-01T00:00:00Z"), std::nullopt);
  EXPECT_EQ(ParseTime("1969-12-31T23:59:59Z"), std::nullopt);
  EXPECT_EQ(ParseTime("1970-01-01T00:00:00Z"), WallTime());
  EXPECT_TRUE(ParseTime("2199-12-31T23:59:59Z"));
}

}  // namespace
}  // namespace berth::wire::wall_time_test
