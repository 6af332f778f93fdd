// SPDX-License-Identifier: Apache-2.0
//
// Arrivals: which tasks come in which order, and in which order the nodes stand.
//
// The published protocol (Weng et al., USENIX ATC'23, and its simulator): shuffle the tasks with a
// seed, then append tasks drawn with replacement (or delete random ones) until the demand is
// `inflate` times the GPU capacity; the nodes are shuffled too, and among nodes of equal score the
// first one wins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/replay/trace.h"

namespace berth::replay {

struct Arrivals {
  std::vector<std::size_t> tasks;      // indices into the tasks sorted by name; may repeat
  std::vector<std::size_t> node_rank;  // per node of the list, its place in the order
};

// Drawn here: same seed, same arrivals, on every machine. Requires: tasks is not empty, inflate >
// 0.
Arrivals DrawArrivals(const std::vector<TraceNode>& nodes, const std::vector<TraceTask>& tasks,
                      std::uint64_t seed, double inflate);

// Read from an order file (plain or gzipped): per seed a line "seed S N" (the rest of the
// line is ignored), a line with N task indices, a line with the rank of every node. Error:
// kInvalidArgument naming file and line; kNotFound for a seed it does not have.
Result<Arrivals> ReadArrivals(const std::string& path, std::uint64_t seed, std::size_t node_count,
                              std::size_t task_count);

}  // namespace berth::replay
