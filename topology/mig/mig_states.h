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

// Would these instances fit on so many empty GPUs if they could be placed anywhere? The answer
// distinguishes "needs defragmentation" from "no capacity" and counts what a repartitioning would
// gain.
//
// Closed forms, exact where they answer, in time independent of the number of GPUs:
//   - the grid of 7 compute slices and 8 units: 7g take whole GPUs; 4g take left halves; 3g take
//     right halves first, then left ones. A left half that is over holds two pairs of units, a
//     right half a pair and an odd pair, whose last unit takes no 1g: 1g of double memory take odd
//     pairs first, 2g and the rest of them pairs, 1g what is over, two in a pair, one in an odd
//     pair. (Checked against an integer program, and in the tests against search.)
//   - grids that halve (A30; RTX PRO): sizes divide one another and start at multiples of
//     themselves, so that the units have to add up and nothing else.

// counts[r] instances of row r of the product. nullopt where the closed forms do not answer: other
// grids, and profiles that share engines of a GPU (+me, +me.all) on part of it. Requires: one count
// per row, none negative.
std::optional<bool> MigPackable(const MigProduct& product, std::span<const int> counts, int gpus);

// As many instances of `row` as fit beside the others; nullopt as above, 0 where the others alone
// do not fit.
std::optional<int> MigRoomFor(const MigProduct& product, std::span<const int> counts, int row,
                              int gpus);

}  // namespace berth
