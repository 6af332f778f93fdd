// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "config/config.h"

namespace berth {

// The configuration as YAML, with every field; LoadConfig reads it back to an equal one.
std::string PrintConfig(const Config& config);

}  // namespace berth
