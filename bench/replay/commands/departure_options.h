// SPDX-License-Identifier: Apache-2.0
//
// The options that every command with --with-departures has.
#pragma once

#include "bench/replay/time/departures.h"

namespace CLI {
class App;
}

namespace berth::replay {

void AddDepartureOptions(CLI::App& command, DepartureOptions& options);

}  // namespace berth::replay
