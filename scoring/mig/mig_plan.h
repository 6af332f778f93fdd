// SPDX-License-Identifier: Apache-2.0
//
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
#pragma once

#include <optional>
#include <vector>

#include "cluster/node/mig_use.h"
#include "cluster/node/node.h"
#include "scoring/reason.h"

namespace berth {

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
