// SPDX-License-Identifier: Apache-2.0
#include "scoring/priority.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth::priority_test {
namespace {

using Priorities = std::vector<std::uint8_t>;

struct Case {
  std::string description;
  std::vector<int> totals;
  Priorities equal;  // under TieRule::kEqual
  Priorities first;  // under TieRule::kFirst
};

TEST(ToPriorities, TellsTheBestApartFirst) {
  for (const Case& c : std::vector<Case>{
           {"nothing", {}, {}, {}},
           {"one, however low", {0}, {10}, {10}},
           {"one, however high", {kMaxTotal}, {10}, {10}},
           {"order is kept", {100, 300, 200}, {8, 10, 9}, {8, 10, 9}},
           {"near and far alike", {0, 9999, 10'000}, {8, 9, 10}, {8, 9, 10}},
           {"equal stays equal, or the first wins", {5, 7, 7, 5}, {9, 10, 10, 9}, {8, 10, 9, 7}},
           {"all equal", {3, 3, 3}, {10, 10, 10}, {10, 9, 8}},
           {"the eleventh level and all after it are 0",
            {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13},
            {0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
            {0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
           {"ten of the best leave nothing for the next",
            {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 8},
            {10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 9},
            {10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0}}}) {
    EXPECT_EQ(ToPriorities(c.totals, TieRule::kEqual), c.equal) << c.description;
    EXPECT_EQ(ToPriorities(c.totals, TieRule::kFirst), c.first) << c.description;
  }
}

TEST(ToPriorities, TellsTheFullestOfEqualsApart) {
  using Values = std::vector<int>;
  const auto of = [](const Values& totals, const Values& emptiness) {
    return ToPriorities(totals, emptiness);
  };
  EXPECT_EQ(of({}, {}), Priorities{});
  EXPECT_EQ(of({7, 7, 7}, {300, 100, 200}), (Priorities{8, 10, 9}));
  EXPECT_EQ(of({7, 7, 7}, {5, 5, 9}), (Priorities{10, 10, 9})) << "equal still";
  EXPECT_EQ(of({7, 8, 7}, {0, kMostEmpty, 1}), (Priorities{9, 10, 8})) << "the total goes first";
  EXPECT_EQ(of({kMaxTotal, 0}, {kMostEmpty, 0}), (Priorities{10, 9}));
  const Values up = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, equal(13, 5);
  const Priorities falling = {10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0};
  EXPECT_EQ(of(equal, up), falling);
  EXPECT_EQ(of(up, equal), Priorities(falling.rbegin(), falling.rend()));
}

}  // namespace
}  // namespace berth::priority_test
