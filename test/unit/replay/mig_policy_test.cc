// SPDX-License-Identifier: Apache-2.0
#include "bench/rules/mig_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "topology/mig/mig_product.h"

namespace berth::replay::mig_policy_test {
namespace {

class MigPolicyTest : public testing::Test {
 protected:
  [[nodiscard]] int Row(const char* profile) const {
    return *product_.RowOf(*ParseMigProfile(profile));
  }
  [[nodiscard]] int At(const char* profile, int start) const {
    return *product_.PlacementAt(Row(profile), start);
  }
  // "1g.5gb at 6 on GPU 2", or "nowhere".
  [[nodiscard]] std::string Chosen(MigPolicy policy, const MigFleet& fleet, const char* profile,
                                   MigPick pick = MigPick::kPolicy) const {
    const auto choice = MigChooser(policy, states_, pick).Choose(fleet, Row(profile));
    if (!choice) return "nowhere";
    return MigPlacementName(product_, choice->placement) + " on GPU " + std::to_string(choice->gpu);
  }

  const MigProduct& product_ = *FindMigProduct("A100-40GB");
  const MigStates states_ = *MigStates::Of(product_, std::vector<int>{0, 2, 3, 4, 5, 6});
};

TEST_F(MigPolicyTest, NamesAreReadAndPrinted) {
  for (const MigPolicyName& row : MigPolicies()) {
    EXPECT_EQ(*ParseMigPolicy(row.name), row.policy);
    EXPECT_EQ(MigPolicyNameOf(row.policy), row.name);
  }
  EXPECT_EQ(ParseMigPolicy("best").error().message,
            "want berth, src-drain, first-fit, best-fit, load-balancing, hami, dra, instaslice, "
            "mfi, mfi-partial, got \"best\"");
}

// GPU 0 empty, GPU 1 with 3g on the right, GPU 2 with 4g on the left and 1g at 6. A node has two.
TEST_F(MigPolicyTest, EachGoesWhereItsRuleSays) {
  MigFleet fleet(states_, 3, 2);
  fleet.Place(1, At("3g.20gb", 4));
  fleet.Place(2, At("4g.20gb", 0));
  fleet.Place(2, At("1g.5gb", 6));
  EXPECT_EQ(Chosen(MigPolicy::kFirstFit, fleet, "1g.5gb"), "1g.5gb at 0 on GPU 0");
  EXPECT_EQ(Chosen(MigPolicy::kBestFit, fleet, "1g.5gb"), "1g.5gb at 4 on GPU 2");
  EXPECT_EQ(Chosen(MigPolicy::kBestFit, fleet, "3g.20gb"), "3g.20gb at 0 on GPU 1");
  EXPECT_EQ(Chosen(MigPolicy::kLoadBalancing, fleet, "1g.5gb"), "1g.5gb at 6 on GPU 0");
  EXPECT_EQ(Chosen(MigPolicy::kHami, fleet, "1g.5gb"), "1g.5gb at 5 on GPU 2");
  EXPECT_EQ(Chosen(MigPolicy::kDra, fleet, "1g.5gb"), "1g.5gb at 0 on GPU 0");
  EXPECT_EQ(Chosen(MigPolicy::kInstaslice, fleet, "2g.10gb"), "2g.10gb at 0 on GPU 0");
  EXPECT_EQ(Chosen(MigPolicy::kSrcDrain, fleet, "1g.5gb"), "1g.5gb at 4 on GPU 2");
  EXPECT_EQ(Chosen(MigPolicy::kSrcDrain, fleet, "7g.40gb"), "7g.40gb at 0 on GPU 0");
  EXPECT_EQ(Chosen(MigPolicy::kBerth, fleet, "4g.20gb"), "4g.20gb at 0 on GPU 1");
}

TEST_F(MigPolicyTest, NodePoliciesLookAtTheNode) {
  MigFleet fleet(states_, 4, 2);
  fleet.Place(0, At("7g.40gb", 0));  // one instance, eight units
  fleet.Place(2, At("1g.5gb", 0));   // two instances, two units
  fleet.Place(3, At("1g.5gb", 0));
  EXPECT_EQ(Chosen(MigPolicy::kDra, fleet, "1g.5gb"), "1g.5gb at 0 on GPU 1");
  EXPECT_EQ(Chosen(MigPolicy::kInstaslice, fleet, "1g.5gb"), "1g.5gb at 1 on GPU 2");
  EXPECT_EQ(Chosen(MigPolicy::kDra, fleet, "7g.40gb"), "7g.40gb at 0 on GPU 1");
  fleet.Place(1, At("7g.40gb", 0));
  EXPECT_EQ(Chosen(MigPolicy::kDra, fleet, "7g.40gb"), "nowhere");
}

// Node 0 would break an empty GPU, node 1 has a hole that 1g fits; its allocator starts at 4.
TEST_F(MigPolicyTest, ForecastsWhatTheNodesAllocatorTakes) {
  MigFleet fleet(states_, 4, 2);
  fleet.Place(2, At("4g.20gb", 0));
  fleet.Place(3, At("7g.40gb", 0));
  for (const MigPolicy policy : {MigPolicy::kBerth, MigPolicy::kSrcDrain, MigPolicy::kBestFit,
                                 MigPolicy::kHami, MigPolicy::kMfi}) {
    EXPECT_EQ(Chosen(policy, fleet, "1g.5gb", MigPick::kNodeFirstFit), "1g.5gb at 4 on GPU 2")
        << MigPolicyNameOf(policy);
  }
  for (const MigPolicy policy :
       {MigPolicy::kFirstFit, MigPolicy::kDra, MigPolicy::kLoadBalancing, MigPolicy::kInstaslice}) {
    EXPECT_EQ(Chosen(policy, fleet, "1g.5gb", MigPick::kNodeFirstFit), "1g.5gb at 0 on GPU 0")
        << MigPolicyNameOf(policy);
  }
}

// By hand: 1g at 0 on an empty GPU has seven free units. Profiles up to that size: 1g blocked at 0
// (1), double and 2g at 0 (2 + 2), 3g and 4g at 0 (4 + 4) = 13; 7g is larger and not counted. All
// blocked starts but the 1g's own are partly free.
TEST_F(MigPolicyTest, FragmentationIsCountedInBothReadings) {
  EXPECT_EQ(MigChooser(MigPolicy::kMfi, states_).CostOf(0, At("1g.5gb", 0)), 13);
  EXPECT_EQ(MigChooser(MigPolicy::kMfiPartial, states_).CostOf(0, At("1g.5gb", 0)), 12);
  EXPECT_EQ(MigChooser(MigPolicy::kMfi, states_).CostOf(0, At("7g.40gb", 0)), 0);
}

// Of grants and releases in any order: no policy refuses what fits, none grants what does not.
TEST_F(MigPolicyTest, AllPlaceWhateverFitsAndNothingElse) {
  for (const MigPick pick : {MigPick::kPolicy, MigPick::kNodeFirstFit}) {
    for (const MigPolicyName& named : MigPolicies()) {
      const MigChooser chooser(named.policy, states_, pick);
      MigFleet fleet(states_, 5, 2);
      std::vector<MigLayout> gpus(5, MigLayout(product_));
      std::vector<MigChoice> granted;
      Random random(5);
      for (int step = 0; step < 1'000; ++step) {
        if (!granted.empty() && random.Below(5) < 2) {
          const std::size_t i = random.Below(granted.size());
          fleet.Remove(granted[i].gpu, granted[i].placement);
          ASSERT_TRUE(gpus[std::size_t(granted[i].gpu)].Remove(granted[i].placement));
          granted.erase(granted.begin() + std::ptrdiff_t(i));
          continue;
        }
        const int rows[] = {0, 2, 3, 4, 5, 6};
        const int row = rows[random.Below(6)];
        const bool fits =
            std::ranges::any_of(gpus, [&](const MigLayout& gpu) { return gpu.Addable(row) != 0; });
        const auto choice = chooser.Choose(fleet, row);
        ASSERT_EQ(choice.has_value(), fits) << named.name;
        if (!choice) continue;
        ASSERT_EQ(product_.placement(choice->placement).row, row);
        ASSERT_TRUE(gpus[std::size_t(choice->gpu)].Add(choice->placement)) << named.name;
        fleet.Place(choice->gpu, choice->placement);
        granted.push_back(*choice);
      }
    }
  }
}

// A decision over states is the decision over GPUs, one by one.
TEST_F(MigPolicyTest, StatesStandForTheirGpus) {
  for (const MigPolicy policy :
       {MigPolicy::kBerth, MigPolicy::kMfi, MigPolicy::kBestFit, MigPolicy::kFirstFit}) {
    const MigChooser chooser(policy, states_);
    MigFleet fleet(states_, 12, 8);
    Random random(6);
    for (int step = 0; step < 200; ++step) {
      const int rows[] = {0, 2, 3, 4, 5, 6};
      const int row = rows[random.Below(6)];
      std::optional<MigChoice> best;
      for (int gpu = 0; gpu < fleet.gpus(); ++gpu) {
        const int placement = chooser.PlacementIn(fleet.state(gpu), row);
        if (placement == MigStates::kNone) continue;
        const auto cost = chooser.CostOf(fleet.state(gpu), placement);
        if (!best || cost < chooser.CostOf(fleet.state(best->gpu), best->placement)) {
          best = MigChoice{gpu, placement};
        }
      }
      ASSERT_EQ(chooser.Choose(fleet, row), best) << MigPolicyNameOf(policy);
      if (best) fleet.Place(best->gpu, best->placement);
      const int gpu = static_cast<int>(random.Below(12));
      const MigSet set = states_.set(fleet.state(gpu));
      if (set != 0 && random.Below(2) == 0) fleet.Remove(gpu, std::countr_zero(set));
    }
  }
}

TEST(MigFleet, CountsNodesAndStates) {
  const MigProduct& product = *FindMigProduct("A30-24GB");
  const MigStates states = *MigStates::Of(product);
  MigFleet fleet(states, 5, 2);
  EXPECT_EQ(fleet.nodes(), 3);
  EXPECT_EQ(fleet.first_gpu(2), 4);
  EXPECT_EQ(fleet.first_gpu(3), 5);
  EXPECT_EQ(fleet.free_units(2), 4) << "the last node has one GPU";
  fleet.Place(3, *product.PlacementAt(*product.RowOf(*ParseMigProfile("2g.12gb")), 2));
  EXPECT_EQ(fleet.free_units(1), 6);
  EXPECT_EQ(fleet.instances(1), 1);
  EXPECT_EQ(fleet.present().size(), 2U);
  EXPECT_EQ(*fleet.GpusIn(fleet.state(3)).begin(), 3);
  fleet.Remove(3, *product.PlacementAt(*product.RowOf(*ParseMigProfile("2g.12gb")), 2));
  EXPECT_EQ(fleet.present().size(), 1U);
  EXPECT_EQ(fleet.GpusIn(0).size(), 5U);
  EXPECT_EQ(fleet.free_units(1), 8);
}

}  // namespace
}  // namespace berth::replay::mig_policy_test
