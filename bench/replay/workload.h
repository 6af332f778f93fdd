// SPDX-License-Identifier: Apache-2.0
//
// A generated workload: same seed, same cluster and tasks, shaped like the published facts of the
// openb trace (Alibaba cluster-trace-gpu-v2023; Weng et al., USENIX ATC'23) - node kinds and their
// numbers, shares of task kinds, the one share size that dominates. Not the trace: sizes within a
// kind are drawn from short lists chosen so that the sums (GPU and CPU demand over capacity) come
// out near the trace's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/replay/start_state.h"
#include "bench/replay/trace.h"

namespace berth::replay {

struct Workload {
  std::string name;
  std::vector<TraceNode> nodes;
  std::vector<TraceTask> tasks;  // sorted by name
  // What is there when the tasks begin to arrive; nullptr: the nodes alone.
  std::shared_ptr<const StartState> start = nullptr;
};

// Reads the nodes: a table of them, or a cluster with its pods. Error: as ReadNodes and
// StartState::Read.
Status ReadCluster(const std::string& path, Workload& workload);

// The same, and the tasks that arrive there. Error: also that of ReadTasks; no task at all.
Result<Workload> ReadWorkload(const std::string& nodes, const std::string& tasks,
                              TaskTimes times = TaskTimes::kIgnored);

// The name of a trace in reports: the file's name without folder and extensions.
std::string TraceNameOf(const std::string& path);

// 1,213 nodes with 6,212 GPUs and `tasks` tasks.
Workload GenerateWorkload(std::uint64_t seed, std::size_t tasks = 8152);

// Writes both tables in the trace's format. Error: kUnavailable naming the file.
Status WriteWorkload(const Workload& workload, const std::string& nodes_path,
                     const std::string& tasks_path);

}  // namespace berth::replay
