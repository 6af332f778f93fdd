// SPDX-License-Identifier: Apache-2.0
//
// Which settings may change while the service runs: those that Reloaded copies. All others need a
// restart; so does a new setting until Reloaded copies it.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace berth {

// `now` with the settings of `wanted` that may change at run time: profile, profiles,
// requestMix, expectedWaste, reservationSeconds, nodesToScore, gangs without their controllers,
// gpuNodes.guard, earmarks, makeRoom, logLevel, and workloadClasses where the traits are the same.
Config Reloaded(const Config& now, const Config& wanted);

// The paths of the other settings that differ ("server.threads", "resources"), in the order of
// printing.
std::vector<std::string> NeedsRestart(const Config& now, const Config& wanted);

// Whether both make the same decisions: the same profiles with the same mix.
bool SamePolicy(const Config& a, const Config& b);

}  // namespace berth
