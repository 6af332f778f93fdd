// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace berth::number_test {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

TEST(ParseInt, ReadsTheWholeRangeOf64Bits) {
  EXPECT_EQ(ParseInt("0", 0, 0), 0);
  EXPECT_EQ(ParseInt("-0", 0, 0), 0);
  EXPECT_EQ(ParseInt("007", 0, 9), 7);
  EXPECT_EQ(ParseInt("-12", -12, 0), -12);
  EXPECT_EQ(ParseInt("9223372036854775807", kLeast, kMost), kMost);
  EXPECT_EQ(ParseInt("-9223372036854775808", kLeast, kMost), kLeast);
}

TEST(ParseInt, KeepsToTheRangeIncludingItsEnds) {
  EXPECT_EQ(ParseInt("3", 3, 5), 3);
  EXPECT_EQ(ParseInt("5", 3, 5), 5);
  EXPECT_FALSE(ParseInt("2", 3, 5).has_value());
  EXPECT_FALSE(ParseInt("6", 3, 5).has_value());
}

TEST(ParseInt, RefusesWhatIsNotANumberFromEndToEnd) {
  using namespace std::string_view_literals;
  for (const std::string_view text :
       {""sv, " 1"sv, "1 "sv, "+1"sv, "1.0"sv, "1e3"sv, "0x1"sv, "--1"sv, "-"sv, "one"sv, "1\0"sv,
        "9223372036854775808"sv, "-9223372036854775809"sv}) {
    const auto number = ParseInt(text, kLeast, kMost);
    EXPECT_FALSE(number.has_value()) << "\"" << text << "\" gave " << *number;
  }
  EXPECT_FALSE(ParseInt(std::string_view(), kLeast, kMost).has_value()) << "a null view";
}

TEST(ParseInt, SaysWhatItWantedAndWhatItGot) {
  const auto number = ParseInt("12a", 0, 64);
  ASSERT_FALSE(number.has_value());
  EXPECT_EQ(number.error().code, Errc::kInvalidArgument);
  EXPECT_EQ(number.error().message, "want an integer from 0 to 64, got \"12a\"");
}

}  // namespace
}  // namespace berth::number_test
