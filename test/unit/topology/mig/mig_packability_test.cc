// SPDX-License-Identifier: Apache-2.0
#include "topology/mig/mig_states.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "topology/mig/mig_product.h"

namespace berth::mig_packability_test {
namespace {

using Counts = std::vector<int>;

// Every count vector that some layout of `gpus` GPUs has, by search over all layouts.
std::set<Counts> CountsByLayouts(const MigStates& states, int gpus) {
  std::set<Counts> one;
  for (int state = 0; state < states.size(); ++state) {
    Counts counts;
    for (int r = 0; r < static_cast<int>(states.product().rows().size()); ++r) {
      counts.push_back(std::popcount(states.set(state) & states.product().PlacementsOf(r)));
    }
    one.insert(counts);
  }
  std::set<Counts> all = one;
  for (int gpu = 1; gpu < gpus; ++gpu) {
    std::set<Counts> next;
    for (const Counts& a : all) {
      for (const Counts& b : one) {
        Counts sum = a;
        for (std::size_t r = 0; r < sum.size(); ++r) sum[r] += b[r];
        next.insert(sum);
      }
    }
    all = std::move(next);
  }
  return all;
}

std::string Text(const Counts& counts) {
  std::string text;
  for (const int count : counts) text += std::to_string(count) + " ";
  return text;
}

// Rows without extension.
std::vector<int> PlainRows(const MigProduct& product) {
  std::vector<int> rows;
  for (int r = 0; r < static_cast<int>(product.rows().size()); ++r) {
    const MigRow& row = product.row(r);
    if (row.profile.extension == MigExtension::kNone) rows.push_back(r);
  }
  return rows;
}

// All counts up to what units allow and a little beyond: the closed form says yes to exactly those
// that some layout has.
void ExpectSameAsSearch(const MigProduct& product, int gpus) {
  const std::vector<int> rows = PlainRows(product);
  const std::set<Counts> possible = CountsByLayouts(*MigStates::Of(product, rows), gpus);
  Counts counts(product.rows().size());
  int yes = 0, no = 0;
  for (;;) {
    const bool expected = possible.contains(counts);
    ASSERT_EQ(MigPackable(product, counts, gpus), expected)
        << product.name() << " x " << gpus << ": " << Text(counts);
    ++(expected ? yes : no);
    std::size_t digit = 0;
    for (; digit < rows.size(); ++digit) {
      const auto r = static_cast<std::size_t>(rows[digit]);
      if (++counts[r] <= gpus * product.rows()[r].max_instances + 1) break;
      counts[r] = 0;
    }
    if (digit == rows.size()) break;
  }
  EXPECT_GE(yes, 10);
  EXPECT_GE(no, 10);
}

TEST(MigPackability, EqualsSearchOnOneAndTwoGpus) {
  for (const char* name : {"A30-24GB", "A100-40GB", "RTX-PRO-6000-BW-96GB"}) {
    ExpectSameAsSearch(*FindMigProduct(name), 1);
    ExpectSameAsSearch(*FindMigProduct(name), 2);
  }
}

TEST(MigPackability, EqualsSearchOnRandomCountsOfThreeGpus) {
  const MigProduct& product = *FindMigProduct("A100-40GB");
  const std::vector<int> rows = PlainRows(product);
  const std::set<Counts> possible = CountsByLayouts(*MigStates::Of(product, rows), 3);
  Random random(17);
  int yes = 0;
  for (int round = 0; round < 20'000; ++round) {
    // Near what just fits: units for three GPUs are spent at random.
    Counts counts(product.rows().size());
    for (int units = 14 + static_cast<int>(random.Below(11)); units > 0;) {
      const auto r = static_cast<std::size_t>(rows[random.Below(rows.size())]);
      units -= product.rows()[r].memory_units;
      ++counts[r];
    }
    const bool expected = possible.contains(counts);
    yes += expected ? 1 : 0;
    ASSERT_EQ(MigPackable(product, counts, 3), expected) << Text(counts);
  }
  EXPECT_GT(yes, 2'000);
  EXPECT_LT(yes, 18'000);
}

TEST(MigPackability, AnswersForManyGpusAtOnce) {
  const MigProduct& product = *FindMigProduct("H100-80GB");
  // 1g, 1g+me, double, 2g, 3g, 4g, 7g
  EXPECT_EQ(MigPackable(product, Counts{0, 0, 0, 0, 1'000'000, 1'000'000, 0}, 1'000'000), true);
  EXPECT_EQ(MigPackable(product, Counts{1, 0, 0, 0, 1'000'000, 1'000'000, 0}, 1'000'000), false);
  EXPECT_EQ(MigPackable(product, Counts{0, 0, 0, 0, 0, 0, 0}, 0), true);
  EXPECT_EQ(MigPackable(product, Counts{0, 0, 0, 0, 0, 0, 1}, 0), false);
}

TEST(MigPackability, DoesNotAnswerWhereEnginesAreShared) {
  EXPECT_EQ(MigPackable(*FindMigProduct("A100-40GB"), Counts{0, 1, 0, 0, 0, 0, 0}, 1),
            std::nullopt);
  const MigProduct& rtx = *FindMigProduct("RTX-PRO-6000-BW-96GB");
  Counts counts(rtx.rows().size());
  counts[3] = 1;  // 1g.24gb+me.all
  EXPECT_EQ(MigPackable(rtx, counts, 1), std::nullopt);
}

TEST(MigPackability, RoomIsWhatStillFits) {
  const MigProduct& product = *FindMigProduct("A100-40GB");
  EXPECT_EQ(MigRoomFor(product, Counts{0, 0, 0, 0, 0, 0, 0}, 0, 2), 14);
  EXPECT_EQ(MigRoomFor(product, Counts{0, 0, 0, 0, 1, 0, 0}, 5, 2), 2) << "3g takes a right half";
  EXPECT_EQ(MigRoomFor(product, Counts{0, 0, 0, 0, 0, 0, 1}, 2, 2), 4);
  EXPECT_EQ(MigRoomFor(product, Counts{0, 0, 0, 0, 0, 0, 3}, 2, 2), 0) << "too much already";
  EXPECT_EQ(MigRoomFor(product, Counts{0, 0, 0, 0, 0, 0, 0}, 1, 2), std::nullopt);
}

}  // namespace
}  // namespace berth::mig_packability_test
