// SPDX-License-Identifier: Apache-2.0
//
// The soak (soak_run.h). BERTH_SOAK_STEPS and BERTH_SOAK_SEED say how long and from where; `make
// soak` takes a million steps.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include <gtest/gtest.h>

#include "test/soak/soak_run.h"

namespace berth::test {
namespace {

std::uint64_t Asked(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(Soak, NothingIsGivenTwiceNothingIsForgottenAndNobodyWaitsBesideAPlace) {
  constexpr std::uint64_t kStepsPerWorld = 10'000;
  const std::uint64_t steps = Asked("BERTH_SOAK_STEPS", 10'000);
  std::uint64_t seed = Asked("BERTH_SOAK_SEED", 1), taken = 0;
  std::map<std::string, std::uint64_t> counts;
  for (; taken < steps; ++seed) {
    SCOPED_TRACE("BERTH_SOAK_SEED=" + std::to_string(seed));
    SoakRun run(seed);
    while (run.steps() < kStepsPerWorld && taken + run.steps() < steps && run.Step()) {
    }
    if (run.failure().empty()) run.End();
    ASSERT_EQ(run.failure(), "") << run.History();
    taken += run.steps();
    for (const auto& [what, count] : run.counts()) counts[what] += count;
  }
  std::cout << taken << " steps:";
  for (const auto& [what, count] : counts) std::cout << ' ' << what << ' ' << count << ';';
  std::cout << '\n';
  EXPECT_GT(counts["bound"], taken / 100);
  EXPECT_GT(counts["lists while binds were under way"], taken / 1000);
  EXPECT_GT(counts["calms"], taken / 1000);
}

}  // namespace
}  // namespace berth::test
