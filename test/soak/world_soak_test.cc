// SPDX-License-Identifier: Apache-2.0
//
// Everything that Berth does by itself at once, on clusters as people have them, beside a node
// autoscaler (world_soak.h). BERTH_SOAK_STEPS and BERTH_SOAK_SEED as in soak_test.cc.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "test/soak/world_soak.h"

namespace berth::test::world_soak_test {
namespace {

std::uint64_t Asked(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(WorldSoak, NobodyIsEvictedClosedOrLeftAsleepInVainWithAllFeaturesAndAnAutoscaler) {
  constexpr std::uint64_t kStepsPerWorld = 1'000;
  const std::uint64_t steps = Asked("BERTH_SOAK_STEPS", 6'000);
  std::uint64_t seed = Asked("BERTH_SOAK_SEED", 1), taken = 0;
  std::map<std::string, std::uint64_t> counts;
  for (; taken < steps; ++seed) {
    WorldSoak soak(seed, {});
    for (std::uint64_t i = 0; i < kStepsPerWorld && taken < steps; ++i, ++taken) {
      ASSERT_TRUE(soak.Step()) << "BERTH_SOAK_SEED=" << seed << ": " << soak.failure() << '\n'
                               << soak.History();
    }
    for (const auto& [what, count] : soak.counts()) counts[what] += count;
    if (std::getenv("BERTH_SOAK_TALKS") != nullptr) std::cout << soak.History();
  }
  std::cout << taken << " steps:";
  for (const auto& [what, count] : counts) std::cout << ' ' << what << ' ' << count << ';';
  std::cout << '\n';
  EXPECT_GT(counts["bound"], taken / 100);
  EXPECT_GT(counts["bound members of gangs"], taken / 400);
  EXPECT_GT(counts["agreed preemptions"], taken / 400);
  if (taken >= 100'000) {  // some ten in so many
    EXPECT_GT(counts["evicted to make room"], 0U);
  }
  EXPECT_GT(counts["nodes taken"], 0U);
  EXPECT_GT(counts["nodes shown"], 0U);
  EXPECT_GT(counts["refused by kubelets"], 0U);
}

}  // namespace
}  // namespace berth::test::world_soak_test
