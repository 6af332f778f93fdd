// SPDX-License-Identifier: Apache-2.0
#include "topology/mig/mig_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "base/random.h"
#include "test/support/mig_sets.h"

namespace berth::test::mig_layout_test {
namespace {

const MigProduct& A100() { return *FindMigProduct("A100-40GB"); }

int RowNamed(const MigProduct& product, std::string_view profile) {
  return *product.RowOf(*ParseMigProfile(profile));
}

int At(const MigProduct& product, std::string_view profile, int start) {
  return *product.PlacementAt(RowNamed(product, profile), start);
}

TEST(MigLayout, TakesUnitsAndGivesThemBack) {
  MigLayout gpu(A100());
  EXPECT_TRUE(gpu.empty());
  EXPECT_EQ(gpu.free_units(), 8);
  ASSERT_TRUE(gpu.Add(At(A100(), "3g.20gb", 4)));
  ASSERT_TRUE(gpu.Add(At(A100(), "1g.10gb", 2)));
  EXPECT_EQ(gpu.occupied(), 0b11111100);
  EXPECT_EQ(gpu.free_units(), 2);
  EXPECT_EQ(std::popcount(gpu.Addable(RowNamed(A100(), "1g.5gb"))), 2);
  EXPECT_EQ(gpu.Addable(RowNamed(A100(), "2g.10gb")), MigSet{1} << At(A100(), "2g.10gb", 0));
  EXPECT_EQ(MigSetName(A100(), gpu.set()), "1g.10gb at 2, 3g.20gb at 4");
  ASSERT_TRUE(gpu.Remove(At(A100(), "3g.20gb", 4)));
  EXPECT_EQ(gpu.occupied(), 0b00001100);
}

TEST(MigLayout, SaysWhatStandsInTheWay) {
  MigLayout gpu(A100());
  ASSERT_TRUE(gpu.Add(At(A100(), "3g.20gb", 0)));
  const auto added = gpu.Add(At(A100(), "1g.5gb", 3));
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, Errc::kConflict);
  EXPECT_EQ(added.error().message, "1g.5gb at 3: does not go with 3g.20gb at 0");
  const auto removed = gpu.Remove(At(A100(), "1g.5gb", 3));
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, Errc::kNotFound);
  EXPECT_EQ(removed.error().message, "1g.5gb at 3: want one of 3g.20gb at 0");
  EXPECT_EQ(MigSetName(A100(), gpu.set()), "3g.20gb at 0");
}

TEST(MigLayout, ReadsOnlySetsThatGoTogether) {
  const MigSet good = MigSet{1} << At(A100(), "4g.20gb", 0) | MigSet{1} << At(A100(), "3g.20gb", 4);
  ASSERT_TRUE(MigLayout::Of(A100(), good));
  EXPECT_EQ(MigLayout::Of(A100(), good)->set(), good);
  const auto bad = MigLayout::Of(A100(), good | MigSet{1} << At(A100(), "1g.5gb", 0));
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message,
            "want placements that go together on A100-40GB, got 1g.5gb at 0, 3g.20gb at 4, "
            "4g.20gb at 0");
  EXPECT_FALSE(MigLayout::Of(A100(), MigSet{1} << 60));
}

TEST(MigLayout, GivesMediaEnginesOncePerGpu) {
  MigLayout gpu(A100());
  ASSERT_TRUE(gpu.Add(At(A100(), "1g.5gb+me", 6)));
  EXPECT_EQ(gpu.Addable(RowNamed(A100(), "1g.5gb+me")), 0U);
  EXPECT_EQ(std::popcount(gpu.Addable(RowNamed(A100(), "1g.5gb"))), 6);
}

TEST(MigLayout, CountsTheEnginesOfAnRtxPro6000) {
  const MigProduct& rtx = *FindMigProduct("RTX-PRO-6000-BW-96GB");
  MigLayout gpu(rtx);
  ASSERT_TRUE(gpu.Add(At(rtx, "1g.24gb+me.all", 0)));
  EXPECT_EQ(gpu.Addable(RowNamed(rtx, "1g.24gb")), 0U) << "all decoders are taken";
  EXPECT_EQ(std::popcount(gpu.Addable(RowNamed(rtx, "1g.24gb-me"))), 3);
  EXPECT_EQ(gpu.Addable(RowNamed(rtx, "2g.48gb-me")), MigSet{1} << At(rtx, "2g.48gb-me", 6));
}

// No sequence of grants and releases leads to a layout that is not valid, and at every step exactly
// those placements are offered that go with what is there.
TEST(MigLayout, OffersExactlyWhatGoesTogetherOnEveryProduct) {
  Random random(41);
  for (const MigProduct& product : MigCatalogue()) {
    const std::vector<RowAndStart> placements = PlacementsByHand(product);
    ASSERT_EQ(placements.size(), product.placements().size()) << product.name();
    MigLayout gpu(product);
    std::vector<int> there;
    for (int step = 0; step < 1'500; ++step) {
      const auto set_with = [&](int placement) {
        std::vector<RowAndStart> set;
        for (const int p : there) set.push_back(placements[static_cast<std::size_t>(p)]);
        if (placement >= 0) set.push_back(placements[static_cast<std::size_t>(placement)]);
        return set;
      };
      ASSERT_TRUE(GoTogetherByHand(product, set_with(-1))) << MigSetName(product, gpu.set());
      for (int p = 0; p < static_cast<int>(placements.size()); ++p) {
        const bool offered = (gpu.Addable() >> p & 1) != 0;
        const bool is_there = (gpu.set() >> p & 1) != 0;
        ASSERT_EQ(offered, !is_there && GoTogetherByHand(product, set_with(p)))
            << product.name() << ": " << MigPlacementName(product, p) << " beside "
            << MigSetName(product, gpu.set());
      }
      const int p = static_cast<int>(random.Below(placements.size()));
      const auto held = std::ranges::find(there, p);
      if (held != there.end()) {
        ASSERT_TRUE(gpu.Remove(p));
        there.erase(held);
      } else if (gpu.Add(p)) {
        there.push_back(p);
      }
    }
  }
}

}  // namespace
}  // namespace berth::test::mig_layout_test
