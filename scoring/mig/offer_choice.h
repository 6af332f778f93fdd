// SPDX-License-Identifier: Apache-2.0
//
// OfferChoice: the device among those that DRA offers (cluster/claims/mig_offers.h) that a claim
// should get: the one with the least loss of a GPU's worth (mig_tables.h), as for the pods to which
// Berth gives MIG devices itself (mig_plan.h); among equals the GPU with the fewest free units,
// then the earlier node, GPU and start. A pure function.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "cluster/claims/mig_offers.h"
#include "topology/mig/mig_profile.h"

namespace berth {

// `nodes`: the eligible ones; an unknown node offers nothing. nullopt if none has a free device of
// the profile.
std::optional<OfferedDevice> ChooseOffered(const MigOffers::ByNode& offers,
                                           const MigProfile& profile,
                                           std::span<const std::string> nodes);

}  // namespace berth
