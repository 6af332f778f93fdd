// SPDX-License-Identifier: Apache-2.0
//
// The trace format of openb (Alibaba cluster-trace-gpu-v2023): one CSV of nodes, one of tasks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"

namespace berth::replay {

struct TraceNode {
  std::string name;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  int gpus = 0;
  std::string model;
  // What is free of its GPUs at the start, thousandths, where others are there (start_state.h);
  // empty: all.
  std::optional<std::int64_t> free_milli = {};
  std::vector<std::string> traits = {};  // NodeSpec::traits
  double price_per_hour = 0;             // of all its GPUs; 0 = not known
};

struct TraceTask {
  std::string name;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  int gpus = 0;
  int gpu_milli = 0;     // of each GPU; below 1000 only with one GPU
  std::string gpu_spec;  // admissible models joined by '|'; empty = any
  // Read where asked for: seconds since the start of the trace, created <= deleted.
  std::int64_t created_s = 0;
  std::int64_t deleted_s = 0;
  int priority = 0;                 // column `priority` where there is one; openb has none
  std::string workload_class = {};  // column `class`; empty = none
};

// Columns: sn,cpu_milli,memory_mib,gpu,model, and traits (joined by '|') and price_per_hour where
// they are there. Errors name file, line and column.
Result<std::vector<TraceNode>> ReadNodes(const std::string& path);

// Whether the columns creation_time and deletion_time are read (they must be there then).
enum class TaskTimes { kIgnored, kRequired };

// Columns: name,cpu_milli,memory_mib,num_gpu,gpu_milli, and gpu_spec, priority and class where they
// are there. Sorted by name.
Result<std::vector<TraceTask>> ReadTasks(const std::string& path,
                                         TaskTimes times = TaskTimes::kIgnored);

// In Berth's terms. GPU memory is taken from the product catalogue where the model is known.
NodeSpec ToNodeSpec(const TraceNode& node, std::string name);
RequestShape ToShape(const TraceTask& task);

// The `gpu_spec` of a task, or the traits of a node, as a sorted list of what it has.
std::vector<std::string> NamesIn(std::string_view joined);

// Sum over all GPUs of what is free at the start, thousandths.
std::int64_t GpuCapacityMilli(const std::vector<TraceNode>& nodes);
inline std::int64_t GpuDemandMilli(const TraceTask& task) {
  return std::int64_t{task.gpus} * task.gpu_milli;
}

}  // namespace berth::replay
