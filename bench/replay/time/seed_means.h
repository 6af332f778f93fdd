// SPDX-License-Identifier: Apache-2.0
//
// MeanOf: simulations of one policy on several seeds, as one result for tables.
#pragma once

#include <vector>

#include "bench/replay/time/simulation.h"

namespace berth::replay {

// Means of the runs; counts are rounded. Left out are samples, moves and the trace of events. A
// quantile that is cut off in one run is cut off in the mean. Requires: runs is not empty, and of
// one workload and horizon.
SimulationResult MeanOf(const std::vector<SimulationResult>& runs);

}  // namespace berth::replay
