// SPDX-License-Identifier: Apache-2.0
//
// The options that name policies: built-in profiles, configurations, or both; at least one.
#pragma once

#include <string>
#include <vector>

#include "bench/replay/policy.h"

namespace CLI {
class App;
}

namespace berth::replay {

struct PolicyFlags {
  std::vector<std::string> names, files;
  [[nodiscard]] Result<std::vector<ReplayPolicy>> Read() const { return Policies(names, files); }
};

// `option` is what the names are given with, such as "--policies".
void AddPolicyOptions(CLI::App& command, const std::string& option, PolicyFlags& flags);

}  // namespace berth::replay
