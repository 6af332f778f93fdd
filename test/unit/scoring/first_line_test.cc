// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/first_line.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::test::first_line_test {
namespace {

TEST(FirstLine, PartsAreJoinedInTheirOrder) {
  EXPECT_EQ(LineOf(std::vector<LinePart>{{"a"}, {"b", 1}, {"c", 2, ", "}, {"", 0}}, 20), "a; b, c");
}

TEST(FirstLine, WhatMattersLeastIsLeftOutFirst) {
  const std::vector<LinePart> parts = {{"none"}, {"nearest", 2}, {"cure", 1}};
  EXPECT_EQ(LineOf(parts, 19), "none; nearest; cure");
  EXPECT_EQ(LineOf(parts, 18), "none; cure");
  EXPECT_EQ(LineOf(parts, 9), "none");
}

TEST(FirstLine, APartThatHangsOnAnotherGoesWithIt) {
  const std::vector<LinePart> parts = {{"none"}, {"a long reason", 1}, {"two", 2, ", "}};
  EXPECT_EQ(LineOf(parts, 15), "none") << "and not \"none, two\"";
}

TEST(FirstLine, TheShorterTextIsTakenWhereThereIsNoRoom) {
  const std::vector<LinePart> parts = {{"on a-long-name", 0, "; ", "on a..."}, {"why", 1}};
  EXPECT_EQ(LineOf(parts, 19), "on a-long-name; why");
  EXPECT_EQ(LineOf(parts, 14), "on a-long-name");
  EXPECT_EQ(LineOf(parts, 13), "on a...; why");
  EXPECT_EQ(LineOf(parts, 5), "on...") << "cut";
}

TEST(FirstLine, AWholeLineCutsNoPartThatIsAlwaysThere) {
  const std::string cure(300, 'c');
  EXPECT_EQ(WholeLineOf(std::vector<LinePart>{{cure, 0, "; ", "short"}, {cure}}),
            cure + "; " + cure);
  EXPECT_EQ(WholeLineOf(std::vector<LinePart>{{"none"}, {cure, 1}}), "none") << "no part is longer";
  EXPECT_EQ(WholeLineOf(std::vector<LinePart>{{std::string(2000, 'c')}}).size(), kLongestWhole);
}

TEST(FirstLine, LongNamesKeepTheirEnds) {
  EXPECT_EQ(ShortName("short", 8), "short");
  EXPECT_EQ(ShortName("team-a/a-very-long-name-worker-0", 20), "team-a/a-...worker-0");
  EXPECT_EQ(RoomBehind("ns/p"), 160U - 4 - 2);
  EXPECT_EQ(RoomBehind(std::string(300, 'x')), 160U - 50 - 2);
}

}  // namespace
}  // namespace berth::test::first_line_test
