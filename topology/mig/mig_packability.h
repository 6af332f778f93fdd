// SPDX-License-Identifier: Apache-2.0
//
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
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "topology/mig/mig_product.h"

namespace berth {

// counts[r] instances of row r of the product. nullopt where the closed forms do not answer: other
// grids, and profiles that share engines of a GPU (+me, +me.all) on part of it. Requires: one count
// per row, none negative.
std::optional<bool> MigPackable(const MigProduct& product, std::span<const int> counts, int gpus);

// As many instances of `row` as fit beside the others; nullopt as above, 0 where the others alone
// do not fit.
std::optional<int> MigRoomFor(const MigProduct& product, std::span<const int> counts, int row,
                              int gpus);

}  // namespace berth
