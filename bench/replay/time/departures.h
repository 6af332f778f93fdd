// SPDX-License-Identifier: Apache-2.0
//
// DepartureOptions: whether pods leave, and the source of their times.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "bench/replay/time/stream.h"
#include "bench/replay/workload.h"

namespace berth::replay {

struct DepartureOptions {
  bool on = false;
  std::optional<double> load;  // empty = the trace's own times
  Lifetimes lifetimes = Lifetimes::kLogNormal;
  double mean_lifetime_s = 3600;
  double hours = 6;

  [[nodiscard]] TaskTimes times() const {
    return on && !load ? TaskTimes::kRequired : TaskTimes::kIgnored;
  }
  // Requires: on, and tasks read with times(). Error: that of DrawStream.
  [[nodiscard]] Result<Stream> StreamFor(const Workload& workload, std::uint64_t seed) const;
};

}  // namespace berth::replay
