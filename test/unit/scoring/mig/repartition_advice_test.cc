// SPDX-License-Identifier: Apache-2.0
#include "scoring/mig/repartition_report.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "topology/mig/mig_product.h"
#include "topology/mig/mig_states.h"

namespace berth::repartition_advice_test {
namespace {

using Ints = std::vector<int>;

const MigProduct& A100() { return *FindMigProduct("A100-40GB"); }

// Rows: 1g, 1g+me, 1g of double memory, 2g, 3g, 4g, 7g.
const Ints kNothing = {0, 0, 0, 0, 0, 0, 0};

TEST(StandardMigConfigs, AreNamedAsMigManagerNamesThem) {
  const std::vector<MigConfig> configs = StandardMigConfigs(A100());
  std::vector<std::string> names;
  for (const MigConfig& config : configs) names.push_back(config.name);
  EXPECT_EQ(names, (std::vector<std::string>{"all-1g.5gb", "all-1g.5gb.me", "all-1g.10gb",
                                             "all-2g.10gb", "all-3g.20gb", "all-4g.20gb",
                                             "all-7g.40gb", "all-balanced"}));
  EXPECT_EQ(configs[0].instances, (Ints{7, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(configs.back().instances, (Ints{2, 0, 0, 1, 1, 0, 0}));
}

// Every one of them is a layout that its product can have.
TEST(StandardMigConfigs, FitOnOneGpuOfEveryProduct) {
  for (const MigProduct& product : MigCatalogue()) {
    const MigStates states = *MigStates::Of(product);
    for (const MigConfig& config : StandardMigConfigs(product)) {
      bool found = false;
      for (int state = 0; state < states.size() && !found; ++state) {
        found = true;
        for (std::size_t r = 0; r < config.instances.size(); ++r) {
          const MigSet of_row = states.set(state) & product.PlacementsOf(static_cast<int>(r));
          found = found && std::popcount(of_row) == config.instances[r];
        }
      }
      EXPECT_TRUE(found) << product.name() << " " << config.name;
    }
  }
}

TEST(RepartitionAdvice, NamesTheLayoutThatTakesTheMostPods) {
  const auto advice = AdviseRepartition(A100(), 2, Ints{5, 0, 0, 3, 4, 0, 0}, kNothing);
  ASSERT_TRUE(advice);
  EXPECT_EQ(advice->config, "all-balanced") << "4 x 1g, 2 x 2g, 2 x 3g";
  EXPECT_EQ(advice->fits, 8);
  EXPECT_EQ(advice->fits_now, 0);
  EXPECT_EQ(advice->fits_cut_at_will, 9) << "5 x 1g, 3 x 2g, 1 x 3g";
}

TEST(RepartitionAdvice, OfEqualsUsesMoreMemory) {
  EXPECT_EQ(AdviseRepartition(A100(), 1, Ints{1, 0, 0, 0, 0, 0, 1}, kNothing)->config,
            "all-7g.40gb");
}

TEST(RepartitionAdvice, IsSilentWhereNothingIsWon) {
  EXPECT_FALSE(AdviseRepartition(A100(), 1, kNothing, kNothing)) << "nobody waits";
  EXPECT_FALSE(AdviseRepartition(A100(), 1, Ints{7, 0, 0, 0, 0, 0, 0}, Ints{7, 0, 0, 0, 0, 0, 0}));
  const auto more =
      AdviseRepartition(A100(), 1, Ints{7, 0, 0, 0, 0, 0, 0}, Ints{2, 0, 0, 1, 1, 0, 0});
  ASSERT_TRUE(more);
  EXPECT_EQ(more->config, "all-1g.5gb");
  EXPECT_EQ(more->fits_now, 2);
  EXPECT_EQ(more->fits, 7);
}

TEST(RepartitionAdvice, LeavesOpenWhatNoClosedFormAnswers) {
  const auto advice = AdviseRepartition(A100(), 3, Ints{0, 2, 0, 0, 0, 0, 0}, kNothing);
  ASSERT_TRUE(advice);
  EXPECT_EQ(advice->config, "all-1g.5gb.me");
  EXPECT_EQ(advice->fits, 2);
  EXPECT_EQ(advice->fits_cut_at_will, std::nullopt);
}

}  // namespace
}  // namespace berth::repartition_advice_test
