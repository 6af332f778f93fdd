// SPDX-License-Identifier: Apache-2.0
//
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
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "topology/mig/mig_states.h"

namespace berth {

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

}  // namespace berth
