// SPDX-License-Identifier: Apache-2.0
//
// MigTables: Berth's valuation of every layout of a GPU product, computed once.
//
// The states are those of all rows of the product; losses are those of BerthWeights
// (mig_tables.h), as parts of what an empty GPU is worth: a GPU lost is 1.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "cluster/node/mig_use.h"
#include "cluster/node/node.h"
#include "scoring/reason.h"
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

// MigPlan: the MIG devices of one node that a pod gets. Filter, scorer, bind and victims all use
// it.
//
// If Berth picks (MigAllocator::kBerth), the plan has the devices of least cost; among equals the
// earlier GPU and the lower start. If the node's own allocator picks, the plan is the expected
// pick, and the grants contain only the profile.
//
//   dynamic   cost = the loss of a GPU's worth (mig_tables.h)
//   static    cost = 0: no other kind of pod can use an existing instance. Among the GPUs that have
//             one the fullest is taken, so that others can be emptied and repartitioned.
//
//   claims    (MigSpec::by_claims) the plan is the allocator's first fit, one name after the other,
//             and there are no grants: the claim has the devices
//
// An ask for devices of several profiles is placed from the largest down and, if that fails, by
// search within kMostSteps. For one profile the search never fails in vain: its placements are
// disjoint. A want without a name gets the smallest sufficient profile that fits.

struct MigPlan {
  std::vector<MigGrant> grants;  // sorted
  std::vector<MigSlot> slots;    // the devices, those of shared ones left out; sorted
  double loss_gpus = 0;          // sum over the devices
};

inline constexpr int kMostSteps = 256;

// Empty if it does not fit the devices that `use` leaves free.
std::optional<MigPlan> PlanMig(const MigSpec& spec, const MigUse& use, const MigSlices& ask);

// kFits, or why the devices cannot be given: kNoMig, kMigForeign, kNoMigProfile, kTooFewMig,
// kMigByNameOnly, kMigByNeedOnly, or kMigBusy. Requires: for an ask without a name, not a node on
// which each device counts as a GPU.
Reason CheckMig(const Node& node, const MigSlices& ask);

// Whether such a pod gets its devices on the node by a claim. It has them before it is bound.
bool GetsMigByClaim(const Node& node, const RequestShape& shape);

// kFits, or the reason for the node's trouble.
Reason ReasonOf(MigTrouble trouble);

}  // namespace berth
