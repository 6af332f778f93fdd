// SPDX-License-Identifier: Apache-2.0
//
// Where on a GPU a new MIG device begins if another program than Berth decides.
//
//   kLowest     the lowest start that is free: Kubernetes' DRA allocator (first fit over devices
//               that the driver publishes sorted by name), instaslice
//   kDriver     the start that leaves the most placements possible, the lowest of equals: what
//               NVIDIA's driver does for a device created by profile alone. Inferred from the
//               creation sequences printed in the MIG User Guide, all of which it reproduces; not
//               documented.
//   kHighOrLow  the highest start for profiles of one and of three compute slices, else the lowest:
//               HAMi's dynamic MIG (Aug 2026)
#pragma once

#include <cstdint>
#include <optional>

#include "topology/mig/mig_product.h"

namespace berth {

enum class MigStartRule : std::uint8_t { kLowest, kDriver, kHighOrLow };

// The placement of that row; nullopt where none fits. `counted` are the placements that kDriver
// counts: those of the profiles in use, all of the product by default. Requires: a valid set.
std::optional<int> MigStartBy(MigStartRule rule, const MigProduct& product, MigSet set, int row,
                              MigSet counted = ~MigSet{0});

}  // namespace berth
