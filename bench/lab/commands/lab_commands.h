// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of berth-lab.
#pragma once

#include "bench/replay/commands/command.h"

namespace berth::replay {

Command AddTune(CLI::App& app);
Command AddWaves(CLI::App& app);
Command AddClaims(CLI::App& app);
Command AddShares(CLI::App& app);
Command AddRoom(CLI::App& app);
Command AddClasses(CLI::App& app);

}  // namespace berth::replay
