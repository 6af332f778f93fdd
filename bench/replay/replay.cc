// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/replay.h"

#include <chrono>
#include <cmath>
#include <utility>

#include "bench/replay/power_meter.h"
#include "bench/replay/text.h"

namespace berth::replay {
namespace {

// The curves as the published tables have them: every allocation is rounded to a hundredth of a
// percent before the mean, and halves go to the even neighbour (x = 40.5 counts as 40).
class Curves {
 public:
  explicit Curves(std::int64_t capacity_milli) : capacity_(static_cast<double>(capacity_milli)) {}

  void Add(std::int64_t arrived_milli, std::int64_t allocated_milli, std::int64_t watts) {
    const double arrived_pct = 100.0 * static_cast<double>(arrived_milli) / capacity_;
    const auto x = static_cast<std::size_t>(std::llrint(arrived_pct));
    if (x > kLastPercent) return;
    hundredths_[x] += std::llrint(10'000.0 * static_cast<double>(allocated_milli) / capacity_);
    watts_[x] += watts;
    ++count_[x];
  }

  void Write(bool with_watts, ReplayResult& result) const {
    for (std::size_t x = 0; x < count_.size(); ++x) {
      if (count_[x] == 0) continue;
      const auto count = static_cast<double>(count_[x]);
      result.allocated_pct[x] = static_cast<double>(hundredths_[x]) / count / 100.0;
      if (with_watts) result.watts[x] = static_cast<double>(watts_[x]) / count;
    }
  }

 private:
  using Sums = std::array<std::int64_t, kLastPercent + 1>;
  double capacity_;
  Sums hundredths_{}, watts_{}, count_{};
};

std::string OrderedName(const std::vector<TraceNode>& nodes, const Arrivals& arrivals,
                        std::size_t node) {
  return Padded(arrivals.node_rank[node], nodes.size()) + "." + nodes[node].name;
}

}  // namespace

std::vector<NodeSpec> OrderedNodes(const std::vector<TraceNode>& nodes, const Arrivals& arrivals) {
  std::vector<NodeSpec> specs;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    specs.push_back(ToNodeSpec(nodes[i], OrderedName(nodes, arrivals, i)));
  }
  return specs;
}

std::vector<ClusterEvent> OrderedCluster(const Workload& workload, const Arrivals& arrivals) {
  std::vector<ClusterEvent> events;
  if (workload.start == nullptr) {
    for (NodeSpec& node : OrderedNodes(workload.nodes, arrivals)) {
      events.emplace_back(NodeUpserted{std::move(node)});
    }
    return events;
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < workload.nodes.size(); ++i) {
    names.push_back(OrderedName(workload.nodes, arrivals, i));
  }
  return workload.start->Events(names);
}

PodRequest PodOf(const TraceTask& task, std::size_t n) {
  // A task may come more than once: the number makes the pod.
  const std::string name = task.name + "-" + std::to_string(n);
  PodRequest pod{{"uid-" + name, "trace", name}, ToShape(task), {}, 0, ""};
  if (!task.workload_class.empty()) pod.classes.push_back(task.workload_class);
  if (pod.shape.wants_gpu()) pod.containers.push_back({"main", pod.shape.gpus, false});
  return pod;
}

Result<ReplayResult> RunReplay(const std::vector<TraceNode>& nodes,
                               const std::vector<TraceTask>& tasks, const Arrivals& arrivals,
                               Placer& placer, const Progress& progress, PodStarts* starts) {
  using Stopwatch = std::chrono::steady_clock;
  ReplayResult result;
  const std::int64_t capacity = GpuCapacityMilli(nodes);
  result.gpus_total = capacity / kMilliPerGpu;
  if (capacity == 0) return Invalid("nodes: want at least one GPU, got none");
  result.decision_us.reserve(arrivals.tasks.size());
  const std::shared_ptr<const Snapshot> before = placer.Cluster();
  if (before) result.gpus_without_watts = GpusWithoutWatts(*before);
  PowerMeter power;
  Curves curves(capacity);
  std::int64_t arrived = 0;
  for (std::size_t n = 0; n < arrivals.tasks.size(); ++n) {
    const TraceTask& task = tasks[arrivals.tasks[n]];
    const PodRequest pod = PodOf(task, n);
    const auto start = Stopwatch::now();
    BERTH_TRY(const std::optional<Placement> placed, placer.Place(pod));
    const std::chrono::duration<double, std::micro> taken = Stopwatch::now() - start;
    result.decision_us.push_back(taken.count());
    ++(placed ? result.placed : result.refused);
    arrived += GpuDemandMilli(task);
    if (placed) result.allocated_milli += GpuDemandMilli(task);
    if (starts != nullptr) starts->push_back(placed ? StartOf(*placed, Millis(0)) : PodStart{});
    curves.Add(arrived, result.allocated_milli, before ? power.Watts(placer.Cluster()) : 0);
    if (progress) progress(n + 1, arrivals.tasks.size());
  }
  curves.Write(before != nullptr, result);
  return result;
}

}  // namespace berth::replay
