// SPDX-License-Identifier: Apache-2.0
//
// TraceSet: the traces that a comparison or a search runs on, found and read.
//
// A trace is given as a file, as a name (NAME or openb_pod_list_NAME, .csv or .csv.gz, in the data
// folder), as a folder (every table of tasks in it, by name), or as "generated" (the demo's
// workload, on a cluster of its own).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/replay/workload.h"

namespace berth::replay {

struct TraceSource {
  std::vector<std::string> traces;  // as given
  std::string data_folder;
  std::string nodes;  // file; empty = openb_node_list_gpu_node.csv of the data folder
  TaskTimes times = TaskTimes::kIgnored;
};

struct Trace {
  Workload workload;              // with its name
  std::uint32_t fingerprint = 0;  // CRC-32 of nodes and tasks as read
};

// In the order given. Error: a trace that is not there (naming what was looked for), cannot be
// read, has no tasks, or two of one name.
Result<std::vector<Trace>> ReadTraces(const TraceSource& source);

// The demo's workload ("generated" is that of seed 42).
Trace GeneratedTrace(std::uint64_t seed);

// BERTH_DATA/openb, by default ../shared/data/openb.
std::string DefaultDataFolder();

}  // namespace berth::replay
