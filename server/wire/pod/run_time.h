// SPDX-License-Identifier: Apache-2.0
//
// How long a pod runs, by its own word: the annotation berth.dev/expected-duration.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace berth::wire {

inline constexpr std::string_view kExpectedDurationKey = "berth.dev/expected-duration";

// "2h30m", "45m", "3d": whole numbers of d, h, m and s, each at most once and in this order; from a
// second to 365 days. In seconds. Error: kInvalidArgument naming the annotation.
Result<std::int64_t> ReadExpectedDuration(std::string_view text);

}  // namespace berth::wire
