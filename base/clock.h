// SPDX-License-Identifier: Apache-2.0
//
// Clock: the port through which time enters. Deadlines use the steady Now(), so that a jump of the
// wall clock changes nothing. The wall clock is for texts that people and other programs read.
#pragma once

#include <algorithm>
#include <chrono>

namespace berth {

using Instant = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;
using WallTime = std::chrono::system_clock::time_point;

// Any thread may call it.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Instant Now() const = 0;
  [[nodiscard]] virtual WallTime Wall() const = 0;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] Instant Now() const override;
  [[nodiscard]] WallTime Wall() const override;
};

// AgeAt: how long ago that was. Another machine has said when, and its clock may be ahead.

inline Duration AgeAt(WallTime now, WallTime then) {
  return std::max(Duration::zero(), std::chrono::duration_cast<Duration>(now - then));
}

}  // namespace berth
