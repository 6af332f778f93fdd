// SPDX-License-Identifier: Apache-2.0
#include "server/service/serve_parts.h"

#include <gtest/gtest.h>

#include "test/support/metrics_lines.h"

namespace berth::test::held_memory_test {
namespace {

TEST(HeldMemory, EveryStoreIsShownWithItsBound) {
  const std::vector<HeldStore> stores = {{"requests", 5, 10}, {"log", 0, 20}};
  const std::string text = Written(AddHeldMemory, stores);
  ExpectLines(text, {"berth_held_bytes{store=\"requests\"} 5", "berth_held_bytes{store=\"log\"} 0",
                     "berth_held_bytes_limit{store=\"requests\"} 10",
                     "berth_held_bytes_limit{store=\"log\"} 20"});
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
}  // namespace berth::test::held_memory_test
