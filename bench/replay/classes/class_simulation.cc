// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/classes/class_simulation.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/replay/engine_placer.h"
#include "bench/replay/latency.h"
#include "bench/replay/time/room_memo.h"
#include "bench/replay/time/scheduling_queue.h"

namespace berth::replay {
namespace {

double HoursOf(Millis time) { return static_cast<double>(time.count()) / 3'600'000; }

class ClassSimulation {
 public:
  ClassSimulation(const ClassWorkload& workload, const ClassPolicy& policy, Engine& engine,
                  LearnedMix& mix, std::uint64_t seed)
      : workload_(workload),
        policy_(policy),
        placer_(engine, workload.nodes, seed, &mix),
        room_(workload.kinds.size() * kWorkClasses),
        pods_(workload.pods.size()) {}

  Result<ClassResult> Run() {
    const Instant horizon(workload_.horizon);
    while (const auto moment = NextMoment()) {
      if (*moment >= horizon) break;
      clock_.Advance(*moment - clock_.Now());
      EndPods();
      ReclaimNodes();
      AddPods();
      queue_.Tick(clock_.Now());
      BERTH_TRY_STATUS(TryPods());
    }
    clock_.Advance(horizon - clock_.Now());
    return Finish();
  }

 private:
  struct PodState {
    NodeIndex node = kNoNode;  // where it runs
    Instant since;             // it runs there
    Millis done{0};            // of its work, before that
    int starts = 0;
  };
  // Void where the pod has been started again since.
  struct Leaving {
    Instant at;
    SchedulingQueue::Pod pod;
    int start;
    friend bool operator>(const Leaving& a, const Leaving& b) {
      return std::tie(a.at, a.pod) > std::tie(b.at, b.pod);
    }
  };

  [[nodiscard]] PodRequest Pod(std::size_t n, const NodeWishes& wishes) const {
    PodRequest pod;
    pod.id.namespace_name = "replay";
    pod.id.name = "pod-" + std::to_string(n);
    pod.id.uid = pod.id.name;
    pod.shape = workload_.kinds[workload_.pods[n].kind];
    pod.shape.nodes = wishes;
    return pod;
  }
  [[nodiscard]] const std::vector<NodeWishes>& TriesOf(std::size_t n) const {
    return policy_.tries[workload_.pods[n].work];
  }
  [[nodiscard]] bool Runs(const Leaving& leaving) const {
    const PodState& pod = pods_[leaving.pod];
    return pod.node != kNoNode && pod.starts == leaving.start;
  }

  [[nodiscard]] std::optional<Instant> NextMoment() const {
    std::optional<Instant> next = queue_.NextTick();
    const auto or_at = [&next](Instant at) { next = next ? std::min(*next, at) : at; };
    if (next_pod_ < workload_.pods.size()) or_at(Instant(workload_.pods[next_pod_].at));
    if (next_reclaim_ < workload_.reclaims.size()) {
      or_at(Instant(workload_.reclaims[next_reclaim_].at));
    }
    if (!leaving_.empty()) or_at(leaving_.top().at);
    return next;
  }

  void EndPods() {
    while (!leaving_.empty() && leaving_.top().at <= clock_.Now()) {
      const Leaving leaving = leaving_.top();
      leaving_.pop();
      if (Runs(leaving)) Leave(leaving.pod, clock_.Now() - pods_[leaving.pod].since);
    }
  }

  // It has done so much on its node.
  void Leave(std::size_t n, Duration kept) {
    PodState& pod = pods_[n];
    Count(n, std::chrono::duration_cast<Millis>(kept));
    placer_.Remove(Pod(n, {}).id.uid);
    room_.Freed(pod.node);
    pod.node = kNoNode;
    queue_.Event(clock_.Now());
  }

  void Count(std::size_t n, Millis kept) {
    PodState& pod = pods_[n];
    const ClassPod& of = workload_.pods[n];
    const double gpus = GpusTaken(workload_.kinds[of.kind]);
    const double held =
        gpus * HoursOf(std::chrono::duration_cast<Millis>(clock_.Now() - pod.since));
    pod.done += kept;
    WorkService& service = result_[of.work];
    service.served_gpu_hours += gpus * HoursOf(kept);
    service.held_gpu_hours[workload_.families[pod.node]] += held;
    service.paid += held * workload_.nodes[pod.node].gpu_price;
  }

  void ReclaimNodes() {
    for (; next_reclaim_ < workload_.reclaims.size(); ++next_reclaim_) {
      const Reclaim& reclaim = workload_.reclaims[next_reclaim_];
      if (Instant(reclaim.at) > clock_.Now()) return;
      for (std::size_t n = 0; n < next_pod_; ++n) {
        if (pods_[n].node != reclaim.node) continue;
        const ClassPod& of = workload_.pods[n];
        Leave(n, KeptAfter(of.work,
                           std::chrono::duration_cast<Millis>(clock_.Now() - pods_[n].since)));
        ++result_[of.work].reclaimed;
        queue_.Add(static_cast<SchedulingQueue::Pod>(n), 0, clock_.Now());
      }
    }
  }

  void AddPods() {
    for (; next_pod_ < workload_.pods.size(); ++next_pod_) {
      if (Instant(workload_.pods[next_pod_].at) > clock_.Now()) return;
      placer_.Hear(Pod(next_pod_, TriesOf(next_pod_).front()));
      queue_.Add(static_cast<SchedulingQueue::Pod>(next_pod_), 0, clock_.Now());
    }
  }

  Status TryPods() {
    while (const auto turn = queue_.Next()) {
      const ClassPod& of = workload_.pods[turn->pod];
      // A class may be kept from nodes that have room, so each has numbers of its own; a node
      // without room for the shape has none whatever the class wishes for.
      const std::size_t number = of.kind * kWorkClasses + of.work;
      std::optional<NodeIndex> node;
      if (room_.MayFit(number, workload_.kinds[of.kind], *placer_.state().Current())) {
        BERTH_TRY(node, Put(turn->pod));
        if (!node) room_.Failed(number);
      }
      if (node) {
        Start(turn->pod, *node);
      } else {
        queue_.Failed(*turn, clock_.Now());
      }
    }
    return {};
  }

  Result<std::optional<NodeIndex>> Put(std::size_t n) {
    for (const NodeWishes& wishes : TriesOf(n)) {
      BERTH_TRY(const std::optional<NodeIndex> node, placer_.Put(Pod(n, wishes)));
      if (node) return node;
    }
    return std::optional<NodeIndex>();
  }

  void Start(SchedulingQueue::Pod n, NodeIndex node) {
    PodState& pod = pods_[n];
    if (pod.starts == 0) CountWait(n);
    ++pod.starts;
    pod.node = node;
    pod.since = clock_.Now();
    leaving_.push({clock_.Now() + (workload_.pods[n].runs - pod.done), n, pod.starts});
    queue_.Event(clock_.Now());
  }

  void CountWait(std::size_t n) {
    if (n < workload_.primed) return;
    const auto waited = clock_.Now() - Instant(workload_.pods[n].at);
    const double waited_s = std::chrono::duration<double>(waited).count();
    waits_s_[workload_.pods[n].work].push_back(waited_s);
    waits_s_.back().push_back(waited_s);
  }

  ClassResult Finish() {
    for (std::size_t n = 0; n < pods_.size(); ++n) {
      const ClassPod& of = workload_.pods[n];
      const Millis asked = std::min(of.runs, workload_.horizon - of.at);
      WorkService& service = result_[of.work];
      service.demand_gpu_hours += GpusTaken(workload_.kinds[of.kind]) * HoursOf(asked);
      const PodState& pod = pods_[n];
      if (pod.node != kNoNode) {
        Count(n, std::chrono::duration_cast<Millis>(clock_.Now() - pod.since));
      } else if (pod.starts == 0) {
        CountWait(n);
        if (n >= workload_.primed) ++service.never;
      }
    }
    for (std::size_t c = 0; c < kWorkClasses; ++c) AddTo(result_.back(), result_[c]);
    for (std::size_t c = 0; c <= kWorkClasses; ++c) {
      const LatencySummary waits = Summarize(waits_s_[c]);
      result_[c].arrived = static_cast<std::int64_t>(waits_s_[c].size());
      result_[c].mean_wait_s = waits.mean;
      result_[c].p99_wait_s = waits.p99;
    }
    return result_;
  }

  static void AddTo(WorkService& all, const WorkService& one) {
    all.never += one.never;
    all.reclaimed += one.reclaimed;
    all.demand_gpu_hours += one.demand_gpu_hours;
    all.served_gpu_hours += one.served_gpu_hours;
    all.paid += one.paid;
    for (std::size_t f = 0; f < kFamilies; ++f) all.held_gpu_hours[f] += one.held_gpu_hours[f];
  }

  const ClassWorkload& workload_;
  const ClassPolicy& policy_;
  EnginePlacer placer_;
  SimClock clock_;
  SchedulingQueue queue_;
  RoomMemo room_;
  std::priority_queue<Leaving, std::vector<Leaving>, std::greater<>> leaving_;
  std::vector<PodState> pods_;
  std::size_t next_pod_ = 0, next_reclaim_ = 0;
  std::array<std::vector<double>, kWorkClasses + 1> waits_s_;
  ClassResult result_;
};

}  // namespace

double WorkService::held() const {
  return std::accumulate(held_gpu_hours.begin(), held_gpu_hours.end(), 0.0);
}

Result<ClassResult> SimulateClasses(const ClassWorkload& workload, const ClassPolicy& policy,
                                    std::uint64_t seed) {
  const auto mix = std::make_shared<LearnedMix>(policy.engine.learning);
  Engine::Learning learning{policy.engine.profile, policy.engine.waste, mix};
  learning.others = policy.engine.others;
  BERTH_TRY(const std::shared_ptr<Engine> engine, Engine::Create(std::move(learning)));
  return ClassSimulation(workload, policy, *engine, *mix, seed).Run();
}

}  // namespace berth::replay
