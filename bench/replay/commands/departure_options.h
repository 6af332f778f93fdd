// SPDX-License-Identifier: Apache-2.0
//
// The options that every command with --with-departures has.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "bench/replay/time/stream.h"
#include "bench/replay/workload.h"

namespace CLI {
class App;
}

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
  // Requires: on, and tasks read with times().
  [[nodiscard]] Result<Stream> StreamFor(const Workload& workload, std::uint64_t seed) const;
};

void AddDepartureOptions(CLI::App& command, DepartureOptions& options);

}  // namespace berth::replay
