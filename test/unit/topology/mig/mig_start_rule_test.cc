// SPDX-License-Identifier: Apache-2.0
#include "topology/mig/mig_product.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace berth::mig_start_rule_test {
namespace {

const MigProduct& A100() { return *FindMigProduct("A100-40GB"); }

constexpr int kFails = -1;

// The starts that a rule takes when these profiles are created one after the other.
std::vector<int> Starts(MigStartRule rule, const std::vector<std::string_view>& profiles) {
  std::vector<int> starts;
  MigSet set = 0;
  for (const std::string_view profile : profiles) {
    const auto placement = MigStartBy(rule, A100(), set, *A100().RowOf(*ParseMigProfile(profile)));
    starts.push_back(placement ? A100().placement(*placement).start : kFails);
    if (placement) set |= MigSet{1} << *placement;
  }
  return starts;
}

using Ints = std::vector<int>;

// Three sequences printed in the MIG User Guide ("Creating GPU instances"), and seven 1g.
TEST(MigStartRule, TheDriversSequences) {
  EXPECT_EQ(Starts(MigStartRule::kDriver, {"1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"}),
            (Ints{6, 4, 0, kFails}));
  EXPECT_EQ(Starts(MigStartRule::kDriver, {"3g.20gb", "1g.5gb", "2g.10gb", "1g.5gb"}),
            (Ints{4, 0, 2, 1}));
  EXPECT_EQ(
      Starts(MigStartRule::kDriver, {"2g.10gb", "1g.5gb", "1g.5gb", "1g.5gb", "1g.5gb", "1g.5gb"}),
      (Ints{4, 6, 0, 1, 2, 3}));
  EXPECT_EQ(Starts(MigStartRule::kDriver, std::vector<std::string_view>(7, "1g.5gb")),
            (Ints{6, 4, 5, 0, 1, 2, 3}));
}

TEST(MigStartRule, LowestAndHami) {
  EXPECT_EQ(Starts(MigStartRule::kLowest, {"1g.5gb", "2g.10gb", "3g.20gb", "1g.10gb"}),
            (Ints{0, 2, 4, kFails}));
  EXPECT_EQ(Starts(MigStartRule::kHighOrLow, {"1g.5gb", "2g.10gb", "1g.10gb", "1g.5gb", "3g.20gb"}),
            (Ints{6, 0, 4, 3, kFails}));
  EXPECT_EQ(Starts(MigStartRule::kHighOrLow, {"3g.20gb", "3g.20gb"}), (Ints{4, 0}));
  EXPECT_EQ(Starts(MigStartRule::kHighOrLow, {"7g.40gb", "4g.20gb"}), (Ints{0, kFails}));
}

}  // namespace
}  // namespace berth::mig_start_rule_test
