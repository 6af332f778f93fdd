// SPDX-License-Identifier: Apache-2.0
//
// The demo: one workload under Berth's default, under kube-scheduler alone and under FGD. Berth's
// runs over HTTP against a `berth serve`, whose live page fills meanwhile; then all run as a
// comparison, whose report stays.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "bench/replay/made_with.h"

namespace berth::replay {

struct DemoOptions {
  std::string trace_folder;  // openb CSV files; empty = the generated workload
  std::uint64_t seed = 42;
  std::string report = "berth-demo";  // folder of the report
  std::string berth_binary;
};

// Prints as it goes. Same trace and seed, same output but for the line with times and what only a
// terminal gets: progress, the address of the live page, which stays until a line is entered.
// Error: an unreadable trace, a server that does not start, a folder that cannot be written.
Status RunDemo(const DemoOptions& options, const MadeWith& made_with);

}  // namespace berth::replay
