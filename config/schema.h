// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace berth {

// A JSON Schema (draft-07) of a BerthConfiguration, for editors: the keys, forms, ranges, words,
// defaults and meanings of describe.h. It does not cover the checks across fields (validate.h).
// docs/berth-configuration.schema.json is this text.
std::string ConfigSchema();

}  // namespace berth
