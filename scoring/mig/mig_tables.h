// SPDX-License-Identifier: Apache-2.0
//
// MigTables: Berth's valuation of every layout of a GPU product, computed once.
//
// The states are those of all rows of the product; losses are those of BerthWeights
// (mig_tables.h), as parts of what an empty GPU is worth: a GPU lost is 1.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "topology/mig/mig_product.h"
#include "topology/mig/mig_states.h"

namespace berth {

// MigPotential: what the free part of a GPU is worth to the pods that will come.
//
//   worth(state) = sum over horizons h and rows r of weight[h][r] x E_h[ placements of r possible ]
//
// E_h is the mean over which of the present instances are still there, each with probability
// keep[h] on its own: 1 is now, 0.5 the time at which half of them have left. The placements of one
// profile are disjoint on every product of the catalogue, so that their number is how many more
// instances fit. Placing is a loss of worth, and a placement is better the less it loses.
//
//   SrcDrainWeights   size-weighted remaining capability (SRC): now, weight = memory units of the
//                     row; equal losses told apart by what is worth more once half have left
//   BerthWeights      found by search for the grid of 8 units (bench/LAB.md has how), where
//                     they accept more memory than SRC; elsewhere SrcDrainWeights
//
// Rows with an extension (+me, -me, ...) take the same units as the plain one of their size and
// have no weight of their own.
//
// Losses are whole numbers, in millionths, so that equal ones are equal on every machine.
// Immutable; any number of threads may read.

struct MigHorizon {
  double keep = 1;             // probability that an instance is still there, 0..1
  std::vector<double> weight;  // per row of the product
};
using MigWeights = std::vector<MigHorizon>;

MigWeights SrcDrainWeights(const MigProduct& product);
MigWeights BerthWeights(const MigProduct& product);

class MigPotential {
 public:
  // Takes 2^n steps per state of n instances: 10 ms for the 723 states of six profiles. Requires:
  // the states live longer; one weight per row.
  MigPotential(const MigStates& states, const MigWeights& weights);

  [[nodiscard]] const MigStates& states() const { return *states_; }

  [[nodiscard]] double worth(int state) const { return worth_[static_cast<std::size_t>(state)]; }

  // What the placement takes away, in millionths; may be below zero. Requires: it fits.
  [[nodiscard]] std::int64_t Loss(int state, int placement) const;

 private:
  const MigStates* states_;
  std::vector<double> worth_;
};

// Immutable; any number of threads may read.
class MigTables {
 public:
  // Error: as MigStates::Of. Takes some 10 ms. Requires: the product lives longer.
  static Result<std::shared_ptr<const MigTables>> Make(const MigProduct& product);

  explicit MigTables(MigStates states)
      : states_(std::move(states)), potential_(states_, BerthWeights(states_.product())) {}
  MigTables(const MigTables&) = delete;  // the potential points to the states
  MigTables& operator=(const MigTables&) = delete;

  // The worth that the placement takes away; 0 if the product does not allow `taken`. Requires: it
  // fits.
  [[nodiscard]] double LossGpus(MigSet taken, int placement) const;

 private:
  const MigStates states_;
  const MigPotential potential_;
};

// The tables of the product, made when first requested and kept as long as the product. nullptr if
// it has more layouts than are enumerated. Code that learns of a product calls this, so that no
// decision has to wait for it. Any thread may call it.
std::shared_ptr<const MigTables> MigTablesOf(const std::shared_ptr<const MigProduct>& product);

// Whether the tables are requested already, so that MigTablesOf answers at once.
bool HasMigTables(const std::shared_ptr<const MigProduct>& product);

}  // namespace berth
