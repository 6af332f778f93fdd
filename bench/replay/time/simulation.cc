// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/time/simulation.h"

#include <map>
#include <set>
#include <utility>

#include "bench/replay/power_meter.h"
#include "bench/replay/time/event_loop.h"

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

class TimeSimulation final : public EventLoop {
 public:
  TimeSimulation(const Workload& workload, const Stream& stream, EnginePlacer& placer,
                 Shapes shapes, PodStarts* starts, const Progress& progress, const WaitRules& rules)
      : EventLoop(stream.arrivals.size(), shapes.all.size()),
        tasks_(workload.tasks),
        stream_(stream),
        placer_(placer),
        capacity_milli_(GpuCapacityMilli(workload.nodes)),
        waste_(workload.tasks),
        shapes_(std::move(shapes)),
        service_(stream),
        starts_(starts),
        progress_(progress),
        rules_(rules) {}

  SimulationResult Finish();

 private:
  static Millis SinceStart(Instant at) {
    return std::chrono::duration_cast<Millis>(at.time_since_epoch());
  }
  [[nodiscard]] const TraceTask& TaskOf(std::size_t n) const {
    return tasks_[stream_.arrivals[n].task];
  }
  [[nodiscard]] PodRequest Pod(std::size_t n) const {
    PodRequest pod = PodOf(TaskOf(n), n);
    pod.priority = TaskOf(n).priority;
    rules_.words.Say(stream_.arrivals[n].runs, pod);
    return pod;
  }
  void TakeSample(Millis at);

  [[nodiscard]] Instant ArrivalOf(std::size_t n) const override {
    return Instant(stream_.arrivals[n].at);
  }
  [[nodiscard]] Duration TimeLeft(std::size_t n) const override { return stream_.arrivals[n].runs; }
  [[nodiscard]] Kind KindOf(std::size_t n) const override {
    const std::size_t shape = shapes_.of_task[stream_.arrivals[n].task];
    return {shape, shapes_.all[shape]};
  }
  [[nodiscard]] std::shared_ptr<const Snapshot> Cluster() const override {
    return placer_.Cluster();
  }
  int Arrive(std::size_t n) override;
  Result<std::optional<NodeIndex>> Put(std::size_t n) override {
    waits_its_turn_ = rules_.in_turn && TaskOf(n).gpus > 0 && !IsFirst(n);
    if (waits_its_turn_) return std::nullopt;
    return placer_.Put(Pod(n), now(), WallTime(stream_.arrivals[n].at));
  }
  [[nodiscard]] bool WasKeptAway() const override {
    return waits_its_turn_ || placer_.was_kept_away();
  }
  // Of those with GPUs that wait: the highest priority, then who came first.
  [[nodiscard]] bool IsFirst(std::size_t n) const {
    return *waiting_.begin() == std::pair(-TaskOf(n).priority, n);
  }
  void Skipped(std::size_t n) override {
    if (placer_.keeps_room()) {
      placer_.StandInLine(Pod(n), now(), WallTime(stream_.arrivals[n].at));
    }
  }
  void Started(std::size_t n) override;
  void Ended(std::size_t n, bool finished) override;
  void Advancing(Instant to) override;  // readings and integrals on the way

  const std::vector<TraceTask>& tasks_;
  const Stream& stream_;
  EnginePlacer& placer_;
  const std::int64_t capacity_milli_;
  const WasteMeter waste_;
  const Shapes shapes_;

  ServiceMeter service_;
  PodStarts* const starts_;  // nullptr: nobody asks
  const Progress& progress_;
  const WaitRules rules_;
  std::set<std::pair<int, std::size_t>> waiting_;  // -priority, number; where they take turns
  bool waits_its_turn_ = false;                    // the last Put
  std::int64_t allocated_milli_ = 0, waiting_milli_ = 0;
  std::int64_t waiting_ms_ = 0, idle_waiting_milli_ms_ = 0;
  PowerMeter power_;
  std::int64_t watt_ms_ = 0;
  SimulationResult result_;
};

void TimeSimulation::TakeSample(Millis at) {
  Sample sample;
  sample.at_hours = static_cast<double>(at.count()) / kHourMs;
  sample.allocated_gpus = static_cast<double>(allocated_milli_) / kMilliPerGpu;
  sample.waiting_gpus = static_cast<double>(waiting_milli_) / kMilliPerGpu;
  sample.idle = waste_.Measure(*placer_.Cluster());
  sample.watts = static_cast<double>(power_.Watts(placer_.Cluster()));
  result_.samples.push_back(sample);
}

void TimeSimulation::Advancing(Instant to) {
  const Millis until = SinceStart(to);
  while (result_.samples.size() < kSamples) {
    const auto number = static_cast<std::int64_t>(result_.samples.size()) + 1;
    const Millis due(stream_.horizon.count() * number / kSamples);
    if (due > until) break;
    TakeSample(due);
  }
  const std::int64_t ms = (until - SinceStart(now())).count();
  watt_ms_ += ms * power_.Watts(placer_.Cluster());
  if (waiting_milli_ > 0) {
    waiting_ms_ += ms;
    idle_waiting_milli_ms_ += ms * (capacity_milli_ - allocated_milli_);
  }
  if (progress_ && arrived() > 0) progress_(arrived(), stream_.arrivals.size());
}

int TimeSimulation::Arrive(std::size_t n) {
  placer_.Hear(Pod(n));
  if (rules_.in_turn && TaskOf(n).gpus > 0) waiting_.emplace(-TaskOf(n).priority, n);
  waiting_milli_ += GpuDemandMilli(TaskOf(n));
  return TaskOf(n).priority;
}

void TimeSimulation::Started(std::size_t n) {
  const std::int64_t milli = GpuDemandMilli(TaskOf(n));
  waiting_.erase({-TaskOf(n).priority, n});
  allocated_milli_ += milli;
  waiting_milli_ -= milli;
  service_.Started(n, TaskOf(n), SinceStart(now()));
  if (starts_ != nullptr) (*starts_)[n] = StartOf(*placer_.last(), SinceStart(now()));
}

void TimeSimulation::Ended(std::size_t n, bool) {
  placer_.Remove(Pod(n).id.uid);
  allocated_milli_ -= GpuDemandMilli(TaskOf(n));
}

SimulationResult TimeSimulation::Finish() {
  for (std::size_t n = 0; n < runs().size(); ++n) {
    if (runs()[n].starts == 0) service_.NeverStarted(n, TaskOf(n));
  }
  result_.horizon_hours = static_cast<double>(stream_.horizon.count()) / kHourMs;
  result_.gpus_total = capacity_milli_ / kMilliPerGpu;
  result_.arrivals = static_cast<std::int64_t>(stream_.arrivals.size());
  result_.attempts = attempts();
  result_.trace = trace();
  result_.service = service_.Summary();
  result_.kwh = static_cast<double>(watt_ms_) / kHourMs / 1000;
  result_.gpus_without_watts = GpusWithoutWatts(*placer_.Cluster());
  result_.waiting_hours = static_cast<double>(waiting_ms_) / kHourMs;
  result_.idle_gpu_hours_waiting =
      static_cast<double>(idle_waiting_milli_ms_) / kMilliPerGpu / kHourMs;
  return std::move(result_);
}

}  // namespace

Result<SimulationResult> Simulate(const Workload& workload, const Stream& stream,
                                  EnginePlacer& placer, const Progress& progress, PodStarts* starts,
                                  const WaitRules& rules) {
  if (GpuCapacityMilli(workload.nodes) == 0) {
    return Invalid("nodes: want at least one GPU, got none");
  }
  if (starts != nullptr) starts->assign(stream.arrivals.size(), {});
  TimeSimulation simulation(workload, stream, placer, Shapes(workload.tasks), starts, progress,
                            rules);
  BERTH_TRY_STATUS(simulation.Run(Instant(stream.horizon)));
  if (progress) progress(stream.arrivals.size(), stream.arrivals.size());
  return simulation.Finish();
}

}  // namespace berth::replay
