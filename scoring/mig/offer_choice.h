// SPDX-License-Identifier: Apache-2.0
//
// OfferChoice: which of the MIG devices that DRA offers (cluster/mig_offers.h) a claim should get.
// That with the least loss of a GPU's worth (mig_tables.h), as for the pods that Berth gives MIG
// devices itself (mig_plan.h); of equals the GPU with the fewest free units, then the earlier node,
// GPU and start. A pure function.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "cluster/mig_offers.h"
#include "topology/mig/mig_profile.h"

namespace berth {

// `nodes`: those that may be taken; nothing is offered by one that is not known. nullopt where none
// has a device of the profile left.
std::optional<OfferedDevice> ChooseOffered(const MigOffers::ByNode& offers,
                                           const MigProfile& profile,
                                           std::span<const std::string> nodes);

}  // namespace berth
