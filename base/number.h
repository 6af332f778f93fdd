// SPDX-License-Identifier: Apache-2.0
//
// Strict decimal numbers: the whole text or an Error, no leading blanks, no locale.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace berth {

// An integer in [low, high]. Error: kInvalidArgument "want an integer from LOW to HIGH, got TEXT".
Result<std::int64_t> ParseInt(std::string_view text, std::int64_t low, std::int64_t high);

}  // namespace berth
