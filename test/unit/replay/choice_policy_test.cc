// SPDX-License-Identifier: Apache-2.0
//
// The comparison policies, by hand-made cases; topology_data_test.cc has go-gpuallocator's own.
#include "bench/rules/choice_policy.h"

#include <gtest/gtest.h>

#include <string>

#include "test/support/wirings.h"
#include "topology/links/gpu_links.h"

namespace berth::replay::choice_policy_test {
namespace {

using test::Dgx1V;

Choice Chosen(const char* policy, GpuMask free, int size, GpuMask required = 0) {
  const LinkMatrix matrix = Dgx1V();
  WiringTables tables;
  return ChooseGpus(matrix, tables.SetsOf(WiringOf(matrix)), *ParseChoicePolicy(policy),
                    {free, required, size});
}

TEST(ChoicePolicy, FirstFitAndSimpleTakeTheRequiredAndThenTheLowest) {
  for (const char* policy : {"first-fit", "nvidia-simple"}) {
    EXPECT_EQ(Chosen(policy, 0b11110110, 2).gpus, 0b00000110u);
    EXPECT_EQ(Chosen(policy, 0b11110110, 2, 0b10000000).gpus, 0b10000010u);
  }
}

TEST(ChoicePolicy, BestEffortTakesTheBestSetOfTheBestPartition) {
  EXPECT_EQ(Chosen("nvidia-best-effort", 0xFF, 2).gpus, 0b00001001u);
  EXPECT_EQ(Chosen("nvidia-best-effort", 0b00010011, 2).gpus, 0b00010001u);
  EXPECT_EQ(Chosen("nvidia-best-effort", 0xFF, 1).gpus, 1u);  // never looks at the links
  EXPECT_EQ(Chosen("nvidia-best-effort", 0xFF, 4, 0b01010101).gpus, 0b01010101u);
}

TEST(ChoicePolicy, HamiTakesTheWorstConnectedSingleGpuAndTheBestSum) {
  EXPECT_EQ(Chosen("hami-topology", 0b10001001, 1).gpus, 0b10000000u);
  EXPECT_EQ(Chosen("hami-topology", 0xFF, 2).gpus, 0b00001001u);
  EXPECT_EQ(Chosen("hami-topology", 0xFF, 3, 0b10000000).gpus, 0b11010000u);
}

TEST(ChoicePolicy, StaticSetsAreThoseOfTheMachine) {
  EXPECT_EQ(Chosen("nvidia-static-dgx1-volta", 0b11111110, 2).gpus, 0b00000110u);
  EXPECT_EQ(Chosen("nvidia-static-dgx1-pascal", 0b11111110, 2).gpus, 0b00001010u);
  EXPECT_EQ(Chosen("nvidia-static-dgx2-volta", 0b11111100, 4).gpus, 0b11110000u);
  EXPECT_EQ(Chosen("nvidia-static-dgx1-volta", 0xFF, 3).reason,
            "this policy has no sets of 3 GPUs");
  EXPECT_EQ(Chosen("nvidia-static-dgx1-volta", 0b11100111, 4).reason,
            "none of this policy's sets of 4 GPUs is free and has the required ones");
}

TEST(ChoicePolicy, SaysWhyAChoiceIsImpossible) {
  for (const ChoicePolicyName& policy : ChoicePolicies()) {
    const std::string name(policy.name);
    EXPECT_EQ(Chosen(name.c_str(), 0b111, 4).reason, "needs 4 GPUs; 3 free");
    EXPECT_EQ(Chosen(name.c_str(), 0b111, 0).reason, "want at least 1 GPU, asked for 0");
    EXPECT_EQ(Chosen(name.c_str(), 0b111, 1, 0b11).reason, "needs 1 GPUs; 2 are required");
    EXPECT_EQ(Chosen(name.c_str(), 0b111, 2, 0b1001).reason, "GPU 3 is required and not free");
  }
  EXPECT_TRUE(ParseChoicePolicy("best").error().message.starts_with("want one of berth, "));
}

TEST(ChoicePolicy, EnumeratingPoliciesRefuseLargeMachines) {
  std::vector<std::string> names(20);
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = "GPU" + std::to_string(i);
  const LinkMatrix matrix = *MakeLinkMatrix(names, {});
  WiringTables tables;
  const WiringSets sets = tables.SetsOf(WiringOf(matrix));
  for (const ChoicePolicy policy : {ChoicePolicy::kNvidiaBestEffort, ChoicePolicy::kHamiTopology}) {
    EXPECT_EQ(ChooseGpus(matrix, sets, policy, {0xFFFFF, 0, 4}).reason,
              "this policy enumerates: want at most 16 free GPUs, got 20");
    EXPECT_NE(ChooseGpus(matrix, sets, policy, {0xFFFF0, 0, 4}).gpus, 0u);
    EXPECT_NE(ChooseGpus(matrix, sets, policy, {0xFFFF0, 0, 15}).gpus, 0u);
  }
}

}  // namespace
}  // namespace berth::replay::choice_policy_test
