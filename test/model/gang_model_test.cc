// SPDX-License-Identifier: Apache-2.0
//
// The model of gangs (gang_model.h): nothing goes wrong in many random runs, and what is planted in
// the simulated parts is found.
#include "test/model/gang_model.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::test::gang_model_test {
namespace {

// Some runs are long, and some have hardly begun when the dust settles.
constexpr std::uint64_t kShortRun = 500, kLongRun = 4500;

// BERTH_SOAK_STEPS: another number of steps in all, for `make soak`. BERTH_SOAK_SEED: the first.
std::uint64_t Asked(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}
std::uint64_t Steps() { return Asked("BERTH_SOAK_STEPS", 70'000); }

// What happened last in that run.
std::string EndOf(std::uint64_t seed, std::uint64_t steps) {
  std::vector<std::string> log;
  RunGangModel(seed, steps, Planted::kNothing, &log);
  std::string text;
  const std::size_t first = log.size() - std::min<std::size_t>(log.size(), 200);
  for (std::size_t i = first; i < log.size(); ++i) text += "\n  " + log[i];
  return text;
}

TEST(GangModel, NothingGoesWrongWhateverHappens) {
  int whole = 0, restarts = 0, handovers = 0, evictions = 0, ended = 0, dropped = 0, unbound = 0;
  for (std::uint64_t seed = Asked("BERTH_SOAK_SEED", 1), steps = 0; steps < Steps(); ++seed) {
    const std::uint64_t length = seed % 2 == 0 ? kLongRun : kShortRun;
    const ModelReport report = RunGangModel(seed, length, Planted::kNothing);
    steps += report.steps;
    ASSERT_EQ(report.violation, "") << "seed " << seed << EndOf(seed, length);
    whole += report.whole;
    restarts += report.restarts;
    handovers += report.handovers;
    evictions += report.evictions;
    ended += report.ended;
    dropped += report.dropped;
    unbound += report.unbound;
  }
  const int least = static_cast<int>(std::min<std::uint64_t>(Steps(), 50'000) / 2500);
  EXPECT_GT(whole, least) << "the runs have to get somewhere";
  EXPECT_GT(restarts, least);
  EXPECT_GT(handovers, least / 2);
  EXPECT_GT(evictions, least);
  EXPECT_GT(ended, least);
  EXPECT_GT(dropped, least);
  EXPECT_GT(unbound, least);
}

TEST(GangModel, TheSameSeedTakesTheSameStepsAndMakesTheSameDecisions) {
  std::vector<std::string> first;
  const ModelReport report = RunGangModel(1, kShortRun, Planted::kNothing, &first);
  EXPECT_GT(first.size(), 20U);
  for (int run = 2; run <= 10; ++run) {
    std::vector<std::string> log;
    const ModelReport again = RunGangModel(1, kShortRun, Planted::kNothing, &log);
    EXPECT_EQ(log, first) << "run " << run;
    EXPECT_EQ(again.next_random, report.next_random) << "run " << run;
    EXPECT_EQ(again.end, report.end) << "run " << run;
  }
}

struct Lie {
  const char* name;
  Planted planted;
  const char* violation;  // how it begins; "" = any
};
class GangModelFinds : public testing::TestWithParam<Lie> {};

TEST_P(GangModelFinds, WhatIsPlanted) {
  std::string found;
  const auto is_it = [&found] { return !found.empty() && found.starts_with(GetParam().violation); };
  for (std::uint64_t seed = 1; seed * kShortRun <= 200'000 && !is_it(); ++seed) {
    found = RunGangModel(seed, kShortRun, GetParam().planted).violation;
  }
  EXPECT_TRUE(is_it()) << "not within 200,000 steps; the last one: " << found;
}

INSTANTIATE_TEST_SUITE_P(
    Lies, GangModelFinds,
    testing::Values(Lie{"ASizeThatIsTooSmall", Planted::kSizeTooSmall, "whole"},
                    Lie{"JobsThatAreLost", Planted::kLosesJobs, "answered"},
                    Lie{"DeletionsThatAreHidden", Planted::kHidesDeletions, ""},
                    Lie{"BindingsWithoutAUid", Planted::kIgnoresUids, "order"},
                    Lie{"BindingsThatAreDenied", Planted::kDeniesBindings, "once"},
                    Lie{"ABindingThatIsSaidAndNotDone", Planted::kSaysBoundTooEarly, "truthful"},
                    Lie{"AClockThatIsSlow", Planted::kSlowClock, "answered"},
                    Lie{"AFenceThatIsOpen", Planted::kOpenFence, "order"},
                    Lie{"AWakerThatWakesNobody", Planted::kNeverWakes, "live"},
                    Lie{"AListWithoutBoundPods", Planted::kForgetsBoundPods, ""},
                    Lie{"AListWithoutGangs", Planted::kForgetsGangs, "live"},
                    Lie{"ASchedulerThatOffersOneNode", Planted::kOffersOneNode, "live"},
                    Lie{"EndedPodsThatAreForgotten", Planted::kForgetsEndedPods, "live"},
                    Lie{"TextsThatCount", Planted::kCountsInTexts, "quiet"},
                    Lie{"DevicesThatAreGivenTwice", Planted::kBindsTwice, "once"}),
    [](const testing::TestParamInfo<Lie>& lie) { return std::string(lie.param.name); });

}  // namespace
}  // namespace berth::test::gang_model_test
