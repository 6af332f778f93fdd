// SPDX-License-Identifier: Apache-2.0
//
// Replay: offers the tasks of a trace to a Placer one by one, without departures, and records the
// curve.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/replay/arrivals.h"
#include "bench/replay/pod_table.h"
#include "bench/replay/trace.h"
#include "bench/replay/workload.h"
#include "cluster/state/cluster_event.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"

namespace berth::replay {

// What decides: the engine in this process, or a server that is called as kube-scheduler calls it.
class Placer {
 public:
  virtual ~Placer() = default;
  // Where the pod found a place (it then holds it), empty: nowhere. An Error ends the replay.
  virtual Result<std::optional<Placement>> Place(const PodRequest& pod) = 0;
  // The nodes with the pods placed so far; nullptr: a server alone knows.
  [[nodiscard]] virtual std::shared_ptr<const Snapshot> Cluster() const { return nullptr; }
};

// A point of the curve per percent of arrived GPU, as in the published tables.
constexpr int kLastPercent = 130;

using Curve = std::array<std::optional<double>, kLastPercent + 1>;

struct ReplayResult {
  std::int64_t gpus_total = 0;
  // [x] = allocated GPU in % of capacity, mean over the arrivals at which the arrived GPU, rounded
  // to whole percent, was x; empty where there was none.
  Curve allocated_pct;
  Curve watts;  // of all nodes, in the same way (power_meter.h); empty where Cluster() is unknown
  std::optional<std::int64_t> gpus_without_watts;  // on nodes of unknown power
  std::int64_t placed = 0;
  std::int64_t refused = 0;
  std::int64_t allocated_milli = 0;  // at the end
  std::vector<double> decision_us;   // one per task, in order
};

// Called after every task with (tasks done, tasks in all).
using Progress = std::function<void(std::size_t, std::size_t)>;

// starts: gets those of the pods; their times are 0.
Result<ReplayResult> RunReplay(const std::vector<TraceNode>& nodes,
                               const std::vector<TraceTask>& tasks, const Arrivals& arrivals,
                               Placer& placer, const Progress& progress,
                               PodStarts* starts = nullptr);

// The cluster that a replay runs on: names are chosen so that their order is the node order.
std::vector<NodeSpec> OrderedNodes(const std::vector<TraceNode>& nodes, const Arrivals& arrivals);
// The same with the pods that are there at the start.
std::vector<ClusterEvent> OrderedCluster(const Workload& workload, const Arrivals& arrivals);

// The pod of the n-th arrival.
PodRequest PodOf(const TraceTask& task, std::size_t n);

}  // namespace berth::replay
