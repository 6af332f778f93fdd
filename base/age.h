// SPDX-License-Identifier: Apache-2.0
//
// AgeAt: how long ago that was. Another machine has said when, and its clock may be ahead.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace berth {

inline Duration AgeAt(WallTime now, WallTime then) {
  return std::max(Duration::zero(), std::chrono::duration_cast<Duration>(now - then));
}

}  // namespace berth
