// SPDX-License-Identifier: Apache-2.0
//
// Jobs of other traces -> tasks of ours (bench/replay/trace.h).
//
// A job becomes as many tasks as it has pods, all alike. Times become seconds since the first job
// was submitted; how long a job waited there is left out, since a replay makes its own queue: it
// runs from creation_time for as long as it ran. What a trace cannot say of a pod in our terms is
// passed over and counted by the reason.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/replay/csv.h"
#include "bench/replay/trace.h"

namespace berth::replay {

struct Imported {
  std::vector<TraceTask> tasks;  // by time, then by name
  std::vector<TraceNode> nodes;  // of traces that have a table of them
  std::int64_t jobs = 0;         // rows of the trace, those that were passed over too
  std::map<std::string, std::int64_t> passed_over;  // how many of them, by the reason
};

// One row of a trace.
struct TraceJob {
  std::string name;
  std::int64_t pods = 1;
  // Of each pod.
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  std::int64_t gpu_milli = 0;
  std::string gpu_spec = {};
  int priority = 0;
  // Seconds, since any moment; runs_s: how long.
  std::int64_t submitted_s = 0, runs_s = 0;
};

class JobImporter {
 public:
  // Takes the job, or passes it over: one that has no time or no pods, more GPUs than a node can
  // have, or more than one GPU and a part.
  void Add(const TraceJob& job);
  void PassOver(const std::string& why);

  // The tasks, once all jobs are there. Leaves nothing.
  [[nodiscard]] Imported Take();

 private:
  void AddTask(const TraceJob& job, std::string name);

  Imported imported_;
  std::set<std::string> names_;
  std::optional<std::int64_t> first_s_;
};

// Seconds since 1970 of "2020-06-09 18:41:01", with an offset ("+08:00") where there is one: UTC
// otherwise. Empty: it is no such text.
std::optional<std::int64_t> SecondsOf(std::string_view text);

// A decimal number; empty for what is none ("", "nan") or beyond 1e12: all amounts and times that
// are made of it are far from the ends of 64 bits.
std::optional<double> NumberOf(std::string_view text);

// A number from 0 that may be a fraction; 0 for an empty field or "nan". Error: kInvalidArgument
// with file, line and the name of the column.
Result<double> AmountAt(const CsvTable& table, std::size_t row, std::size_t column,
                        std::string_view name);

}  // namespace berth::replay
