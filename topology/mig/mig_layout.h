// SPDX-License-Identifier: Apache-2.0
//
// MigLayout: the MIG devices that exist on one GPU. Always valid: a combination that the product
// forbids is refused. One thread at a time.
//
//   MigLayout gpu(product);
//   gpu.Add(*product.PlacementAt(row, 4));
//   for (MigSet left = gpu.Addable(row); left != 0; left &= left - 1) ...
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "topology/mig/mig_product.h"

namespace berth {

class MigLayout {
 public:
  // Empty. Requires: the product lives longer.
  explicit MigLayout(const MigProduct& product) : product_(&product) {}

  // Error: kInvalidArgument where the placements of the set do not go together.
  static Result<MigLayout> Of(const MigProduct& product, MigSet set);

  [[nodiscard]] const MigProduct& product() const { return *product_; }
  [[nodiscard]] MigSet set() const { return set_; }
  [[nodiscard]] bool empty() const { return set_ == 0; }
  [[nodiscard]] MigUnits occupied() const { return product_->UnitsOf(set_); }
  [[nodiscard]] int free_units() const;

  // The placements that may be added now: all, or those of one row.
  [[nodiscard]] MigSet Addable() const { return product_->Addable(set_); }
  [[nodiscard]] MigSet Addable(int row) const { return Addable() & product_->PlacementsOf(row); }

  // Error: kConflict "1g.5gb at 3: does not go with 3g.20gb at 0" or the limit; nothing changes.
  // Requires: a placement of the product.
  Status Add(int placement);
  // Error: kNotFound where it is not there; nothing changes.
  Status Remove(int placement);

  friend bool operator==(const MigLayout& a, const MigLayout& b) {
    return a.product_ == b.product_ && a.set_ == b.set_;
  }

 private:
  const MigProduct* product_;
  MigSet set_ = 0;
};

// "1g.5gb at 3".
std::string MigPlacementName(const MigProduct& product, int placement);
// "3g.20gb at 0, 1g.5gb at 4"; "nothing" for the empty set.
std::string MigSetName(const MigProduct& product, MigSet set);

// Where on a GPU a new MIG device begins if another program than Berth decides.
//
//   kLowest     the lowest start that is free: Kubernetes' DRA allocator (first fit over devices
//               that the driver publishes sorted by name), instaslice
//   kDriver     the start that leaves the most placements possible, the lowest of equals: what
//               NVIDIA's driver does for a device created by profile alone. Inferred from the
//               creation sequences printed in the MIG User Guide, all of which it reproduces; not
//               documented.
//   kHighOrLow  the highest start for profiles of one and of three compute slices, else the lowest:
//               HAMi's dynamic MIG (Aug 2026)

enum class MigStartRule : std::uint8_t { kLowest, kDriver, kHighOrLow };

// The placement of that row; nullopt where none fits. `counted` are the placements that kDriver
// counts: those of the profiles in use, all of the product by default. Requires: a valid set.
std::optional<int> MigStartBy(MigStartRule rule, const MigProduct& product, MigSet set, int row,
                              MigSet counted = ~MigSet{0});

}  // namespace berth
