// SPDX-License-Identifier: Apache-2.0
#include "server/service/held_memory.h"

#include <gtest/gtest.h>

namespace berth::held_memory_test {
namespace {

TEST(HeldMemory, EveryStoreIsShownWithItsBound) {
  const HeldStore stores[] = {{"requests", 5, 10}, {"log", 0, 20}};
  const std::string text = HeldMemoryText(stores);
  for (const char* line :
       {"berth_held_bytes{store=\"requests\"} 5\n", "berth_held_bytes{store=\"log\"} 0\n",
        "berth_held_bytes_limit{store=\"requests\"} 10\n",
        "berth_held_bytes_limit{store=\"log\"} 20\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

TEST(MemoryTrim, GivesMemoryBackOnceWhenMuchWasHeldAndIsNoMore) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  MemoryTrim trim;
  EXPECT_FALSE(trim.Look(kMiB));
  EXPECT_FALSE(trim.Look(0)) << "it was little";
  EXPECT_FALSE(trim.Look(200 * kMiB));
  EXPECT_FALSE(trim.Look(100 * kMiB)) << "it is in use still";
  EXPECT_TRUE(trim.Look(2 * kMiB));
  EXPECT_FALSE(trim.Look(2 * kMiB));
  EXPECT_FALSE(trim.Look(0));
}

}  // namespace
}  // namespace berth::held_memory_test
