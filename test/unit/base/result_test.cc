// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

namespace berth::result_test {
namespace {

TEST(ErrcName, IsDistinctForEveryCode) {
  const std::set<std::string_view> names = {
      ErrcName(Errc::kInvalidArgument), ErrcName(Errc::kNotFound), ErrcName(Errc::kConflict),
      ErrcName(Errc::kUnavailable), ErrcName(Errc::kInternal)};
  EXPECT_EQ(names, (std::set<std::string_view>{"invalid_argument", "not_found", "conflict",
                                               "unavailable", "internal"}));
}

TEST(Error, GrowsItsPlaceFromTheInsideOut) {
  struct Case {
    std::string_view description, message, place, want;
  };
  for (const Case& c :
       {Case{"a text gets a colon", "want 1, got 2", "file:3", "file:3: want 1, got 2"},
        Case{"a field goes on with the path", ".name: want a name", "nodes[3]",
             "nodes[3].name: want a name"},
        Case{"an index goes on with the path", "[0]: want a name", "nodes",
             "nodes[0]: want a name"},
        Case{"no message", "", "here", "here: "}}) {
    const Error error = Error{Errc::kConflict, std::string(c.message)}.Within(c.place);
    EXPECT_EQ(error.message, c.want) << c.description;
    EXPECT_EQ(error.code, Errc::kConflict) << c.description << ": the code stays";
  }
}

TEST(Fail, MakesAResultWithoutValue) {
  const Result<int> failed = Fail(Errc::kUnavailable, "nobody home");
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, Errc::kUnavailable);
  EXPECT_EQ(failed.error().message, "nobody home");
  const Status invalid = Invalid("want a, got b");
  ASSERT_FALSE(invalid.has_value());
  EXPECT_EQ(invalid.error().code, Errc::kInvalidArgument);
}

Result<int> Halve(int number) {
  if (number % 2 != 0) return Invalid("want an even number, got " + std::to_string(number));
  return number / 2;
}

Result<std::unique_ptr<int>> QuarterOnHeap(int number) {
  BERTH_TRY(const int half, Halve(number));
  int quarter = 0;
  BERTH_TRY(quarter, Halve(half));
  return std::make_unique<int>(quarter);
}

Status NeedsAQuarter(int number, bool& reached_the_end) {
  BERTH_TRY_STATUS(Halve(number));
  BERTH_TRY(const std::unique_ptr<int> quarter, QuarterOnHeap(number));
  reached_the_end = *quarter * 4 == number;
  return {};
}

TEST(Try, DefinesTheValueOrLeavesWithTheError) {
  EXPECT_EQ(**QuarterOnHeap(12), 3);
  EXPECT_EQ(QuarterOnHeap(7).error().message, "want an even number, got 7");
  EXPECT_EQ(QuarterOnHeap(6).error().message, "want an even number, got 3");
}

TEST(Try, WorksInFunctionsThatReturnAStatus) {
  bool reached_the_end = false;
  EXPECT_EQ(NeedsAQuarter(5, reached_the_end).error().message, "want an even number, got 5");
  EXPECT_EQ(NeedsAQuarter(6, reached_the_end).error().message, "want an even number, got 3");
  EXPECT_FALSE(reached_the_end);
  EXPECT_TRUE(NeedsAQuarter(8, reached_the_end).has_value());
  EXPECT_TRUE(reached_the_end);
}

}  // namespace
}  // namespace berth::result_test
