// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/time/simulation.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <utility>

#include "base/check.h"
#include "bench/replay/power_meter.h"
#include "bench/replay/time/room_memo.h"
#include "bench/replay/time/scheduling_queue.h"

namespace berth::replay {
namespace {

constexpr double kHourMs = 3'600'000.0;

// The shapes of all tasks, each once, and which one each task has.
struct Shapes {
  explicit Shapes(const std::vector<TraceTask>& tasks) {
    std::map<RequestShape, std::size_t> numbers;
    for (const TraceTask& task : tasks) {
      const auto [entry, is_new] = numbers.try_emplace(ToShape(task), all.size());
      if (is_new) all.push_back(entry->first);
      of_task.push_back(entry->second);
    }
  }
  std::vector<RequestShape> all;
  std::vector<std::size_t> of_task;
};

class TimeSimulation {
 public:
  TimeSimulation(const Workload& workload, const Stream& stream, EnginePlacer& placer,
                 PodStarts* starts)
      : tasks_(workload.tasks),
        stream_(stream),
        placer_(placer),
        capacity_milli_(GpuCapacityMilli(workload.nodes)),
        waste_(workload.tasks),
        shapes_(workload.tasks),
        room_(shapes_.all.size()),
        service_(stream),
        starts_(starts),
        node_of_(stream.arrivals.size(), kNoNode) {}

  Result<SimulationResult> Run(const Progress& progress);

 private:
  using Leaving = std::pair<Instant, SchedulingQueue::Pod>;

  [[nodiscard]] Millis Now() const {
    return std::chrono::duration_cast<Millis>(clock_.Now().time_since_epoch());
  }
  [[nodiscard]] const TraceTask& TaskOf(std::size_t n) const {
    return tasks_[stream_.arrivals[n].task];
  }
  [[nodiscard]] PodRequest Pod(std::size_t n) const {
    PodRequest pod = PodOf(TaskOf(n), n);
    pod.priority = TaskOf(n).priority;
    return pod;
  }

  // The next moment at which something happens; empty when nothing will.
  [[nodiscard]] std::optional<Instant> NextMoment() const;
  void AdvanceTo(Instant moment);  // readings and integrals on the way
  void EndPods();
  void AddPods();
  Status TryPods();
  Result<bool> Try(std::size_t n);
  void TakeSample(Millis at);
  SimulationResult Finish();

  const std::vector<TraceTask>& tasks_;
  const Stream& stream_;
  EnginePlacer& placer_;
  const std::int64_t capacity_milli_;
  const WasteMeter waste_;
  const Shapes shapes_;

  SimClock clock_;
  SchedulingQueue queue_;
  RoomMemo room_;
  ServiceMeter service_;
  PodStarts* const starts_;  // nullptr: nobody asks
  std::priority_queue<Leaving, std::vector<Leaving>, std::greater<>> leaving_;
  std::vector<NodeIndex> node_of_;  // per arrival; kNoNode = not started
  std::size_t next_arrival_ = 0;
  std::int64_t allocated_milli_ = 0, waiting_milli_ = 0;
  std::int64_t waiting_ms_ = 0, idle_waiting_milli_ms_ = 0;
  PowerMeter power_;
  std::int64_t watt_ms_ = 0;
  SimulationResult result_;
};

std::optional<Instant> TimeSimulation::NextMoment() const {
  std::optional<Instant> next = queue_.NextTick();
  const auto or_at = [&next](Instant at) { next = next ? std::min(*next, at) : at; };
  if (next_arrival_ < stream_.arrivals.size()) {
    or_at(Instant(stream_.arrivals[next_arrival_].at));
  }
  if (!leaving_.empty()) or_at(leaving_.top().first);
  return next;
}

void TimeSimulation::TakeSample(Millis at) {
  Sample sample;
  sample.at_hours = static_cast<double>(at.count()) / kHourMs;
  sample.allocated_gpus = static_cast<double>(allocated_milli_) / kMilliPerGpu;
  sample.waiting_gpus = static_cast<double>(waiting_milli_) / kMilliPerGpu;
  sample.idle = waste_.Measure(*placer_.Cluster());
  sample.watts = static_cast<double>(power_.Watts(placer_.Cluster()));
  result_.samples.push_back(sample);
}

void TimeSimulation::AdvanceTo(Instant moment) {
  const Millis until = std::chrono::duration_cast<Millis>(moment.time_since_epoch());
  while (result_.samples.size() < kSamples) {
    const auto number = static_cast<std::int64_t>(result_.samples.size()) + 1;
    const Millis due(stream_.horizon.count() * number / kSamples);
    if (due > until) break;
    TakeSample(due);
  }
  const std::int64_t ms = (until - Now()).count();
  watt_ms_ += ms * power_.Watts(placer_.Cluster());
  if (waiting_milli_ > 0) {
    waiting_ms_ += ms;
    idle_waiting_milli_ms_ += ms * (capacity_milli_ - allocated_milli_);
  }
  clock_.Advance(moment - clock_.Now());
}

void TimeSimulation::EndPods() {
  while (!leaving_.empty() && leaving_.top().first <= clock_.Now()) {
    const std::size_t n = leaving_.top().second;
    leaving_.pop();
    placer_.Remove(Pod(n).id.uid);
    room_.Freed(node_of_[n]);
    allocated_milli_ -= GpuDemandMilli(TaskOf(n));
    queue_.Event(clock_.Now());
  }
}

void TimeSimulation::AddPods() {
  for (; next_arrival_ < stream_.arrivals.size(); ++next_arrival_) {
    if (stream_.arrivals[next_arrival_].at > Now()) return;
    const TraceTask& task = TaskOf(next_arrival_);
    placer_.Hear(Pod(next_arrival_));
    queue_.Add(static_cast<SchedulingQueue::Pod>(next_arrival_), task.priority, clock_.Now());
    waiting_milli_ += GpuDemandMilli(task);
  }
}

Result<bool> TimeSimulation::Try(std::size_t n) {
  ++result_.attempts;
  const std::size_t shape = shapes_.of_task[stream_.arrivals[n].task];
  if (!room_.MayFit(shape, shapes_.all[shape], *placer_.state().Current())) return false;
  BERTH_TRY(const std::optional<NodeIndex> node, placer_.Put(Pod(n)));
  if (!node) {
    room_.Failed(shape);
    return false;
  }
  node_of_[n] = *node;
  return true;
}

Status TimeSimulation::TryPods() {
  while (const auto turn = queue_.Next()) {
    const std::size_t n = turn->pod;
    BERTH_TRY(const bool placed, Try(n));
    if (!placed) {
      queue_.Failed(*turn, clock_.Now());
      continue;
    }
    const std::int64_t milli = GpuDemandMilli(TaskOf(n));
    allocated_milli_ += milli;
    waiting_milli_ -= milli;
    service_.Started(n, TaskOf(n), Now());
    if (starts_ != nullptr) (*starts_)[n] = StartOf(*placer_.last(), Now());
    leaving_.emplace(clock_.Now() + stream_.arrivals[n].runs, turn->pod);
    queue_.Event(clock_.Now());
  }
  return {};
}

SimulationResult TimeSimulation::Finish() {
  for (std::size_t n = 0; n < stream_.arrivals.size(); ++n) {
    if (node_of_[n] == kNoNode) service_.NeverStarted(n, TaskOf(n));
  }
  result_.horizon_hours = static_cast<double>(stream_.horizon.count()) / kHourMs;
  result_.gpus_total = capacity_milli_ / kMilliPerGpu;
  result_.arrivals = static_cast<std::int64_t>(stream_.arrivals.size());
  result_.service = service_.Summary();
  result_.kwh = static_cast<double>(watt_ms_) / kHourMs / 1000;
  result_.gpus_without_watts = GpusWithoutWatts(*placer_.Cluster());
  result_.waiting_hours = static_cast<double>(waiting_ms_) / kHourMs;
  result_.idle_gpu_hours_waiting =
      static_cast<double>(idle_waiting_milli_ms_) / kMilliPerGpu / kHourMs;
  return std::move(result_);
}

Result<SimulationResult> TimeSimulation::Run(const Progress& progress) {
  const Instant horizon(stream_.horizon);
  while (const auto moment = NextMoment()) {
    if (*moment >= horizon) break;
    AdvanceTo(*moment);
    EndPods();
    AddPods();
    queue_.Tick(clock_.Now());
    BERTH_TRY_STATUS(TryPods());
    if (progress && next_arrival_ > 0 && next_arrival_ < stream_.arrivals.size()) {
      progress(next_arrival_, stream_.arrivals.size());
    }
  }
  AdvanceTo(horizon);
  if (progress) progress(stream_.arrivals.size(), stream_.arrivals.size());
  return Finish();
}

}  // namespace

Result<SimulationResult> Simulate(const Workload& workload, const Stream& stream,
                                  EnginePlacer& placer, const Progress& progress,
                                  PodStarts* starts) {
  if (GpuCapacityMilli(workload.nodes) == 0) {
    return Invalid("nodes: want at least one GPU, got none");
  }
  if (starts != nullptr) starts->assign(stream.arrivals.size(), {});
  return TimeSimulation(workload, stream, placer, starts).Run(progress);
}

}  // namespace berth::replay
