// SPDX-License-Identifier: Apache-2.0
//
// The counts are those of reference enumerations over NVIDIA's published profiles; the 19 sets are
// the rows of the figure of the MIG User Guide for A100-40GB.
#include "topology/mig/mig_states.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "test/support/mig_sets.h"
#include "topology/mig/mig_product.h"

namespace berth::test::mig_states_test {
namespace {

// Rows without extension; of those of one compute slice only the smallest, unless doubles are in.
std::vector<int> PlainRows(const MigProduct& product, bool doubles) {
  std::vector<int> rows;
  int smallest = kMaxMigUnits;
  for (const MigRow& row : product.rows()) smallest = std::min(smallest, row.memory_units);
  for (int r = 0; r < static_cast<int>(product.rows().size()); ++r) {
    const MigRow& row = product.row(r);
    if (row.profile.extension != MigExtension::kNone) continue;
    const bool is_double = row.profile.compute_slices == 1 && row.memory_units > smallest;
    if (!is_double || doubles) rows.push_back(r);
  }
  return rows;
}

struct Count {
  int states = 0, maximal = 0, multisets = 0, masks = 0;
  friend bool operator==(const Count&, const Count&) = default;
};
std::ostream& operator<<(std::ostream& out, const Count& c) {
  return out << c.states << " / " << c.maximal << " / " << c.multisets << " / " << c.masks;
}

Count CountOf(const MigStates& states) {
  Count count;
  std::set<std::vector<int>> multisets;
  std::set<MigUnits> masks;
  count.states = states.size();
  for (int state = 0; state < states.size(); ++state) {
    masks.insert(states.product().UnitsOf(states.set(state)));
    if (states.Addable(state) != 0) continue;
    ++count.maximal;
    std::vector<int> instances;
    for (std::size_t r = 0; r < states.product().rows().size(); ++r) {
      instances.push_back(
          std::popcount(states.set(state) & states.product().PlacementsOf(static_cast<int>(r))));
    }
    multisets.insert(instances);
  }
  count.multisets = static_cast<int>(multisets.size());
  count.masks = static_cast<int>(masks.size());
  return count;
}

struct Expected {
  Count base, doubles, all;
};

Expected CountsFor(const MigProduct& product) {
  if (product.name() == "RTX-PRO-4500-BW-32GB") {
    return {{5, 2, 2, 4}, {5, 2, 2, 4}, {22, 13, 9, 4}};
  }
  if (product.name() == "RTX-PRO-5000-BW-48GB") {
    return {{5, 2, 2, 4}, {5, 2, 2, 4}, {30, 19, 12, 4}};
  }
  if (product.memory_units() == 12) {
    return {{26, 5, 4, 16}, {26, 5, 4, 16}, {717, 302, 64, 16}};
  }
  if (product.memory_units() == 4) {
    return {{26, 5, 4, 16}, {26, 5, 4, 16}, {76, 17, 8, 16}};
  }
  return {{298, 19, 14, 144}, {723, 78, 38, 192}, {2319, 239, 64, 192}};
}

TEST(MigStates, AreAsManyAsTheReferenceEnumerationFinds) {
  for (const MigProduct& product : MigCatalogue()) {
    const Expected expected = CountsFor(product);
    EXPECT_EQ(CountOf(*MigStates::Of(product, PlainRows(product, false))), expected.base)
        << product.name();
    EXPECT_EQ(CountOf(*MigStates::Of(product, PlainRows(product, true))), expected.doubles)
        << product.name();
    EXPECT_EQ(CountOf(*MigStates::Of(product)), expected.all) << product.name();
  }
}

TEST(MigStates, HaveThe19MaximalSetsOfTheUserGuide) {
  const MigProduct& product = *FindMigProduct("A100-40GB");
  const MigStates states = *MigStates::Of(product, PlainRows(product, false));
  std::set<std::string> maximal;
  for (int state = 0; state < states.size(); ++state) {
    if (states.Addable(state) == 0) maximal.insert(MigSetName(product, states.set(state)));
  }
  // Six left halves with three right halves, and the whole GPU. Names are in the order of rows.
  const std::vector<std::vector<std::string>> lefts = {
      {"4g.20gb at 0"},
      {"3g.20gb at 0"},
      {"2g.10gb at 0", "2g.10gb at 2"},
      {"1g.5gb at 2", "1g.5gb at 3", "2g.10gb at 0"},
      {"1g.5gb at 0", "1g.5gb at 1", "2g.10gb at 2"},
      {"1g.5gb at 0", "1g.5gb at 1", "1g.5gb at 2", "1g.5gb at 3"}};
  const std::vector<std::vector<std::string>> rights = {
      {"3g.20gb at 4"},
      {"1g.5gb at 6", "2g.10gb at 4"},
      {"1g.5gb at 4", "1g.5gb at 5", "1g.5gb at 6"}};
  std::set<std::string> expected = {"7g.40gb at 0"};
  for (const auto& left : lefts) {
    for (const auto& right : rights) {
      std::vector<std::string> both = left;
      both.insert(both.end(), right.begin(), right.end());
      std::ranges::sort(both);
      std::string name;
      for (const std::string& one : both) name += (name.empty() ? "" : ", ") + one;
      expected.insert(name);
    }
  }
  EXPECT_EQ(expected.size(), 19U);
  EXPECT_EQ(maximal, expected);
}

// Every subset that the rules told once more allow is a state, and no other.
TEST(MigStates, AreExactlyTheSetsThatGoTogether) {
  for (const char* name : {"A30-24GB", "A100-40GB", "RTX-PRO-4500-BW-32GB"}) {
    const MigProduct& product = *FindMigProduct(name);
    const MigStates states = *MigStates::Of(product);
    const std::vector<RowAndStart> placements = PlacementsByHand(product);
    int found = 0;
    std::vector<RowAndStart> set;
    const std::function<void(std::size_t, MigSet)> visit = [&](std::size_t next, MigSet bits) {
      if (!GoTogetherByHand(product, set)) return;
      if (next == placements.size()) {
        ++found;
        EXPECT_NE(states.IndexOf(bits), MigStates::kNone) << MigSetName(product, bits);
        return;
      }
      visit(next + 1, bits);
      set.push_back(placements[next]);
      visit(next + 1, bits | MigSet{1} << next);
      set.pop_back();
    };
    visit(0, 0);
    EXPECT_EQ(found, states.size()) << name;
  }
}

TEST(MigStates, AreConnectedByWhatIsAddedAndRemoved) {
  for (const MigProduct& product : MigCatalogue()) {
    const MigStates states = *MigStates::Of(product);
    EXPECT_EQ(states.set(0), 0U);
    for (int state = 0; state < states.size(); ++state) {
      ASSERT_EQ(states.IndexOf(states.set(state)), state);
      ASSERT_EQ(states.Addable(state), product.Addable(states.set(state)));
      for (int p = 0; p < static_cast<int>(product.placements().size()); ++p) {
        const MigSet one = MigSet{1} << p;
        const bool addable = (states.Addable(state) & one) != 0;
        const bool there = (states.set(state) & one) != 0;
        ASSERT_EQ(states.With(state, p) != MigStates::kNone, addable);
        ASSERT_EQ(states.Without(state, p) != MigStates::kNone, there);
        if (addable) {
          ASSERT_EQ(states.set(states.With(state, p)), states.set(state) | one);
        }
        if (there) {
          ASSERT_EQ(states.set(states.Without(state, p)), states.set(state) & ~one);
        }
      }
    }
    EXPECT_EQ(states.IndexOf(~MigSet{0}), MigStates::kNone);
  }
}

TEST(MigStates, ComputeSlicesNeverBindBeyondGeometry) {
  for (const MigProduct& product : MigCatalogue()) {
    const MigStates states = *MigStates::Of(product);
    for (int state = 0; state < states.size(); ++state) {
      int slices = 0;
      for (MigSet left = states.set(state); left != 0; left &= left - 1) {
        const int row = product.placement(std::countr_zero(left)).row;
        slices += product.row(row).profile.compute_slices;
      }
      ASSERT_LE(slices, product.compute_slices()) << MigSetName(product, states.set(state));
    }
  }
}

TEST(MigStates, RefuseATableWithTooManyLayouts) {
  MigProductSpec spec{"fine", 16, 16, false, {}, {}, {}};
  for (int gb = 1; gb <= 2; ++gb) {
    spec.rows.push_back({{1, gb}, 1, 0xffff, 16, 0, false, {}, "test"});
  }
  const auto product = MigProduct::Make(std::move(spec));
  ASSERT_TRUE(product);
  const auto states = MigStates::Of(*product);
  ASSERT_FALSE(states);
  EXPECT_EQ(states.error().message, "fine: want at most 32000 layouts, got more");
}

}  // namespace
}  // namespace berth::test::mig_states_test
