// SPDX-License-Identifier: Apache-2.0
//
// The one rule of what a running service can change: Reloaded takes over the settings that can, and
// whatever it does not take over needs a restart. A setting that is added needs one until Reloaded
// says otherwise.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace berth {

// `now` with what a running service can take over from `wanted`: profile, profiles, requestMix,
// expectedWaste, reservationSeconds, nodesToScore, logLevel.
Config Reloaded(const Config& now, const Config& wanted);

// The paths of the settings in which `wanted` differs beyond that, as they are written:
// "server.threads", "resources". In the order in which they are printed.
std::vector<std::string> NeedsRestart(const Config& now, const Config& wanted);

// Whether the two decide alike: the same profile under the same mix.
bool SamePolicy(const Config& a, const Config& b);

}  // namespace berth
