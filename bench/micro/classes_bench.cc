// SPDX-License-Identifier: Apache-2.0
//
// One decision for pods of workload classes on 5,000 nodes of three sorts, half full, beside the
// same pods without classes. Pods of one class ask for other CPU than those of another, or, alike,
// for the same: the classes alone then make three shapes of each.
#include <benchmark/benchmark.h>

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "bench/replay/classes/class_policies.h"
#include "cluster/cluster_state.h"
#include "scoring/engine.h"
#include "scoring/registry.h"

namespace berth {
namespace {

constexpr int kNodesOfClasses = 5000, kGpusOfNode = 8;
constexpr std::array<int, 4> kGpuCounts = {1, 2, 4, 8};

class ClassChurn {
 public:
  ClassChurn(bool with_wishes, bool alike) : alike_(alike) {
    if (with_wishes) {
      wishes_ = replay::WishesPerWork(replay::BerthWithExample().classes).value();
    }
    std::vector<ClusterEvent> events;
    for (int i = 0; i < kNodesOfClasses; ++i) events.emplace_back(NodeUpserted{NodeOf(i)});
    BERTH_CHECK(state_.Apply(events).has_value());
    while (held_ < kNodesOfClasses * kGpusOfNode / 2) Place();
  }

  void Place() {
    PodRequest pod;
    pod.id.uid = "uid-" + std::to_string(next_++);
    const int gpus = kGpuCounts[random_.Below(kGpuCounts.size())];
    const std::size_t work = random_.Below(wishes_.size());
    pod.shape.cpu_milli = 1'000 * gpus + (alike_ ? 0 : 100 * static_cast<int>(work));
    pod.shape.memory_bytes = std::int64_t{4} << 30;
    pod.shape.gpus = WholeGpus{gpus};
    pod.shape.nodes = wishes_[work];
    const auto snapshot = state_.Current();
    mix_->Observe(pod.shape);
    engine_->Follow(snapshot);
    const std::vector<NodeIndex> best = engine_->Best(snapshot, pod.shape);
    BERTH_CHECK(!best.empty());
    const auto placement = engine_->PlaceOn(snapshot, pod.shape, best.front());
    BERTH_CHECK(state_.Reserve(pod, *placement, Instant::max()).has_value());
    running_.emplace_back(pod.id.uid, gpus);
    held_ += gpus;
  }

  void Leave() {
    const ClusterEvent gone = PodGone{running_.front().first};
    BERTH_CHECK(state_.Apply(std::span(&gone, 1)).has_value());
    held_ -= running_.front().second;
    running_.pop_front();
  }

 private:
  static NodeSpec NodeOf(int number) {
    NodeSpec node;
    node.name = "n" + std::to_string(number);
    node.cpu_milli = 128'000;
    node.memory_bytes = std::int64_t{1} << 40;
    node.gpu_model = "A100";
    node.gpus.assign(kGpusOfNode, GpuSpec{"", 81'920, true});
    const int sort = number % 3;
    if (sort == 0) node.traits = {"family=rdma", "nvlink", "nvme", "rdma"};
    if (sort == 1) node.traits = {"family=plain", "nvme"};
    if (sort == 2) node.traits = {"family=spot", "spot"};
    node.gpu_price = sort == 2 ? 1 : 4 - sort;
    return node;
  }

  const bool alike_;
  replay::PerWorkClass<NodeWishes> wishes_;  // empty ones: no classes
  const std::shared_ptr<LearnedMix> mix_ = std::make_shared<LearnedMix>(LearningParameters{});
  const std::shared_ptr<Engine> engine_ =
      Engine::Create({*FindBuiltinProfile("expected-waste"), {}, mix_}).value();
  ClusterState state_;
  Random random_{1};
  std::deque<std::pair<std::string, int>> running_;  // UID and GPUs
  int held_ = 0;
  std::size_t next_ = 0;
};

void BM_Classes_Decision(benchmark::State& state, bool with_wishes, bool alike) {
  ClassChurn churn(with_wishes, alike);
  for (auto _ : state) {
    state.PauseTiming();
    churn.Leave();
    state.ResumeTiming();
    churn.Place();
  }
}
BENCHMARK_CAPTURE(BM_Classes_Decision, none, false, false)->Iterations(10000);
BENCHMARK_CAPTURE(BM_Classes_Decision, classes, true, false)->Iterations(10000);
BENCHMARK_CAPTURE(BM_Classes_Decision, none_alike, false, true)->Iterations(10000);
BENCHMARK_CAPTURE(BM_Classes_Decision, classes_alike, true, true)->Iterations(10000);

}  // namespace
}  // namespace berth
