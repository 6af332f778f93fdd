// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "config/config.h"

namespace berth {

// The configuration as YAML, with every setting: LoadConfig reads it back to an equal one.
std::string PrintConfig(Config config);

// A JSON Schema (draft-07) of a BerthConfiguration, for editors: the keys, forms, ranges, words,
// defaults and meanings of describe.h. It does not cover the checks across fields (validate.h).
// docs/berth-configuration.schema.json is this text.
std::string ConfigSchema();

}  // namespace berth
