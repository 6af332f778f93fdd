// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

namespace berth {

Instant SystemClock::Now() const { return std::chrono::steady_clock::now(); }

WallTime SystemClock::Wall() const { return std::chrono::system_clock::now(); }

}  // namespace berth
