// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace berth::cleanup_test {
namespace {

TEST(Cleanup, ItRunsOnceWhenTheScopeEndsHoweverItEnds) {
  int runs = 0;
  {
    const Cleanup cleanup([&runs] { ++runs; });
    EXPECT_EQ(runs, 0);
  }
  EXPECT_EQ(runs, 1);
  try {
    const Cleanup cleanup([&runs] { ++runs; });
    throw std::runtime_error("a library's exception");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(runs, 2);
}

}  // namespace
}  // namespace berth::cleanup_test
