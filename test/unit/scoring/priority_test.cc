// SPDX-License-Identifier: Apache-2.0
#include "scoring/priority.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth {
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

}  // namespace
}  // namespace berth
