// SPDX-License-Identifier: Apache-2.0
//
// The options that name traces and seeds, the same for every command.
#pragma once

#include <cstdint>

#include "bench/replay/compare/trace_set.h"

namespace CLI {
class App;
}

namespace berth::replay {

void AddTraceOptions(CLI::App& command, TraceSource& source, std::uint64_t& first_seed,
                     std::uint64_t& seeds);

}  // namespace berth::replay
