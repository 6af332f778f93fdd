// SPDX-License-Identifier: Apache-2.0
#include "base/recent.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::recent_test {
namespace {

// The keys, newest first.
std::string KeysOf(const Recent<std::string, int>& recent) {
  std::string keys;
  for (const auto& entry : recent) keys += *entry.key;
  return keys;
}

TEST(Recent, BeyondItsNumberTheOneNotTouchedForLongestIsForgotten) {
  Recent<std::string, int> recent(3);
  for (const char* key : {"a", "b", "c"}) recent.Put(key, 1);
  EXPECT_EQ(*recent.Touch("a"), 1);
  recent.Put("b", 2);
  recent.Put("d", 4);
  EXPECT_EQ(KeysOf(recent), "dba");
  EXPECT_EQ(*recent.Find("b"), 2);
  EXPECT_EQ(recent.Find("c"), nullptr);
}

TEST(Recent, FindingIsNoTouch) {
  Recent<std::string, int> recent(2);
  recent.Put("a");
  recent.Put("b");
  EXPECT_NE(recent.Find("a"), nullptr);
  EXPECT_TRUE(recent.contains("a"));
  recent.Put("c");
  EXPECT_EQ(KeysOf(recent), "cb");
}

TEST(Recent, BeyondItsBytesTheOldestGoAndTheNewestStaysWhateverItsSize) {
  Recent<std::string, int> recent(10, 100);
  recent.Put("a", 1, 60);
  recent.Put("b", 2, 40);
  EXPECT_EQ(recent.bytes(), 100u);
  recent.Put("c", 3, 50);
  EXPECT_EQ(KeysOf(recent), "cb");
  EXPECT_EQ(recent.bytes(), 90u);
  recent.Put("d", 4, 1000);
  EXPECT_EQ(KeysOf(recent), "d");
  recent.Put("d", 4, 10);
  EXPECT_EQ(recent.bytes(), 10u);
}

TEST(Recent, WhatIsErasedCountsNoMore) {
  Recent<std::string, int> recent(10, 100);
  recent.Put("a", 1, 60);
  EXPECT_TRUE(recent.Erase("a"));
  EXPECT_FALSE(recent.Erase("a"));
  EXPECT_EQ(recent.bytes(), 0u);
  EXPECT_EQ(recent.size(), 0u);
}

TEST(Recent, AValueStaysWhereItIsUntilItIsForgotten) {
  Recent<int, std::vector<int>> recent(100);
  const std::vector<int>& first = recent.Put(0, {7});
  for (int i = 1; i < 100; ++i) recent.Put(i);
  EXPECT_EQ(recent.Touch(0), &first);
  EXPECT_EQ(first, std::vector<int>{7});
}

}  // namespace
}  // namespace berth::recent_test
