// SPDX-License-Identifier: Apache-2.0
//
// MigPlan: which MIG devices of one node a pod gets. Filter, scorer, bind and victims all ask here.
//
// Where Berth picks (MigAllocator::kBerth) the devices cost least; among equals the earlier GPU and
// the lower start. Where the node's own allocator picks, the plan is what it is expected to pick,
// and the grants say no more than the profile.
//
//   dynamic   cost = the loss of a GPU's worth (mig_tables.h)
//   static    cost = 0: an instance that is there is of use to nobody else. Of the GPUs that have
//             one the fullest is taken, so that others can be emptied and cut anew.
//
//   claims    (MigSpec::by_claims) the plan is the allocator's first fit, of one name after the
//             other, and there are no grants: the claim says them
//
// An ask for devices of several profiles is placed from the largest down, and where that fails by
// search, within kMostSteps. Of one profile the search never fails in vain: its placements are
// disjoint. A want without a name gets the smallest profile that is enough and fits.
#pragma once

#include <optional>
#include <vector>

#include "cluster/mig_use.h"
#include "cluster/node.h"
#include "scoring/reason.h"

namespace berth {

struct MigPlan {
  std::vector<MigGrant> grants;  // sorted
  std::vector<MigSlot> slots;    // the devices, those of shared ones left out; sorted
  double loss_gpus = 0;          // sum over the devices
};

inline constexpr int kMostSteps = 256;

// Empty where it does not fit what is left by `use`.
std::optional<MigPlan> PlanMig(const MigSpec& spec, const MigUse& use, const MigSlices& ask);

// kFits, or why the devices cannot be given: kNoMig, kMigForeign, kNoMigProfile, kTooFewMig,
// kMigByNameOnly, kMigByNeedOnly, or kMigBusy. Requires: not a node on which each device counts as
// a GPU, for an ask without a name.
Reason CheckMig(const Node& node, const MigSlices& ask);

// Whether such a pod gets its devices on the node by a claim. It has them by the time it is bound.
bool GetsMigByClaim(const Node& node, const RequestShape& shape);

// kFits, or the reason that is the node's trouble.
Reason ReasonOf(MigTrouble trouble);

}  // namespace berth
