// SPDX-License-Identifier: Apache-2.0
//
// The soak (soak_run.h). BERTH_SOAK_STEPS and BERTH_SOAK_SEED say how long and from where; `make
// soak` takes a million steps.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "test/soak/claim_soak.h"
#include "test/soak/soak_run.h"

namespace berth::test::soak_test {
namespace {

std::uint64_t Asked(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// A replay of a seed shows what happened: there is no thread, no clock and no address in it.
TEST(Soak, TheSameSeedTakesTheSameStepsAndMakesTheSameDecisions) {
  constexpr std::uint64_t kSteps = 800;
  using End = std::tuple<std::uint64_t, std::uint64_t, Instant>;
  const auto end_of = [](std::uint64_t seed) {
    SoakRun run(seed, 20);
    while (run.steps() < kSteps && run.Step()) {
    }
    EXPECT_EQ(run.failure(), "") << "BERTH_SOAK_SEED=" << seed << '\n' << run.History();
    return End(run.trace(), run.NextRandom(), run.now());
  };
  const End first = end_of(3);
  for (int again = 2; again <= 10; ++again) EXPECT_EQ(end_of(3), first) << "run " << again;
  EXPECT_NE(std::get<0>(end_of(4)), std::get<0>(first));
}

// All nodes are taken, and a long queue waits: its pods are listed, watched and asked about beside
// everything else.
TEST(Soak, ThousandsOfWaitingPodsAreKnownAndDelayNobody) {
  const bool is_long = std::getenv("BERTH_SOAK_STEPS") != nullptr;
  const std::uint64_t seed = Asked("BERTH_SOAK_SEED", 1);
  SoakRun run(seed, is_long ? 10'000 : 1'000);
  while (run.steps() < (is_long ? 20'000U : 2'000U) && run.Step()) {
  }
  if (run.failure().empty()) run.End();
  ASSERT_EQ(run.failure(), "") << "BERTH_SOAK_SEED=" << seed << '\n' << run.History();
  EXPECT_GT(run.counts().at("bound"), 0U);
}

TEST(Soak, NoGpuIsGrantedTwiceOrLostAndNoPodWaitsBesideRoom) {
  constexpr std::uint64_t kStepsPerWorld = 10'000;
  const std::uint64_t steps = Asked("BERTH_SOAK_STEPS", 10'000);
  std::uint64_t seed = Asked("BERTH_SOAK_SEED", 1), taken = 0;
  std::map<std::string, std::uint64_t> counts;
  bool lies = false;
  for (; taken < steps; ++seed) {
    SCOPED_TRACE("BERTH_SOAK_SEED=" + std::to_string(seed));
    SoakRun run(seed);
    while (run.steps() < kStepsPerWorld && taken + run.steps() < steps && run.Step()) {
    }
    if (run.failure().empty()) run.End();
    ASSERT_EQ(run.failure(), "") << run.History();
    taken += run.steps();
    lies = run.lies();
    for (const auto& [what, count] : run.counts()) counts[what] += count;
  }
  std::cout << taken << " steps:";
  for (const auto& [what, count] : counts) std::cout << ' ' << what << ' ' << count << ';';
  std::cout << '\n';
  if (!lies) {
    std::cout << "left out: records of other ecosystems that claim more than their pods ask for, "
                 "since they are believed\n";
  }
  EXPECT_GT(counts["bound"], taken / 100);
  EXPECT_GT(counts["lists while binds were under way"], taken / 1000);
  EXPECT_GT(counts["calms"], taken / 1000);
  EXPECT_GT(counts["hostile pods"], taken / 1000);
  EXPECT_GT(counts["records beside Berth's"], taken / 2000);
  EXPECT_GT(counts["GPUs that flap"], taken / 1000);
}

TEST(Soak, NoDeviceIsInTwoClaimsAndNoClaimIsLeftWithoutItsPod) {
  constexpr std::uint64_t kStepsPerWorld = 5'000;
  const std::uint64_t steps = Asked("BERTH_SOAK_STEPS", 20'000);
  std::uint64_t seed = Asked("BERTH_SOAK_SEED", 1), taken = 0;
  std::map<std::string, std::uint64_t> counts;
  for (; taken < steps; ++seed) {
    ClaimSoak run(seed);
    for (std::uint64_t i = 0; i < kStepsPerWorld && run.Step(); ++i) ++taken;
    ASSERT_EQ(run.failure(), "") << "BERTH_SOAK_SEED=" << seed;
    for (const auto& [what, count] : run.counts()) counts[what] += count;
  }
  std::cout << taken << " steps:";
  for (const auto& [what, count] : counts) std::cout << ' ' << what << ' ' << count << ';';
  std::cout << '\n';
  EXPECT_GT(counts["pods that Berth allocated for"], taken / 200);
  EXPECT_GT(counts["pods bound"], taken / 50);
  EXPECT_GT(counts["gangs that Berth allocated for"], taken / 4000);
  EXPECT_GT(counts["kills"], taken / 2000);
  EXPECT_GT(counts["answers lost"], 0U);
  EXPECT_GT(counts["calms"], taken / 1000);
}

}  // namespace
}  // namespace berth::test::soak_test
