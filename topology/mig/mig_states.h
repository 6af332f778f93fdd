// SPDX-License-Identifier: Apache-2.0
//
// MigStates: every layout that a GPU can have, numbered, with the transitions between them.
//
// All valid sets of the placements of some rows, the empty one first, then by number of placements
// and bits. On the grid of 8 units: 298 of the five base profiles, 723 with 1g of double memory,
// 2,319 of all. A GPU's state is then one small number, GPUs of equal state are alike to every
// policy, and what a state is worth is a table. Immutable; any number of threads may read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "topology/mig/mig_product.h"

namespace berth {

inline constexpr std::size_t kMaxMigStates = 32'000;

class MigStates {
 public:
  static constexpr int kNone = -1;

  // Of the placements of `rows` (indices of product.rows(); each once). Error: kInvalidArgument
  // where there are more than kMaxMigStates. Requires: the product lives longer.
  static Result<MigStates> Of(const MigProduct& product, std::span<const int> rows);
  // Of all rows.
  static Result<MigStates> Of(const MigProduct& product);

  [[nodiscard]] const MigProduct& product() const { return *product_; }
  [[nodiscard]] int size() const { return static_cast<int>(sets_.size()); }
  [[nodiscard]] MigSet set(int state) const { return sets_[static_cast<std::size_t>(state)]; }
  // The placements that the states are made of.
  [[nodiscard]] MigSet placements() const { return placements_; }

  // kNone where the set is not valid or has placements of other rows.
  [[nodiscard]] int IndexOf(MigSet set) const;

  // The state with that placement more, kNone where it does not fit; with it less, kNone where it
  // is not there.
  [[nodiscard]] int With(int state, int placement) const { return with_[At(state, placement)]; }
  [[nodiscard]] int Without(int state, int placement) const {
    return without_[At(state, placement)];
  }

  // The placements that may be added, of the rows in use.
  [[nodiscard]] MigSet Addable(int state) const {
    return addable_[static_cast<std::size_t>(state)];
  }
  // Whether nothing more fits.
  [[nodiscard]] bool IsMaximal(int state) const { return Addable(state) == 0; }

 private:
  MigStates(const MigProduct& product, MigSet placements)
      : product_(&product), placements_(placements) {}
  [[nodiscard]] bool Enumerate();
  void Connect();
  [[nodiscard]] std::size_t At(int state, int placement) const {
    return static_cast<std::size_t>(state) * product_->placements().size() +
           static_cast<std::size_t>(placement);
  }

  const MigProduct* product_;
  MigSet placements_;
  std::vector<MigSet> sets_, addable_;
  std::vector<std::int16_t> with_, without_;  // [state][placement]
};

}  // namespace berth
