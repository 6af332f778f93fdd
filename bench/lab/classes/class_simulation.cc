// SPDX-License-Identifier: Apache-2.0
#include "bench/lab/classes/class_simulation.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "bench/replay/engine_session.h"
#include "bench/replay/latency.h"
#include "bench/replay/time/event_loop.h"

namespace berth::replay {
namespace {

double HoursOf(Millis time) { return static_cast<double>(time.count()) / 3'600'000; }

class ClassSimulation final : public EventLoop {
 public:
  ClassSimulation(const ClassWorkload& workload, const ClassPolicy& policy, EnginePlacer& placer)
      : EventLoop(workload.pods.size(), workload.kinds.size() * kWorkClasses),
        workload_(workload),
        policy_(policy),
        placer_(placer),
        done_(workload.pods.size()) {}

  ClassResult Finish() {
    for (std::size_t n = 0; n < done_.size(); ++n) {
      const ClassPod& of = workload_.pods[n];
      const Millis asked = std::min(of.runs, workload_.horizon - of.at);
      WorkService& service = result_[of.work];
      service.demand_gpu_hours += GpusTaken(workload_.kinds[of.kind]) * HoursOf(asked);
      if (runs()[n].node != kNoNode) {
        Count(n, HasRun(n));
      } else if (runs()[n].starts == 0) {
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
    result_.trace = trace();
    return result_;
  }

 private:
  [[nodiscard]] PodRequest Pod(std::size_t n, const NodeWishes& wishes) const {
    PodRequest pod = PodNumbered(n, KindOf(n).shape);
    pod.shape.nodes = wishes;
    return pod;
  }
  [[nodiscard]] const std::vector<NodeWishes>& TriesOf(std::size_t n) const {
    return policy_.tries[workload_.pods[n].work];
  }
  [[nodiscard]] Millis HasRun(std::size_t n) const {
    return std::chrono::duration_cast<Millis>(now() - runs()[n].since);
  }

  [[nodiscard]] Instant ArrivalOf(std::size_t n) const override {
    return Instant(workload_.pods[n].at);
  }
  [[nodiscard]] Duration TimeLeft(std::size_t n) const override {
    return workload_.pods[n].runs - done_[n];
  }
  // A class may be kept from nodes with room, so each class has its own numbers. A node without
  // room for the shape has none for any class.
  [[nodiscard]] Kind KindOf(std::size_t n) const override {
    const ClassPod& of = workload_.pods[n];
    return {of.kind * kWorkClasses + of.work, workload_.kinds[of.kind]};
  }
  [[nodiscard]] std::shared_ptr<const Snapshot> Cluster() const override {
    return placer_.Cluster();
  }

  int Arrive(std::size_t n) override {
    placer_.Hear(Pod(n, TriesOf(n).front()));
    return 0;
  }
  Result<std::optional<NodeIndex>> Put(std::size_t n) override {
    for (const NodeWishes& wishes : TriesOf(n)) {
      BERTH_TRY(const std::optional<NodeIndex> node, placer_.Put(Pod(n, wishes)));
      if (node) return node;
    }
    return std::optional<NodeIndex>();
  }
  void Started(std::size_t n) override {
    if (runs()[n].starts == 1) CountWait(n);
  }
  void Ended(std::size_t n, bool finished) override {
    const std::size_t work = workload_.pods[n].work;
    Count(n, finished ? HasRun(n) : KeptAfter(work, HasRun(n)));
    if (!finished) ++result_[work].reclaimed;
    placer_.Remove(Pod(n, {}).id.uid);
  }
  void Advancing(Instant) override {}

  [[nodiscard]] std::optional<Instant> NextOwnEvent() const override {
    if (next_reclaim_ == workload_.reclaims.size()) return std::nullopt;
    return Instant(workload_.reclaims[next_reclaim_].at);
  }
  void HandleOwnEvents() override {
    for (; next_reclaim_ < workload_.reclaims.size(); ++next_reclaim_) {
      const Reclaim& reclaim = workload_.reclaims[next_reclaim_];
      if (Instant(reclaim.at) > now()) return;
      for (std::size_t n = 0; n < arrived(); ++n) {
        if (runs()[n].node == reclaim.node) Interrupt(n);
      }
    }
  }

  // The pod leaves its node with so much of its work done there.
  void Count(std::size_t n, Millis kept) {
    const NodeIndex node = runs()[n].node;
    const ClassPod& of = workload_.pods[n];
    const double gpus = GpusTaken(workload_.kinds[of.kind]);
    const double held = gpus * HoursOf(HasRun(n));
    done_[n] += kept;
    WorkService& service = result_[of.work];
    service.served_gpu_hours += gpus * HoursOf(kept);
    service.held_gpu_hours[workload_.families[node]] += held;
    service.paid += held * workload_.nodes[node].gpu_price;
  }

  void CountWait(std::size_t n) {
    if (n < workload_.primed) return;
    const double waited_s = std::chrono::duration<double>(now() - ArrivalOf(n)).count();
    waits_s_[workload_.pods[n].work].push_back(waited_s);
    waits_s_.back().push_back(waited_s);
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
  EnginePlacer& placer_;
  std::vector<Millis> done_;  // of a pod's work, before it started last
  std::size_t next_reclaim_ = 0;
  std::array<std::vector<double>, kWorkClasses + 1> waits_s_;
  ClassResult result_ = {};
};

}  // namespace

double WorkService::held() const {
  return std::accumulate(held_gpu_hours.begin(), held_gpu_hours.end(), 0.0);
}

Result<ClassResult> SimulateClasses(const ClassWorkload& workload, const ClassPolicy& policy,
                                    std::uint64_t seed) {
  BERTH_TRY(const auto session, EngineSession::Learning(policy.engine, workload.nodes, seed));
  ClassSimulation simulation(workload, policy, session->placer());
  BERTH_TRY_STATUS(simulation.Run(Instant(workload.horizon)));
  return simulation.Finish();
}

}  // namespace berth::replay
