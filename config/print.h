// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "config/config.h"

namespace berth {

// The configuration as YAML, with every setting of the service.
std::string PrintConfig(const Config& config);
// With the constants of the model too (model_constants.h): LoadConfig reads it back to an equal
// one.
std::string PrintWithConstants(const Config& config);

}  // namespace berth
