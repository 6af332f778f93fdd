// SPDX-License-Identifier: Apache-2.0
//
// The one rule for changes of a running service: Reloaded takes over the settings that can change;
// every other setting needs a restart. A new setting needs one until Reloaded takes it over.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace berth {

// `now` with the settings that a running service can take over from `wanted`: profile, profiles,
// requestMix, expectedWaste, reservationSeconds, nodesToScore, gangs without their controllers,
// gpuNodes.guard, logLevel, and workloadClasses where the traits are the same.
Config Reloaded(const Config& now, const Config& wanted);

// The paths of the other settings in which `wanted` differs, as they are written ("server.threads",
// "resources"), in the order in which they are printed.
std::vector<std::string> NeedsRestart(const Config& now, const Config& wanted);

// Whether the two decide alike: the same profiles under the same mix.
bool SamePolicy(const Config& a, const Config& b);

}  // namespace berth
