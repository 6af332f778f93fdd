// SPDX-License-Identifier: Apache-2.0
//
// Clock: the port through which time enters. Deadlines and expiries use the steady Now(), so that a
// jump of the wall clock changes nothing; the wall clock is for what people and other programs
// read.
#pragma once

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
  [[nodiscard]] virtual WallTime Wall() const { return std::chrono::system_clock::now(); }
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] Instant Now() const override;
};

// A clock that moves only when told. Not for concurrent use of Advance and Now.
class SimClock final : public Clock {
 public:
  [[nodiscard]] Instant Now() const override { return now_; }
  void Advance(Duration by) { now_ += by; }

 private:
  Instant now_{};
};

}  // namespace berth
