// SPDX-License-Identifier: Apache-2.0
//
// One decision of the engine: find the best nodes, pick devices, reserve. Measured on the generated
// cluster filled to half by the same policy, with departures that keep it there.
#include <benchmark/benchmark.h>

#include <deque>
#include <memory>
#include <span>

#include "base/check.h"
#include "base/random.h"
#include "bench/replay/oracle_mix.h"
#include "bench/replay/replay.h"
#include "bench/replay/workload.h"
#include "cluster/state/cluster_state.h"
#include "scoring/engine/engine.h"
#include "scoring/registry.h"

namespace berth {
namespace {

// A cluster of `copies` times 1,213 nodes, and pods that come and go.
class Churn {
 public:
  Churn(std::string_view policy, int copies)
      : workload_(replay::GenerateWorkload(42)), engine_(EngineOf(policy)) {
    std::vector<ClusterEvent> events;
    for (int copy = 0; copy < copies; ++copy) {
      for (const replay::TraceNode& node : workload_.nodes) {
        events.emplace_back(NodeUpserted{ToNodeSpec(node, node.name + "-" + std::to_string(copy))});
      }
    }
    BERTH_CHECK(state_.Apply(events).has_value());
    const std::size_t half = workload_.tasks.size() / 2 * static_cast<std::size_t>(copies);
    while (running_.size() < half) Place();
  }

  void Place() {
    const replay::TraceTask& task = workload_.tasks[random_.Below(workload_.tasks.size())];
    const PodRequest pod = replay::PodOf(task, next_++);
    const auto snapshot = state_.Current();
    mix_->Observe(pod.shape);
    engine_->Follow(snapshot);
    const std::vector<NodeIndex> best = engine_->Best(snapshot, pod.shape);
    if (best.empty()) return;
    const auto placement = engine_->PlaceOn(snapshot, pod.shape, best.front());
    BERTH_CHECK(state_.Reserve(pod, *placement, Instant::max()).has_value());
    running_.push_back(pod.id.uid);
  }

  void Leave() {
    const ClusterEvent gone = PodGone{running_.front()};
    BERTH_CHECK(state_.Apply(std::span(&gone, 1)).has_value());
    running_.pop_front();
  }

 private:
  // Our own policy learns the mix, the others have the oracle.
  [[nodiscard]] std::shared_ptr<Engine> EngineOf(std::string_view policy) const {
    const ProfileSpec& spec = *FindBuiltinProfile(policy);
    if (MixUseOf(spec) == MixUse::kDraws) return Engine::Create({spec, {}, mix_}).value();
    return std::make_shared<Engine>(BuildProfile(spec, replay::OracleMix(workload_.tasks)).value());
  }

  const replay::Workload workload_;
  const std::shared_ptr<LearnedMix> mix_ = std::make_shared<LearnedMix>(LearningParameters{});
  const std::shared_ptr<Engine> engine_;
  ClusterState state_;
  Random random_{1};
  std::deque<std::string> running_;
  std::size_t next_ = 0;
};

void BM_Engine_Decision(benchmark::State& state, std::string_view policy) {
  Churn churn(policy, static_cast<int>(state.range(0)));
  for (int i = 0; i < 2000; ++i) {  // every shape has been seen
    churn.Leave();
    churn.Place();
  }
  for (auto _ : state) {
    state.PauseTiming();
    churn.Leave();
    state.ResumeTiming();
    churn.Place();
  }
}
BENCHMARK_CAPTURE(BM_Engine_Decision, first_fit, "first-fit")->Arg(1)->Arg(4)->Iterations(20000);
BENCHMARK_CAPTURE(BM_Engine_Decision, best_fit, "best-fit")->Arg(1)->Arg(4)->Iterations(20000);
BENCHMARK_CAPTURE(BM_Engine_Decision, expected_waste, "expected-waste")
    ->Arg(1)
    ->Arg(4)
    ->Iterations(20000);
BENCHMARK_CAPTURE(BM_Engine_Decision, fragmentation_gradient, "fragmentation-gradient")
    ->Arg(1)
    ->Arg(4)
    ->Iterations(20000);

}  // namespace
}  // namespace berth
