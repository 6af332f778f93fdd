// SPDX-License-Identifier: Apache-2.0
//
// The demo: one workload over HTTP under several policies, and a table of the results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace berth::replay {

struct DemoOptions {
  std::string trace_folder;  // openb CSV files; empty = the generated workload
  std::vector<std::string> policies;
  std::uint64_t seed = 42;
  std::string berth_binary;
};

// Prints as it goes. Error: an unreadable trace, a server that does not start.
Status RunDemo(const DemoOptions& options);

}  // namespace berth::replay
