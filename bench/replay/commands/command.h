// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of berth-replay; those of berth-lab are in bench/lab/commands. Each Add...
// declares one and returns what to run when it was chosen and its options were read; reports say
// what they were made with.
#pragma once

#include <functional>

#include "base/result.h"
#include "bench/replay/made_with.h"

namespace CLI {
class App;
}

namespace berth::replay {

using Command = std::function<Status(const MadeWith&)>;

Command AddRun(CLI::App& app);
Command AddTime(CLI::App& app);
Command AddGenerate(CLI::App& app);
Command AddDemo(CLI::App& app);
Command AddCompare(CLI::App& app);
Command AddMerge(CLI::App& app);
Command AddTopology(CLI::App& app);
Command AddMig(CLI::App& app);
Command AddGang(CLI::App& app);
Command AddImport(CLI::App& app);
Command AddConform(CLI::App& app);

}  // namespace berth::replay
