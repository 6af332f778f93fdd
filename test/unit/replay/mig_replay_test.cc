// SPDX-License-Identifier: Apache-2.0
#include "bench/mig/mig_replay.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "test/support/temp_file.h"
#include "topology/mig/mig_product.h"

namespace berth::replay::mig_replay_test {
namespace {

const MigProduct& A100() { return *FindMigProduct("A100-40GB"); }

MigReplayOptions Options(const std::string& mix) {
  MigReplayOptions options;
  options.product = &A100();
  options.mix = *ReadMigMix(A100(), mix);
  options.policies = {MigPolicy::kSrcDrain, MigPolicy::kFirstFit, MigPolicy::kLoadBalancing};
  options.seeds = 4;
  options.first_seed = 1'000;
  return options;
}

TEST(MigWorkload, HasTheLoadTheMixAndTheLifetimesThatItIsAskedFor) {
  const MigMix mix = *ReadMigMix(A100(), "skew-small");
  for (const MigLifetimes lifetimes : {MigLifetimes::kExponential, MigLifetimes::kHeavyTailed}) {
    const auto pods = DrawMigPods(A100(), mix, lifetimes, 800, 400'000, 3);
    double units = 0, lasts = 0, ones = 0, long_ones = 0;
    for (const MigPod& pod : pods) {
      units += A100().row(pod.row).memory_units;
      lasts += pod.lasts;
      ones += pod.row == 0 ? 1 : 0;
      long_ones += pod.lasts > 5 ? 1 : 0;
    }
    const auto count = static_cast<double>(pods.size());
    EXPECT_NEAR(units / pods.back().arrives, 800, 8);
    EXPECT_NEAR(lasts / count, 1, 0.05);
    EXPECT_NEAR(ones / count, 0.3, 0.005);
    // exp(-5); P(1.5 z - 1.125 > ln 5)
    const bool heavy = lifetimes == MigLifetimes::kHeavyTailed;
    EXPECT_NEAR(long_ones / count, heavy ? 0.0341 : 0.0067, 0.002);
  }
}

TEST(MigWorkload, ReadsMixesAndSaysWhatIsWrongWithThem) {
  const test::TempFile file(R"({"7g.40gb": 1, "1g.5gb": 3})");
  EXPECT_EQ(*ReadMigMix(A100(), file.path()), (MigMix{{0, 3.0}, {6, 1.0}}));
  EXPECT_EQ(ReadMigMix(A100(), "bimodal")->size(), 6U);
  EXPECT_EQ(ReadMigMix(*FindMigProduct("A30-24GB"), "uniform")->size(), 3U);
  EXPECT_EQ(ReadMigMix(*FindMigProduct("A30-24GB"), "bimodal").error().message,
            "want uniform or a file for A30-24GB, which has 3 profiles, got bimodal for 6");
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "want a JSON object such as {\"1g.5gb\": 3, \"7g.40gb\": 1}"},
      {"{", "want a JSON object such as {\"1g.5gb\": 3, \"7g.40gb\": 1}"},
      {"{\"1g.6gb\": 1}", "want profiles of A100-40GB, got 1g.6gb"},
      {"{\"1g.5gb\": 0}", "1g.5gb: want a share above 0 and up to 1e6, got 0"},
      {"{\"1g.5gb\": \"x\"}", "1g.5gb: want a share above 0 and up to 1e6, got \"x\""},
      {"{\"one\": 1}", "want a MIG profile such as 1g.5gb, 1g.10gb+me or 1c.2g.10gb, got \"one\""}};
  for (const auto& [text, message] : cases) {
    const test::TempFile bad(text);
    EXPECT_EQ(ReadMigMix(A100(), bad.path()).error().message, bad.path() + ": " + message);
  }
  EXPECT_FALSE(ReadMigMix(A100(), "no-such-file"));
}

// The order that a reference simulator has, in each mix, far outside the noise of four seeds.
TEST(MigReplay, RanksTheBaselinesAsTheReferenceDoes) {
  for (const char* mix : {"uniform", "skew-small", "skew-big", "bimodal"}) {
    const auto scores = *ReplayMig(Options(mix));
    ASSERT_EQ(scores.size(), 3U);
    const auto mean = [&](std::size_t i) { return EstimateOf(scores[i].memory_pct).mean; };
    EXPECT_GT(mean(0), mean(1) + 1.5) << mix;
    EXPECT_GT(mean(1), mean(2) + 10) << mix;
    EXPECT_GT(mean(0), 88) << mix;
    EXPECT_LT(mean(0), 94) << mix;
    EXPECT_GT(scores[0].rejected_pct[6], scores[0].rejected_pct[0]) << "7g is the hardest";
    EXPECT_EQ(scores[0].rejected_pct[1], 0) << "nobody asks for +me";
  }
}

// The weights are worth what they were found for: each mix on its own is within the noise of 15
// seeds, all of them together are not.
TEST(MigReplay, BerthAcceptsMoreThanSrc) {
  double gained = 0;
  for (const char* mix : {"uniform", "skew-small", "skew-big", "bimodal"}) {
    MigReplayOptions options = Options(mix);
    options.policies = {MigPolicy::kSrcDrain, MigPolicy::kBerth};
    options.seeds = 15;
    const auto scores = *ReplayMig(options);
    gained += EstimateOf(scores[1].memory_pct).mean - EstimateOf(scores[0].memory_pct).mean;
  }
  EXPECT_GT(gained, 0.6);
}

TEST(MigReplay, IsTheSameForTheSameSeedsHoweverManyPolicies) {
  MigReplayOptions options = Options("uniform");
  options.seeds = 2;
  const auto three = *ReplayMig(options);
  options.policies = {MigPolicy::kFirstFit};
  const auto one = *ReplayMig(options);
  EXPECT_EQ(one[0].memory_pct, three[1].memory_pct);
  EXPECT_EQ(one[0].rejected_pct, three[1].rejected_pct);
}

TEST(MigReplay, AcceptsAllAtLittleLoadAndATenthAtTenfold) {
  MigReplayOptions options = Options("uniform");
  options.seeds = 1;
  options.load = 0.2;
  EXPECT_EQ((*ReplayMig(options))[0].memory_pct[0], 100);
  options.load = 10;
  EXPECT_LT((*ReplayMig(options))[0].memory_pct[0], 12);
}

TEST(EstimateOf, IsMeanAndStudentsInterval) {
  EXPECT_EQ(EstimateOf({3}).half_width, 0);
  const MigEstimate estimate = EstimateOf({1, 2, 3, 4, 5});
  EXPECT_DOUBLE_EQ(estimate.mean, 3);
  EXPECT_NEAR(estimate.half_width, 2.776 * std::sqrt(2.5 / 5), 1e-9);
}

}  // namespace
}  // namespace berth::replay::mig_replay_test
