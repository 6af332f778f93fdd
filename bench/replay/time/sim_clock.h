// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "base/clock.h"

namespace berth {

// A clock whose two times move only by Advance, together; its wall clock begins on 2026-08-21 at
// 10:00 UTC. Not for concurrent use of Advance and the others.
class SimClock final : public Clock {
 public:
  [[nodiscard]] Instant Now() const override { return now_; }
  [[nodiscard]] WallTime Wall() const override {
    return std::chrono::sys_days(std::chrono::year(2026) / 8 / 21) + std::chrono::hours(10) +
           now_.time_since_epoch();
  }
  void Advance(Duration by) { now_ += by; }

 private:
  Instant now_{};
};

}  // namespace berth
