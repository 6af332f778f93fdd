// SPDX-License-Identifier: Apache-2.0
#include "scoring/mig/mig_tables.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "topology/mig/mig_product.h"

namespace berth::mig_potential_test {
namespace {

const MigProduct& A100() { return *FindMigProduct("A100-40GB"); }

int At(const MigProduct& product, const char* profile, int start) {
  return *product.PlacementAt(*product.RowOf(*ParseMigProfile(profile)), start);
}

// 1g, 1g of double memory, 2g, 3g, 4g, 7g.
MigStates SixProfiles() { return *MigStates::Of(A100(), std::vector<int>{0, 2, 3, 4, 5, 6}); }

// Size-weighted placements lost on an empty GPU, of 41. (1g of double memory at 6: a 1g, itself,
// 3g at 4 and 7g.)
TEST(MigPotential, SrcLosesTheSizesOfWhatIsBlocked) {
  const MigStates states = SixProfiles();
  MigWeights weights = SrcDrainWeights(A100());
  weights.resize(1);  // without the tie-break
  const MigPotential potential(states, weights);
  EXPECT_DOUBLE_EQ(potential.worth(0), 41);
  const struct {
    const char* profile;
    int start, loss;
  } cases[] = {{"1g.5gb", 6, 15},  {"1g.5gb", 5, 17},  {"1g.5gb", 4, 17},  {"1g.5gb", 3, 21},
               {"1g.5gb", 0, 21},  {"1g.10gb", 6, 15}, {"1g.10gb", 4, 18}, {"1g.10gb", 2, 22},
               {"1g.10gb", 0, 22}, {"2g.10gb", 4, 18}, {"2g.10gb", 2, 22}, {"2g.10gb", 0, 22},
               {"3g.20gb", 4, 21}, {"3g.20gb", 0, 28}, {"4g.20gb", 0, 28}, {"7g.40gb", 0, 41}};
  for (const auto& [profile, start, loss] : cases) {
    EXPECT_EQ(potential.Loss(0, At(A100(), profile, start)), loss * 1'000'000)
        << profile << " at " << start;
  }
}

// One instance: half of the time it is still there, half of the time the GPU is empty.
TEST(MigPotential, DrainIsTheMeanOverWhoIsStillThere) {
  const MigStates states = SixProfiles();
  const MigHorizon now = SrcDrainWeights(A100())[0];
  const MigPotential as_it_is(states, {now});
  for (const double keep : {0.0, 0.25, 0.5, 1.0}) {
    const MigPotential later(states, {{keep, now.weight}});
    const int one = states.With(0, At(A100(), "3g.20gb", 4));
    EXPECT_NEAR(later.worth(one), keep * as_it_is.worth(one) + (1 - keep) * 41, 1e-9);
    const int two = states.With(one, At(A100(), "2g.10gb", 0));
    const int other = states.With(0, At(A100(), "2g.10gb", 0));
    EXPECT_NEAR(later.worth(two),
                keep * keep * as_it_is.worth(two) +
                    keep * (1 - keep) * (as_it_is.worth(one) + as_it_is.worth(other)) +
                    (1 - keep) * (1 - keep) * 41,
                1e-9);
  }
}

TEST(MigPotential, TheTieBreakNeverOutweighsAUnit) {
  const MigStates states = SixProfiles();
  MigWeights weights = SrcDrainWeights(A100());
  const MigPotential with(states, weights);
  weights.resize(1);
  const MigPotential without(states, weights);
  for (int state = 0; state < states.size(); ++state) {
    for (MigSet left = states.Addable(state); left != 0; left &= left - 1) {
      const int placement = std::countr_zero(left);
      ASSERT_NEAR(double(with.Loss(state, placement)), double(without.Loss(state, placement)),
                  500'000);
    }
  }
}

// The counts behind SRC are how many more instances fit: placements of a row are disjoint.
TEST(MigPotential, PlacementsOfARowAreDisjointOnEveryProduct) {
  for (const MigProduct& product : MigCatalogue()) {
    for (int row = 0; row < static_cast<int>(product.rows().size()); ++row) {
      int units = 0;
      for (const MigPlacement& place : product.placements()) {
        if (place.row == row) units += std::popcount(place.units);
      }
      EXPECT_EQ(units, std::popcount(product.UnitsOf(product.PlacementsOf(row)))) << product.name();
    }
  }
}

TEST(MigPotential, EveryProductHasWeightsForEveryRow) {
  for (const MigProduct& product : MigCatalogue()) {
    const MigStates states = *MigStates::Of(product);
    for (const MigWeights& weights : {SrcDrainWeights(product), BerthWeights(product)}) {
      const MigPotential potential(states, weights);
      for (const MigRow& row : product.rows()) {
        if (row.memory_units != product.memory_units()) continue;
        const int whole = *product.PlacementAt(*product.RowOf(row.profile), 0);
        EXPECT_GT(potential.Loss(0, whole), 0) << "a full GPU is worth less than an empty one";
      }
    }
  }
}

}  // namespace
}  // namespace berth::mig_potential_test
