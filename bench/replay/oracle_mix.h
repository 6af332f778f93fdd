// SPDX-License-Identifier: Apache-2.0
//
// OracleMix: the request mix of the published protocol, computed from the whole trace beforehand.
//
// Tasks are grouped by (CPU, GPU share, GPU count, model set as written); CPU-only tasks take part,
// memory does not. Most frequent first, and among equals the larger CPU, share, count, model text;
// the shortest prefix that covers `coverage` of the tasks stays, its shares scaled to a sum of 1.
// Source: Weng et al., USENIX ATC'23, and GetTypicalPods of their simulator (coverage 0.95).
#pragma once

#include <vector>

#include "bench/replay/trace.h"
#include "scoring/waste/request_mix.h"

namespace berth::replay {

RequestMix OracleMix(const std::vector<TraceTask>& tasks, double coverage = 0.95);

}  // namespace berth::replay
