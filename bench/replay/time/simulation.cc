// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/time/simulation.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "bench/replay/power_meter.h"
#include "bench/replay/time/event_loop.h"
#include "scoring/room/room_nodes.h"
#include "server/wire/pod/pod_needs.h"

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
                 Shapes shapes, PodStarts* starts, RoomRule* rule, const WaitRules& waits,
                 const Progress& progress)
      : EventLoop(stream.arrivals.size(), shapes.all.size()),
        tasks_(workload.tasks),
        stream_(stream),
        placer_(placer),
        capacity_milli_(GpuCapacityMilli(workload.nodes)),
        waste_(workload.tasks),
        shapes_(std::move(shapes)),
        service_(stream),
        starts_(starts),
        rule_(rule),
        works_since_(stream.arrivals.size()),
        waits_(waits),
        progress_(progress) {
    LearnOfPast();
  }

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
    pod.mobility = Mobility::kMoves;
    pod.checkpointed = WallOf(now());  // it is placed now, if it is
    waits_.words.Say(stream_.arrivals[n].runs, pod);
    pod.series = SeriesOf(stream_.arrivals[n].task);
    return pod;
  }
  // By the owner of the task, or else by its name; 0 where nobody learns of them.
  [[nodiscard]] std::uint64_t SeriesOf(std::size_t task) const {
    if (!waits_.learns_run_times) return 0;
    return stream_.owners.empty()
               ? std::hash<std::string_view>()(wire::StemOf(tasks_[task].name)) | 1U
               : stream_.owners[task];
  }
  void LearnOfPast();
  void TakeSample(Millis at);

  [[nodiscard]] Instant ArrivalOf(std::size_t n) const override {
    return Instant(stream_.arrivals[n].at);
  }
  [[nodiscard]] Duration TimeLeft(std::size_t n) const override {
    return stream_.arrivals[n].runs + RestartOf(n);
  }
  [[nodiscard]] Duration RestartOf(std::size_t n) const {
    return runs()[n].starts <= 1 ? Duration::zero() : Duration(kRestart);
  }
  [[nodiscard]] Kind KindOf(std::size_t n) const override {
    const std::size_t shape = shapes_.of_task[stream_.arrivals[n].task];
    return {shape, shapes_.all[shape]};
  }
  [[nodiscard]] std::shared_ptr<const Snapshot> Cluster() const override {
    return placer_.Cluster();
  }
  int Arrive(std::size_t n) override;
  Result<std::optional<NodeIndex>> Put(std::size_t n) override {
    waits_its_turn_ = waits_.in_turn && TaskOf(n).gpus > 0 && !IsFirst(n);
    if (waits_its_turn_) return std::nullopt;
    const Arrival& arrival = stream_.arrivals[n];
    return placer_.Put(Pod(n), now(), WallTime(arrival.at), arrival.ran);
  }
  [[nodiscard]] bool WasKeptAway() const override {
    return waits_its_turn_ || placer_.was_kept_away();
  }
  // Of those with GPUs that wait: the highest priority, then who came first.
  [[nodiscard]] bool IsFirst(std::size_t n) const {
    return *turns_.begin() == std::pair(-TaskOf(n).priority, n);
  }
  void Skipped(std::size_t n) override {
    if (placer_.keeps_room()) {
      placer_.StandInLine(Pod(n), now(), WallTime(stream_.arrivals[n].at));
    }
  }
  void Started(std::size_t n) override;
  void Ended(std::size_t n, bool finished) override;
  void Advancing(Instant to) override;  // readings and integrals on the way
  [[nodiscard]] std::optional<Instant> NextOwnEvent() const override {
    return rule_ == nullptr ? std::nullopt : std::optional(next_look_);
  }
  void HandleOwnEvents() override;
  void Carry(const RoomChange& change);
  void Lose(std::size_t n);

  const std::vector<TraceTask>& tasks_;
  const Stream& stream_;
  EnginePlacer& placer_;
  const std::int64_t capacity_milli_;
  const WasteMeter waste_;
  const Shapes shapes_;

  ServiceMeter service_;
  PodStarts* const starts_;  // nullptr: nobody asks
  RoomRule* const rule_;     // nullptr: nobody is moved
  Instant next_look_{};
  std::vector<Instant> works_since_;                      // on its node, by pod
  std::set<std::size_t> waiting_;                         // with GPUs; where there is a rule
  std::unordered_map<std::string, std::size_t> numbers_;  // by UID; where there is a rule
  std::int64_t lost_milli_ms_ = 0;
  const WaitRules waits_;
  std::set<std::pair<int, std::size_t>> turns_;  // -priority, number; where they take turns
  bool waits_its_turn_ = false;                  // the last Put
  const Progress& progress_;
  std::int64_t allocated_milli_ = 0, waiting_milli_ = 0;
  std::int64_t waiting_ms_ = 0, idle_waiting_milli_ms_ = 0;
  PowerMeter power_;
  std::int64_t watt_ms_ = 0;
  SimulationResult result_;
};

void TimeSimulation::LearnOfPast() {
  for (std::size_t i = 0; waits_.learns_run_times && i < stream_.past.size(); ++i) {
    const PastRun& past = stream_.past[i];
    PodRequest pod = PodOf(tasks_[past.task], i);
    pod.id.uid += "-past";
    pod.series = SeriesOf(past.task);
    placer_.Learn(pod, past.ran, WallTime(past.ended));
  }
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
  if (waits_.in_turn && TaskOf(n).gpus > 0) turns_.emplace(-TaskOf(n).priority, n);
  waiting_milli_ += GpuDemandMilli(TaskOf(n));
  if (rule_ != nullptr) {
    numbers_.emplace(Pod(n).id.uid, n);
    if (TaskOf(n).gpus > 0) waiting_.insert(n);
  }
  return TaskOf(n).priority;
}

void TimeSimulation::Started(std::size_t n) {
  const std::int64_t milli = GpuDemandMilli(TaskOf(n));
  turns_.erase({-TaskOf(n).priority, n});
  allocated_milli_ += milli;
  waiting_milli_ -= milli;
  const bool is_first = runs()[n].starts == 1;
  works_since_[n] = is_first ? now() : now() + kRestart;
  if (is_first) {
    service_.Started(n, TaskOf(n), SinceStart(now()));
    if (n >= stream_.primed) ++result_.placed;
  } else {
    service_.Moved(n, TaskOf(n), std::nullopt, SinceStart(works_since_[n]));
  }
  waiting_.erase(n);
  if (starts_ != nullptr) (*starts_)[n] = StartOf(*placer_.last(), SinceStart(now()));
}

void TimeSimulation::Ended(std::size_t n, bool finished) {
  placer_.Remove(Pod(n).id.uid);
  const std::int64_t milli = GpuDemandMilli(TaskOf(n));
  allocated_milli_ -= milli;
  if (finished) {
    const Arrival& arrival = stream_.arrivals[n];
    placer_.Learn(Pod(n), arrival.ran + arrival.runs, WallOf(now()));
    return;
  }
  Lose(n);
  service_.Moved(n, TaskOf(n), SinceStart(works_since_[n]), std::nullopt);
  waiting_milli_ += milli;
  if (TaskOf(n).gpus > 0) waiting_.insert(n);
  if (waits_.in_turn && TaskOf(n).gpus > 0) turns_.emplace(-TaskOf(n).priority, n);
}

// It begins anew: its work is lost, and the time of its next start.
void TimeSimulation::Lose(std::size_t n) {
  const Millis since = SinceStart(works_since_[n]);
  const Millis worked = std::max(SinceStart(now()) - since, Millis(0));
  lost_milli_ms_ += GpuDemandMilli(TaskOf(n)) * (worked + Millis(kRestart)).count();
}

void TimeSimulation::HandleOwnEvents() {
  if (rule_ == nullptr || now() < next_look_) return;
  next_look_ += rule_->period();
  while (true) {
    const RoomView view{.now = now(),
                        .cluster = placer_.Cluster(),
                        .reservations = placer_.ReservationsNow(now()),
                        .waiting = waiting_,
                        .pod = [this](std::size_t n) { return Pod(n); },
                        .arrived = [this](std::size_t n) { return ArrivalOf(n); },
                        .placed = result_.placed,
                        .moved = result_.moved};
    const std::optional<RoomChange> change = rule_->Look(view);
    if (!change) return;
    Carry(*change);
  }
}

void TimeSimulation::Carry(const RoomChange& change) {
  std::vector<PodPlacement> places = change.moves;
  for (PodPlacement& one : places) one.pod.checkpointed = WallOf(now() + kRestart);
  const std::size_t moves = places.size();
  if (change.lets_in) places.push_back({Pod(*change.lets_in), change.place});
  BERTH_CHECK(placer_.Take(places).has_value());
  const auto index_of = [this](const Placement& place) {
    return placer_.Cluster()->names().Find(place.node);
  };
  for (std::size_t i = 0; i < moves; ++i) {
    const std::size_t n = numbers_.at(places[i].pod.id.uid);
    Lose(n);
    const Instant anew = now() + kRestart;
    service_.Moved(n, TaskOf(n), SinceStart(works_since_[n]), SinceStart(anew));
    works_since_[n] = anew;
    Move(n, index_of(places[i].placement));
    ++result_.moved;
  }
  if (change.lets_in) Seat(*change.lets_in, index_of(change.place));
  for (const std::string& uid : change.evicted) {
    Interrupt(numbers_.at(uid));
    ++result_.evicted;
  }
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
  result_.lost_gpu_hours = static_cast<double>(lost_milli_ms_) / kMilliPerGpu / kHourMs;
  result_.waiting_hours = static_cast<double>(waiting_ms_) / kHourMs;
  result_.idle_gpu_hours_waiting =
      static_cast<double>(idle_waiting_milli_ms_) / kMilliPerGpu / kHourMs;
  return std::move(result_);
}

}  // namespace

Result<SimulationResult> Simulate(const Workload& workload, const Stream& stream,
                                  EnginePlacer& placer, const Progress& progress, PodStarts* starts,
                                  RoomRule* rule, const WaitRules& waits) {
  if (GpuCapacityMilli(workload.nodes) == 0) {
    return Invalid("nodes: want at least one GPU, got none");
  }
  if (starts != nullptr) starts->assign(stream.arrivals.size(), {});
  TimeSimulation simulation(workload, stream, placer, Shapes(workload.tasks), starts, rule, waits,
                            progress);
  BERTH_TRY_STATUS(simulation.Run(Instant(stream.horizon)));
  if (progress) progress(stream.arrivals.size(), stream.arrivals.size());
  return simulation.Finish();
}

}  // namespace berth::replay
