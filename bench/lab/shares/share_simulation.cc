// SPDX-License-Identifier: Apache-2.0
#include "bench/lab/shares/share_simulation.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"
#include "bench/lab/shares/share_rules.h"
#include "bench/replay/engine_session.h"
#include "bench/replay/latency.h"
#include "bench/replay/time/event_loop.h"

namespace berth::replay {
namespace {

constexpr std::string_view kBerth = "berth", kFluid = "fluid";
constexpr double kMsPerHour = 3'600'000.0;

// Who places pods: Berth's engine, or a rule on books of its own.
class SharePlacer {
 public:
  virtual ~SharePlacer() = default;
  virtual void Hear(const PodRequest&) {}
  // The node that it has now; empty: no room.
  virtual Result<std::optional<NodeIndex>> Put(const PodRequest& pod) = 0;
  virtual void Remove(const std::string& uid) = 0;
  [[nodiscard]] virtual std::shared_ptr<const Snapshot> Now() const = 0;
};

class BerthSharePlacer final : public SharePlacer {
 public:
  static Result<std::unique_ptr<SharePlacer>> Create(const std::vector<NodeSpec>& nodes,
                                                     std::uint64_t seed) {
    BERTH_TRY(const ReplayPolicy policy, PolicyNamed("expected-waste"));
    auto placer = std::make_unique<BerthSharePlacer>();
    BERTH_TRY(placer->session_, EngineSession::Learning(policy, nodes, seed));
    return std::unique_ptr<SharePlacer>(std::move(placer));
  }
  void Hear(const PodRequest& pod) override { session_->placer().Hear(pod); }
  Result<std::optional<NodeIndex>> Put(const PodRequest& pod) override {
    return session_->placer().Put(pod);
  }
  void Remove(const std::string& uid) override { session_->placer().Remove(uid); }
  [[nodiscard]] std::shared_ptr<const Snapshot> Now() const override {
    return session_->placer().Cluster();
  }

 private:
  std::unique_ptr<EngineSession> session_;
};

class RuleSharePlacer final : public SharePlacer {
 public:
  static Result<std::unique_ptr<SharePlacer>> Create(const std::vector<NodeSpec>& nodes,
                                                     const std::string& name) {
    BERTH_TRY(std::unique_ptr<const ShareRule> rule, MakeShareRule(name));
    return std::unique_ptr<SharePlacer>(new RuleSharePlacer(nodes, std::move(rule)));
  }
  Result<std::optional<NodeIndex>> Put(const PodRequest& pod) override {
    const auto snapshot = state_.Current();
    const std::optional<Placement> placement = rule_->Choose(*snapshot, pod.shape);
    if (!placement) return std::nullopt;
    BERTH_TRY_STATUS(state_.Reserve(pod, *placement, Instant::max()));
    BERTH_TRY_STATUS(state_.Confirm(pod.id.uid));
    return snapshot->names().Find(placement->node);
  }
  void Remove(const std::string& uid) override {
    const ClusterEvent gone = PodGone{uid};
    BERTH_CHECK(state_.Apply({&gone, 1}).has_value());
  }
  [[nodiscard]] std::shared_ptr<const Snapshot> Now() const override { return state_.Current(); }

 private:
  RuleSharePlacer(const std::vector<NodeSpec>& nodes, std::unique_ptr<const ShareRule> rule)
      : rule_(std::move(rule)) {
    std::vector<ClusterEvent> events;
    for (const NodeSpec& node : nodes) events.emplace_back(NodeUpserted{node});
    BERTH_CHECK(state_.Apply(events).has_value());
  }

  const std::unique_ptr<const ShareRule> rule_;
  ClusterState state_;
};

// All cards as one: what is free anywhere can be used.
class FluidPlacer final : public SharePlacer {
 public:
  explicit FluidPlacer(const std::vector<NodeSpec>& nodes) {
    std::vector<ClusterEvent> events;
    double cards = 0;
    for (const NodeSpec& node : nodes) {
      events.emplace_back(NodeUpserted{node});
      for (const GpuSpec& gpu : node.gpus) free_mib_ += gpu.memory_mib;
      cards += static_cast<double>(node.gpus.size());
    }
    free_milli_ = static_cast<std::int64_t>(cards) * kMilliPerGpu;
    card_mib_ = static_cast<std::int64_t>(static_cast<double>(free_mib_) / cards);
    BERTH_CHECK(empty_.Apply(events).has_value());
  }
  Result<std::optional<NodeIndex>> Put(const PodRequest& pod) override {
    const GpuShare amounts = AmountsOf(pod.shape);
    if (amounts.milli > free_milli_ || amounts.memory_mib > free_mib_) return std::nullopt;
    Take(amounts, 1);
    held_.emplace(pod.id.uid, amounts);
    return NodeIndex{0};
  }
  void Remove(const std::string& uid) override {
    const auto found = held_.find(uid);
    Take(found->second, -1);
    held_.erase(found);
  }
  // Nobody is on it: any pod may fit once another has left.
  [[nodiscard]] std::shared_ptr<const Snapshot> Now() const override { return empty_.Current(); }

 private:
  [[nodiscard]] GpuShare AmountsOf(const RequestShape& shape) const {
    if (const auto* const share = std::get_if<GpuShare>(&shape.gpus)) return *share;
    return {shape.gpu_count() * kMilliPerGpu, shape.gpu_count() * card_mib_};
  }
  void Take(const GpuShare& amounts, int sign) {
    free_milli_ -= sign * amounts.milli;
    free_mib_ -= sign * amounts.memory_mib;
  }

  std::int64_t free_milli_ = 0, free_mib_ = 0, card_mib_ = 0;
  std::map<std::string, GpuShare> held_;
  ClusterState empty_;
};

Result<std::unique_ptr<SharePlacer>> MakePlacer(const std::vector<NodeSpec>& nodes,
                                                const std::string& policy, std::uint64_t seed) {
  if (policy == kBerth) return BerthSharePlacer::Create(nodes, seed);
  if (policy == kFluid) return std::unique_ptr<SharePlacer>(new FluidPlacer(nodes));
  return RuleSharePlacer::Create(nodes, policy);
}

class ShareSimulation final : public EventLoop {
 public:
  ShareSimulation(const ShareWorkload& workload, SharePlacer& placer)
      : EventLoop(workload.pods.size(), workload.kinds.size()),
        workload_(workload),
        placer_(placer) {
    for (const NodeSpec& node : workload.nodes) {
      for (const GpuSpec& gpu : node.gpus) {
        cards_ += 1;
        memory_mib_ += static_cast<double>(gpu.memory_mib);
      }
    }
  }

  ShareResult Finish() {
    for (std::size_t n = 0; n < workload_.pods.size(); ++n) {
      result_.demand_gpu_hours += GpuHours(n, ArrivalOf(n));
      if (runs()[n].starts > 0) continue;
      CountWait(n, now());
      if (n < workload_.primed) continue;
      ++result_.waits[ClassOf(n)].never;
      ++result_.waits.back().never;
    }
    for (std::size_t c = 0; c < kShareClasses; ++c) {
      const LatencySummary waits = Summarize(waits_s_[c]);
      ShareWaits& sum = result_.waits[c];
      sum.arrived = static_cast<std::int64_t>(waits_s_[c].size());
      sum.mean_s = waits.mean;
      sum.p50_s = waits.p50;
      sum.p99_s = waits.p99;
    }
    const auto horizon_ms = static_cast<double>(workload_.horizon.count());
    result_.used_compute /= horizon_ms;
    result_.used_memory /= horizon_ms;
    if (result_.waiting_hours > 0) {
      result_.idle_compute_waiting /= result_.waiting_hours * kMsPerHour;
      result_.idle_memory_waiting /= result_.waiting_hours * kMsPerHour;
    }
    result_.trace = trace();
    return result_;
  }

 private:
  struct Amounts {
    double compute = 0, memory_mib = 0;  // GPUs; MiB
  };

  [[nodiscard]] PodRequest Pod(std::size_t n) const { return PodNumbered(n, KindOf(n).shape); }

  [[nodiscard]] Amounts AmountsOf(std::size_t n) const {
    const RequestShape& shape = KindOf(n).shape;
    if (const auto* const share = std::get_if<GpuShare>(&shape.gpus)) {
      return {static_cast<double>(share->milli) / kMilliPerGpu,
              static_cast<double>(share->memory_mib)};
    }
    const NodeSpec& node = workload_.nodes[runs()[n].node];
    const double memory_mib = static_cast<double>(node.gpus.front().memory_mib);
    return {double(shape.gpu_count()), shape.gpu_count() * memory_mib};
  }

  [[nodiscard]] Instant ArrivalOf(std::size_t n) const override {
    return Instant(workload_.pods[n].at);
  }
  [[nodiscard]] Duration TimeLeft(std::size_t n) const override { return workload_.pods[n].runs; }
  [[nodiscard]] Kind KindOf(std::size_t n) const override {
    const std::size_t kind = workload_.pods[n].kind;
    return {kind, workload_.kinds[kind]};
  }
  [[nodiscard]] std::shared_ptr<const Snapshot> Cluster() const override { return placer_.Now(); }

  int Arrive(std::size_t n) override {
    placer_.Hear(Pod(n));
    ++waiting_;
    return 0;
  }
  Result<std::optional<NodeIndex>> Put(std::size_t n) override { return placer_.Put(Pod(n)); }
  void Started(std::size_t n) override {
    --waiting_;
    Use(n, 1);
    CountWait(n, now());
    result_.served_gpu_hours += GpuHours(n, now());
  }
  void Ended(std::size_t n, bool) override {
    placer_.Remove(Pod(n).id.uid);
    Use(n, -1);
  }
  void Advancing(Instant to) override {
    const double ms = static_cast<double>(std::chrono::duration_cast<Millis>(to - now()).count());
    const double compute = used_.compute / cards_, memory = used_.memory_mib / memory_mib_;
    result_.used_compute += ms * compute;
    result_.used_memory += ms * memory;
    if (waiting_ == 0) return;
    result_.waiting_hours += ms / kMsPerHour;
    result_.idle_compute_waiting += ms * (1 - compute);
    result_.idle_memory_waiting += ms * (1 - memory);
  }

  void Use(std::size_t n, double sign) {
    const Amounts amounts = AmountsOf(n);
    used_.compute += sign * amounts.compute;
    used_.memory_mib += sign * amounts.memory_mib;
  }

  // What the pod runs within the horizon if it starts then.
  [[nodiscard]] double GpuHours(std::size_t n, Instant start) const {
    const SharePod& pod = workload_.pods[n];
    const Instant end = std::min(start + pod.runs, Instant(workload_.horizon));
    const Millis ran = std::chrono::duration_cast<Millis>(end - start);
    return workload_.gpus[pod.kind] * static_cast<double>(ran.count()) / kMsPerHour;
  }

  void CountWait(std::size_t n, Instant until) {
    if (n < workload_.primed) return;
    const auto waited = std::chrono::duration_cast<Millis>(until - Instant(workload_.pods[n].at));
    const double waited_s = static_cast<double>(waited.count()) / 1000;
    waits_s_[ClassOf(n)].push_back(waited_s);
    waits_s_.back().push_back(waited_s);
  }

  [[nodiscard]] std::size_t ClassOf(std::size_t n) const {
    return workload_.kinds[workload_.pods[n].kind].is_share() ? 0 : 1;
  }

  const ShareWorkload& workload_;
  SharePlacer& placer_;
  double cards_ = 0, memory_mib_ = 0;
  std::size_t waiting_ = 0;
  Amounts used_;
  std::array<std::vector<double>, kShareClasses> waits_s_;
  ShareResult result_;
};

}  // namespace

std::vector<std::string_view> SharePolicyNames() {
  std::vector<std::string_view> names = {kBerth};
  for (const std::string_view rule : ShareRuleNames()) names.push_back(rule);
  names.push_back(kFluid);
  return names;
}

Result<ShareResult> SimulateShares(const ShareWorkload& workload, const std::string& policy,
                                   std::uint64_t seed) {
  BERTH_TRY(const std::unique_ptr<SharePlacer> placer, MakePlacer(workload.nodes, policy, seed));
  ShareSimulation simulation(workload, *placer);
  BERTH_TRY_STATUS(simulation.Run(Instant(workload.horizon)));
  return simulation.Finish();
}

}  // namespace berth::replay
