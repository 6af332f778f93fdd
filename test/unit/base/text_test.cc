// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <array>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace berth::text_test {
namespace {

TEST(Join, TheSeparatorStandsBetweenEveryTwoAndNowhereElse) {
  EXPECT_EQ(Join(std::vector<std::string>(), ", "), "");
  EXPECT_EQ(Join(std::vector<std::string>{"a"}, ", "), "a");
  EXPECT_EQ(Join(std::set<std::string>{"b", "a", "c"}, ", "), "a, b, c");
  // An empty text is an element like any other.
  EXPECT_EQ(Join(std::array<std::string_view, 3>{"", "x", ""}, ";"), ";x;");
}

TEST(Join, AnElementMayBeMappedToItsText) {
  struct Level {
    std::string name;
  };
  const std::vector<Level> levels = {{"zone"}, {"rack"}};
  EXPECT_EQ(Join(levels, " > ", &Level::name), "zone > rack");
  EXPECT_EQ(Join(std::vector<int>{1, 2}, "+", [](int number) { return std::to_string(number); }),
            "1+2");
}

TEST(Trimmed, BlanksGoAtTheEndsAndStayInside) {
  EXPECT_EQ(Trimmed(""), "");
  EXPECT_EQ(Trimmed(" \t\r\n"), "");
  EXPECT_EQ(Trimmed("a"), "a");
  EXPECT_EQ(Trimmed(" a b\r\n"), "a b");
}

TEST(OnOneLine, NothingMovesTheCursorOrTurnsTheLine) {
  EXPECT_EQ(OnOneLine("a\x1b[2J\nb\x7f"), "a [2J b ");
  EXPECT_EQ(OnOneLine("a\u009b31mb\u0085c"), "a 31mb c");
  EXPECT_EQ(OnOneLine("\u202egpu\u2066x\u2069\u2028"), " gpu x  ");
  for (const char* plain : {"", "J\u00fcrgen \u00a0 \u20ac \u2026 \u65e5", "\xc2", "\xe2\x80"}) {
    EXPECT_EQ(OnOneLine(plain), plain);
  }
}

}  // namespace
}  // namespace berth::text_test
