// SPDX-License-Identifier: Apache-2.0
#include "topology/mig/mig_layout.h"

#include <bit>
#include <string>

namespace berth {

Result<MigLayout> MigLayout::Of(const MigProduct& product, MigSet set) {
  if ((set & ~product.AllPlacements()) != 0) {
    return Invalid("want placements of " + product.name() + ", got the bits " +
                   std::to_string(set));
  }
  if (!product.IsValid(set)) {
    return Invalid("want placements that go together on " + product.name() + ", got " +
                   MigSetName(product, set));
  }
  MigLayout layout(product);
  layout.set_ = set;
  return layout;
}

int MigLayout::free_units() const { return product_->memory_units() - std::popcount(occupied()); }

Status MigLayout::Add(int placement) {
  const MigSet one = MigSet{1} << placement;
  if ((Addable() & one) == 0) {
    return Fail(Errc::kConflict, MigPlacementName(*product_, placement) + ": does not go with " +
                                     MigSetName(*product_, set_));
  }
  set_ |= one;
  return {};
}

Status MigLayout::Remove(int placement) {
  const MigSet one = MigSet{1} << placement;
  if ((set_ & one) == 0) {
    return Fail(Errc::kNotFound, MigPlacementName(*product_, placement) + ": want one of " +
                                     MigSetName(*product_, set_));
  }
  set_ &= ~one;
  return {};
}

std::string MigPlacementName(const MigProduct& product, int placement) {
  const MigPlacement& place = product.placement(placement);
  return MigProfileName(product.row_of(placement).profile) + " at " + std::to_string(place.start);
}

std::string MigSetName(const MigProduct& product, MigSet set) {
  if (set == 0) return "nothing";
  std::string names;
  for (; set != 0; set &= set - 1) {
    if (!names.empty()) names += ", ";
    names += MigPlacementName(product, std::countr_zero(set));
  }
  return names;
}

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
