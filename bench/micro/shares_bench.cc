// SPDX-License-Identifier: Apache-2.0
//
// One decision for a pod with a share of a GPU, beside one for a whole GPU: 5,000 nodes of 8 GPUs
// that pods of the same kind have filled to half, with departures that keep them there.
#include <benchmark/benchmark.h>

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "cluster/cluster_state.h"
#include "scoring/engine.h"
#include "scoring/registry.h"

namespace berth {
namespace {

constexpr int kNodes = 5'000, kGpusPerNode = 8, kShapes = 8;
constexpr std::int64_t kGpuMib = 80 * 1024;

// The shapes of a kind; all kinds have as many, and ask for as much CPU.
using AskOf = GpuAsk (*)(int shape);
GpuAsk Whole(int) { return WholeGpus{1}; }
GpuAsk ByCompute(int shape) { return GpuShare{100 * (shape + 1), 0}; }
GpuAsk ByMemory(int shape) { return GpuShare{0, kGpuMib * (shape + 1) / 10}; }
GpuAsk ByBoth(int shape) { return GpuShare{100 * (shape + 1), kGpuMib * (kShapes - shape) / 10}; }

class ShareChurn {
 public:
  explicit ShareChurn(AskOf ask) : ask_(ask) {
    std::vector<ClusterEvent> events;
    for (int i = 0; i < kNodes; ++i) {
      NodeSpec node;
      node.name = "n" + std::to_string(i);
      node.cpu_milli = 128'000;
      node.memory_bytes = std::int64_t{1} << 40;
      node.gpu_model = "A100";
      node.gpus.assign(kGpusPerNode, GpuSpec{"", kGpuMib, true});
      events.emplace_back(NodeUpserted{node});
    }
    BERTH_CHECK(state_.Apply(events).has_value());
    constexpr std::int64_t kHalf = std::int64_t{kNodes} * kGpusPerNode * kMilliPerGpu / 2;
    while (held_ < kHalf) Place();
  }

  void Place() {
    const int shape = static_cast<int>(random_.Below(kShapes));
    PodRequest pod;
    pod.id.uid = "uid-" + std::to_string(next_++);
    pod.shape.cpu_milli = 1'000 * (shape + 1);
    pod.shape.memory_bytes = std::int64_t{4} << 30;
    pod.shape.gpus = ask_(shape);
    const auto snapshot = state_.Current();
    mix_->Observe(pod.shape);
    engine_->Follow(snapshot);
    const std::vector<NodeIndex> best = engine_->Best(snapshot, pod.shape);
    BERTH_CHECK(!best.empty());
    const auto placement = engine_->PlaceOn(snapshot, pod.shape, best.front());
    const int milli = placement->grants.front().milli;
    BERTH_CHECK(state_.Reserve(pod, *placement, Instant::max()).has_value());
    running_.emplace_back(pod.id.uid, milli);
    held_ += milli;
  }

  void Leave() {
    const ClusterEvent gone = PodGone{running_.front().first};
    BERTH_CHECK(state_.Apply(std::span(&gone, 1)).has_value());
    held_ -= running_.front().second;
    running_.pop_front();
  }

 private:
  const AskOf ask_;
  const std::shared_ptr<LearnedMix> mix_ = std::make_shared<LearnedMix>(LearningParameters{});
  const std::shared_ptr<Engine> engine_ =
      Engine::Create({*FindBuiltinProfile("expected-waste"), {}, mix_}).value();
  ClusterState state_;
  Random random_{1};
  std::deque<std::pair<std::string, int>> running_;  // UID and milli
  std::int64_t held_ = 0;
  std::size_t next_ = 0;
};

void BM_Shares_Decision(benchmark::State& state, AskOf ask) {
  ShareChurn churn(ask);
  for (auto _ : state) {
    state.PauseTiming();
    churn.Leave();
    state.ResumeTiming();
    churn.Place();
  }
}
BENCHMARK_CAPTURE(BM_Shares_Decision, whole, Whole)->Iterations(10000);
BENCHMARK_CAPTURE(BM_Shares_Decision, by_compute, ByCompute)->Iterations(10000);
BENCHMARK_CAPTURE(BM_Shares_Decision, by_memory, ByMemory)->Iterations(10000);
BENCHMARK_CAPTURE(BM_Shares_Decision, by_both, ByBoth)->Iterations(10000);

}  // namespace
}  // namespace berth
