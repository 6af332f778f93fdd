// SPDX-License-Identifier: Apache-2.0
//
// MigTables: Berth's valuation of every layout of a GPU product, computed once.
//
// The states are those of all rows of the product; losses are those of BerthWeights
// (mig_potential.h), as parts of what an empty GPU is worth: a GPU lost is 1.
#pragma once

#include <memory>

#include "base/result.h"
#include "scoring/mig/mig_potential.h"
#include "topology/mig/mig_product.h"
#include "topology/mig/mig_states.h"

namespace berth {

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
