// SPDX-License-Identifier: Apache-2.0
//
// Pods that ask for one MIG device each: which profiles, how often, when and for how long.
//
// Arrivals are Poisson; a lifetime is 1 on average, exponential or lognormal with sigma 1.5 (half
// of the pods end within a third of the mean, and a twentieth of them make up half of the time).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "topology/mig/mig_product.h"

namespace berth::replay {

using MigMix = std::vector<std::pair<int, double>>;  // row of the product, share of the pods

// `uniform` over the profiles without extension, of any product; on those with the six of the grid
// of 8 units (1g, 1g of double memory, 2g, 3g, 4g, 7g) also
//   skew-small  .30 .25 .20 .10 .10 .05
//   skew-big    the same reversed
//   bimodal     .30 .15 .05 .05 .15 .30
// Else the name of a JSON file {"1g.5gb": 3, "7g.40gb": 1}: shares in any scale. Error: what was
// wanted, and the file or profile.
Result<MigMix> ReadMigMix(const MigProduct& product, const std::string& name);

enum class MigLifetimes : std::uint8_t { kExponential, kHeavyTailed };

// Error: kInvalidArgument "want exponential or heavy-tailed, got TEXT".
Result<MigLifetimes> ParseMigLifetimes(std::string_view name);

struct MigPod {
  double arrives = 0, lasts = 0;
  int row = 0;
};

// `units_per_time` is the memory that arrives in one lifetime, in units. Same seed, same pods.
std::vector<MigPod> DrawMigPods(const MigProduct& product, const MigMix& mix,
                                MigLifetimes lifetimes, double units_per_time, int arrivals,
                                std::uint64_t seed);

}  // namespace berth::replay
