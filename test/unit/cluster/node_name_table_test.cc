// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/snapshot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace berth::node_name_table_test {
namespace {

std::vector<std::string> ManyNames(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back("node-" + std::to_string(i));
  std::ranges::sort(names);
  return names;
}

TEST(NodeNameTable, FindsEveryNameAndNoOther) {
  const std::vector<std::string> names = ManyNames(1000);
  const NodeNameTable table(names);
  ASSERT_EQ(table.size(), names.size());
  for (NodeIndex i = 0; i < names.size(); ++i) {
    EXPECT_EQ(table.name(i), names[i]);
    EXPECT_EQ(table.Find(names[i]), i);
    EXPECT_EQ(table.Find(names[i] + "x"), kNoNode);
  }
  EXPECT_EQ(table.Find(""), kNoNode);
  EXPECT_EQ(table.Find("node-"), kNoNode);
  EXPECT_EQ(table.Find("node-1000"), kNoNode);
}

TEST(NodeNameTable, FindsNothingWhenItIsEmpty) {
  const NodeNameTable table({});
  EXPECT_EQ(table.size(), 0U);
  EXPECT_EQ(table.Find("a"), kNoNode);
  EXPECT_EQ(table.Find(""), kNoNode);
}

TEST(NodeNameTable, KeepsNamesApartThatShareTheirText) {
  const NodeNameTable table({"a", "aa", "ab", "b"});
  EXPECT_EQ(table.Find("a"), 0U);
  EXPECT_EQ(table.Find("aa"), 1U);
  EXPECT_EQ(table.Find("ab"), 2U);
  EXPECT_EQ(table.Find("b"), 3U);
  EXPECT_EQ(table.Find("ba"), kNoNode);
  EXPECT_EQ(table.Find("aaab"), kNoNode);
}

TEST(NodeNameTable, GuessesNameOrderUntilTheOrderIsKnown) {
  const NodeNameTable table({"a", "b", "c"});
  EXPECT_EQ(table.GuessAfter(kNoNode), 0U);
  EXPECT_EQ(table.GuessAfter(0), 1U);
  EXPECT_EQ(table.GuessAfter(1), 2U);
  EXPECT_EQ(table.GuessAfter(2), 0U) << "the last one: any valid index";
  table.RememberAfter(kNoNode, 2);
  table.RememberAfter(2, 1);
  EXPECT_EQ(table.GuessAfter(kNoNode), 2U);
  EXPECT_EQ(table.GuessAfter(2), 1U);
  EXPECT_EQ(table.GuessAfter(0), 1U) << "the others stay";
}

}  // namespace
}  // namespace berth::node_name_table_test
