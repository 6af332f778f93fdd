// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/time/departures.h"

#include <cmath>

namespace berth::replay {
namespace {

Millis FromSeconds(double seconds) { return Millis(std::llround(seconds * 1000)); }

}  // namespace

Result<Stream> DepartureOptions::StreamFor(const Workload& workload, std::uint64_t seed) const {
  if (!load) return StreamOfTrace(workload.tasks);
  return DrawStream(workload.nodes, workload.tasks,
                    {*load, lifetimes, FromSeconds(mean_lifetime_s), FromSeconds(hours * 3600)},
                    seed);
}

}  // namespace berth::replay
