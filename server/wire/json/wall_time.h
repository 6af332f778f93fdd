// SPDX-License-Identifier: Apache-2.0
//
// Times as Kubernetes and its agents write them.
#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"

namespace berth::wire {

// RFC 3339: "2026-11-23T00:15:00Z", "2026-11-23T00:15:00+01:00"; fractions of a second are passed
// over. Empty where the text is no time, or one that the clock may not hold: before 1970, or from
// 2200 on.
std::optional<WallTime> ParseTime(std::string_view text);

}  // namespace berth::wire
