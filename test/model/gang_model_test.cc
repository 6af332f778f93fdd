// SPDX-License-Identifier: Apache-2.0
//
// The model of gangs (gang_model.h): nothing goes wrong in many random runs, and what is planted in
// the simulated parts is found.
#include "test/model/gang_model.h"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace berth::test {
namespace {

constexpr std::uint64_t kStepsOfARun = 2500;

// BERTH_SOAK_STEPS: another number of steps in all, for `make soak`.
std::uint64_t Steps() {
  const char* const wanted = std::getenv("BERTH_SOAK_STEPS");
  return wanted == nullptr ? 50'000 : std::strtoull(wanted, nullptr, 10);
}

TEST(GangModel, NothingGoesWrongWhateverHappens) {
  int whole = 0, restarts = 0;
  for (std::uint64_t seed = 1; seed * kStepsOfARun <= Steps(); ++seed) {
    const ModelReport report = RunGangModel(seed, kStepsOfARun, Planted::kNothing);
    ASSERT_EQ(report.violation, "") << "seed " << seed;
    whole += report.whole;
    restarts += report.restarts;
  }
  EXPECT_GT(whole, 20) << "the runs have to get somewhere";
  EXPECT_GT(restarts, 20);
}

struct Lie {
  const char* name;
  Planted planted;
  const char* violation;  // how it begins; "" = any
};
class GangModelFinds : public testing::TestWithParam<Lie> {};

TEST_P(GangModelFinds, WhatIsPlanted) {
  std::string found;
  for (std::uint64_t seed = 1; seed <= 80 && found.empty(); ++seed) {
    found = RunGangModel(seed, kStepsOfARun, GetParam().planted).violation;
  }
  EXPECT_NE(found, "") << "not within 200,000 steps";
  EXPECT_TRUE(found.starts_with(GetParam().violation)) << found;
}

INSTANTIATE_TEST_SUITE_P(
    Lies, GangModelFinds,
    testing::Values(Lie{"ASizeThatIsTooSmall", Planted::kSizeTooSmall, "whole"},
                    Lie{"JobsThatAreLost", Planted::kLosesJobs, ""},
                    Lie{"DeletionsThatAreHidden", Planted::kHidesDeletions, ""},
                    Lie{"ABindingThatIsSaidAndNotDone", Planted::kSaysBoundTooEarly, "truthful"},
                    Lie{"AListWithoutBoundPods", Planted::kForgetsBoundPods, ""},
                    Lie{"DevicesThatAreGivenTwice", Planted::kBindsTwice, "once"},
                    Lie{"AWakerThatWakesNobody", Planted::kNeverWakes, "live"}),
    [](const testing::TestParamInfo<Lie>& lie) { return std::string(lie.param.name); });

}  // namespace
}  // namespace berth::test
