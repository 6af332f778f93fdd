// SPDX-License-Identifier: Apache-2.0
#include "topology/mig/mig_start_rule.h"

#include <bit>

namespace berth {
namespace {

// Placements of a row are in the order of their starts.
int Lowest(MigSet possible) { return std::countr_zero(possible); }
int Highest(MigSet possible) { return 63 - std::countl_zero(possible); }

int LeavingMost(const MigProduct& product, MigSet set, MigSet possible, MigSet counted) {
  int best = 0, most = -1;
  for (; possible != 0; possible &= possible - 1) {
    const int placement = std::countr_zero(possible);
    const MigSet after = product.Addable(set | MigSet{1} << placement);
    if (const int left = std::popcount(after & counted); left > most) {
      most = left;
      best = placement;
    }
  }
  return best;
}

}  // namespace

std::optional<int> MigStartBy(MigStartRule rule, const MigProduct& product, MigSet set, int row,
                              MigSet counted) {
  const MigSet possible = product.Addable(set) & product.PlacementsOf(row);
  if (possible == 0) return std::nullopt;
  if (rule == MigStartRule::kLowest) return Lowest(possible);
  if (rule == MigStartRule::kDriver) return LeavingMost(product, set, possible, counted);
  const int slices = product.row(row).profile.compute_slices;
  return slices == 1 || slices == 3 ? Highest(possible) : Lowest(possible);
}

}  // namespace berth
