// SPDX-License-Identifier: Apache-2.0
//
// EventTrace: all events of a simulation in their order, as one number. Two runs with the same one
// have done the same.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/random.h"

namespace berth::replay {

class EventTrace {
 public:
  // `event` is a letter for its sort, `pod` and `node` say which.
  void Add(char event, Instant at, std::uint64_t pod, std::uint64_t node) {
    Mix(static_cast<std::uint64_t>(event));
    Mix(static_cast<std::uint64_t>(at.time_since_epoch().count()));
    Mix(pod);
    Mix(node);
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  void Mix(std::uint64_t part) { value_ = Mix64(value_ ^ part); }

  std::uint64_t value_ = 0;
};

}  // namespace berth::replay
