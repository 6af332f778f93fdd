// SPDX-License-Identifier: Apache-2.0
//
// The constants of the model: settings that only berth-replay uses, to measure the scorer and to
// search for better values. The service accepts and ignores them.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace berth {

// Gives every constant its value. Returns the paths of those that had another one, such as
// "expectedWaste.optimismGpus".
std::vector<std::string> ResetModelConstants(Config& config);

}  // namespace berth
