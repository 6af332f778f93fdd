// SPDX-License-Identifier: Apache-2.0
//
// PodTable: what became of every pod of a replay, as CSV: one row per pod, in the order of arrival.
//
//   policy      as in the report
//   name, task  of the pod, which has a number of its own, and of its task in the trace
//   num_gpu, gpu_milli   as the task has them
//   node, gpus  where it was bound, and the indices of its GPUs there, joined by '|' (a share has
//               one; not known through HTTP); empty: nowhere
//   state       with departures, at the horizon: waiting, running or ended; else placed or refused
//   arrival_s, bound_s, wait_s   seconds, with departures alone; bound_s is empty for a pod that
//               waits, whose wait_s is the time until the horizon
//   cut_off     1: it still waits, so that its wait would be longer; else 0
//   primed      1: there from the beginning, no part of the reported waits (stream.h); else 0
#pragma once

#include <string>
#include <vector>

#include "bench/replay/arrivals.h"
#include "bench/replay/time/stream.h"
#include "bench/replay/trace.h"
#include "cluster/values/placement.h"

namespace berth::replay {

// Where a pod was bound, and when.
struct PodStart {
  std::string node = {};  // empty: nowhere
  std::vector<int> gpus = {};
  Millis at{0};
};
using PodStarts = std::vector<PodStart>;  // by arrival

// Requires: the node has a name as OrderedNodes gives them (replay.h).
PodStart StartOf(const Placement& placement, Millis at);

std::string PodTableHead();
// The rows of one policy. Requires: one start per arrival.
std::string PodRows(const std::string& policy, const std::vector<TraceTask>& tasks,
                    const Arrivals& arrivals, const PodStarts& starts);
std::string PodRows(const std::string& policy, const std::vector<TraceTask>& tasks,
                    const Stream& stream, const PodStarts& starts);

}  // namespace berth::replay
