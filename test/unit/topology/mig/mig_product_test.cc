// SPDX-License-Identifier: Apache-2.0
#include "topology/mig/mig_product.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <utility>
#include <vector>

namespace berth::mig_product_test {
namespace {

MigProfile P(std::string_view name) { return *ParseMigProfile(name); }

MigProductSpec Small() {
  MigProductSpec spec{"card", 2, 4, false, {}, {}, {}};
  spec.rows.push_back({P("1g.6gb"), 1, 0b1111, 4, 0, false, {}, "test"});
  spec.rows.push_back({P("2g.12gb"), 2, 0b101, 2, 0, false, {}, "test"});
  return spec;
}

std::string Refusal(MigProductSpec spec) {
  const auto product = MigProduct::Make(std::move(spec));
  return product ? "no error" : product.error().message;
}

TEST(MigProduct, NumbersPlacementsByRowThenStart) {
  const auto product = MigProduct::Make(Small());
  ASSERT_TRUE(product);
  ASSERT_EQ(product->placements().size(), 6U);
  EXPECT_EQ(product->placements()[5].row, 1);
  EXPECT_EQ(product->placements()[5].start, 2);
  EXPECT_EQ(product->placements()[5].units, 0b1100);
  EXPECT_EQ(product->PlacementsOf(1), 0b110000U);
  EXPECT_EQ(product->AllPlacements(), 0b111111U);
  EXPECT_EQ(product->PlacementAt(1, 2), 5);
  EXPECT_EQ(product->PlacementAt(1, 1), std::nullopt);
  EXPECT_EQ(product->RowOf(P("2g.12gb")), 1);
  EXPECT_EQ(product->RowOf(P("2g.12gb+me")), std::nullopt);
}

TEST(MigProduct, HeedsCountsThatGeometryDoesNotImply) {
  MigProductSpec spec = Small();
  spec.rows[0].max_instances = 2;
  const auto product = MigProduct::Make(spec);
  ASSERT_TRUE(product);
  EXPECT_EQ(product->Addable(0b0011), 0b100000U) << "two of the first row are there";
  EXPECT_FALSE(product->IsValid(0b0111));
  EXPECT_TRUE(product->IsValid(0b0011));
}

TEST(MigProduct, RefusesTablesThatMakeNoSense) {
  const auto with = [](auto change) {
    MigProductSpec spec = Small();
    change(spec);
    return Refusal(std::move(spec));
  };
  EXPECT_EQ(with([](auto& spec) { spec.memory_units = 17; }),
            "card: want 1 to 16 memory units, got 17");
  EXPECT_EQ(with([](auto& spec) { spec.rows[1].memory_units = 5; }),
            "card: 2g.12gb: want 1 to 4 memory units, got 5");
  EXPECT_EQ(with([](auto& spec) { spec.rows[1].starts = 0b1000; }),
            "card: 2g.12gb: want starts from 0 to 2, got the bits 8");
  EXPECT_EQ(with([](auto& spec) { spec.rows[1].starts = 0; }),
            "card: 2g.12gb: want starts from 0 to 2, got the bits 0");
  EXPECT_EQ(with([](auto& spec) { spec.rows[0].max_instances = 0; }),
            "card: 1g.6gb: want at least 1 instance, got 0");
  EXPECT_EQ(with([](auto& spec) { spec.rows[1].profile = spec.rows[0].profile; }),
            "card: 1g.6gb: the profile is there twice");
  EXPECT_EQ(with([](auto& spec) { spec.rows[1].profile = P("1c.2g.12gb"); }),
            "card: 1c.2g.12gb: want a profile of GPU instances, got a compute instance");
  EXPECT_EQ(with([](auto& spec) { spec.rows.clear(); }), "card: want 1 to 64 placements, got 0");
  EXPECT_EQ(with([](auto& spec) { spec.aliases.emplace_back(P("1g.7gb"), P("1g.8gb")); }),
            "card: 1g.7gb: want another name of a row, got 1g.8gb");
}

TEST(MigProduct, TakesARowThatANodePublishes) {
  const MigProduct& known = *FindMigProduct("RTX-PRO-5000-BW-48GB");
  MigRow row = known.rows()[0];
  row.starts = 0b01;
  row.max_instances = 1;
  row.source = "node n1";
  const auto corrected = known.WithRow(row);
  ASSERT_TRUE(corrected);
  EXPECT_EQ(corrected->rows().size(), known.rows().size());
  EXPECT_EQ(corrected->rows()[0].source, "node n1");
  EXPECT_EQ(std::popcount(corrected->PlacementsOf(0)), 1);
  row.profile = P("1g.25gb");
  const auto more = known.WithRow(row);
  ASSERT_TRUE(more);
  EXPECT_EQ(more->rows().size(), known.rows().size() + 1);
  row.memory_units = 9;
  EXPECT_FALSE(known.WithRow(row));
}

TEST(MigProduct, KnowsProfilesByTheirOtherNames) {
  const MigProduct& gb200 = *FindMigProduct("GB200-186GB");
  EXPECT_EQ(gb200.RowOf(P("7g.189gb")), gb200.RowOf(P("7g.186gb")));
  EXPECT_TRUE(gb200.RowOf(P("7g.189gb")));
  EXPECT_NE(gb200.RowOf(P("1g.24gb+me")), gb200.RowOf(P("1g.24gb")));
  MigRow row = gb200.rows()[0];
  row.profile = P("1g.24gb");
  const auto own = gb200.WithRow(row);
  ASSERT_TRUE(own);
  EXPECT_NE(own->RowOf(P("1g.24gb")), own->RowOf(P("1g.23gb"))) << "a row of its own now";
}

}  // namespace
}  // namespace berth::mig_product_test
