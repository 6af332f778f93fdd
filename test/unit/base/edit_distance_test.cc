// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

namespace berth::edit_distance_test {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsAndReplacements) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("abc", "abc"), 0u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("abc", ""), 3u);
  EXPECT_EQ(EditDistance("abc", "abxc"), 1u);
  EXPECT_EQ(EditDistance("abc", "ac"), 1u);
  EXPECT_EQ(EditDistance("abc", "axc"), 1u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(EditDistance("ab", "ba"), 2u) << "a swap is no step of its own";
}

TEST(NearestWord, CountsCharactersThatDiffer) {
  const std::vector<std::string> words = {"plan", "explain", "top"};
  EXPECT_EQ(NearestWord("paln", words), "") << "two of four";
  EXPECT_EQ(NearestWord("pln", words), "plan");
  EXPECT_EQ(NearestWord("explian", words), "explain");
  EXPECT_EQ(NearestWord("", words), "");
}

}  // namespace
}  // namespace berth::edit_distance_test
