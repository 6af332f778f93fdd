// SPDX-License-Identifier: Apache-2.0
//
// What is kept for pods that wait: a look after one pod has ended, which a request does, and one at
// all nodes, which a thread beside them does every five seconds. 5,000 nodes of 8 GPUs, all taken
// by pods of two that say when they end; six gangs and 500 pods of eight GPUs wait.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "bench/lab/micro/churn.h"
#include "scoring/earmarks/earmark_line.h"

namespace berth::micro {
namespace {

using std::chrono::seconds;

constexpr int kPods = 500, kGangs = 6, kMembers = 32, kNamespaces = 20;
constexpr seconds kDay{86'400};

PodRequest Asking(const std::string& name, int gpus, int shape) {
  PodRequest pod;
  pod.id = {"uid-" + name, "team-" + std::to_string(shape % kNamespaces), name};
  pod.shape.gpus = WholeGpus{gpus};
  pod.shape.cpu_milli = 8'000 + shape % 16 * 100;
  pod.shape.memory_bytes = std::int64_t{16} << 30;
  return pod;
}

class Waiting {
 public:
  Waiting() {
    Random random(5);
    std::vector<std::shared_ptr<const Node>> nodes;
    for (int i = 0; i < kNodes; ++i) nodes.push_back(Full(i, random));
    snapshot_ = std::make_shared<const Snapshot>(nodes);
    for (int i = 0; i < kPods; ++i) {
      Stand({std::make_shared<const PodRequest>(Asking("p" + std::to_string(i), 8, i))});
    }
    for (int i = 0; i < kGangs; ++i) Stand(Gang(i));
  }

  // One pod ends.
  void ChangeOne() {
    const auto node = static_cast<NodeIndex>(next_++ * 7919 % kNodes);
    Node without = snapshot_->node(node).Without(
        [](const PodRecord& held) { return held.placement.grants.front().gpu == 0; });
    snapshot_ = std::make_shared<const Snapshot>(
        snapshot_->With(node, std::make_shared<const Node>(std::move(without))));
  }
  void Pass(Duration time) { now_ += time; }
  void Look(EarmarkLine::Scope scope) {
    line_.Look(snapshot_, {25, std::chrono::minutes(15)},
               {now_, WallTime(kDay) + now_.time_since_epoch()}, {}, scope);
  }

 private:
  static std::shared_ptr<const Node> Full(int number, Random& random) {
    auto node = std::make_shared<Node>(std::make_shared<const NodeSpec>(NodeOf8Gpus(number)));
    for (int gpu = 0; gpu < kGpusPerNode; gpu += 2) {
      PodRecord record;
      record.pod = Asking("r" + std::to_string(number) + "-" + std::to_string(gpu), 2, number);
      record.pod.expected_seconds = 3'600 + static_cast<std::int64_t>(random.Below(86'400));
      record.life.started = WallTime(kDay);
      record.life.completes = true;
      record.placement.grants = {{gpu, kMilliPerGpu, 0}, {gpu + 1, kMilliPerGpu, 0}};
      record.placement.cpu_milli = record.pod.shape.cpu_milli;
      record.placement.memory_bytes = record.pod.shape.memory_bytes;
      node->Put(std::make_shared<const PodRecord>(std::move(record)));
    }
    return node;
  }
  static std::vector<std::shared_ptr<const PodRequest>> Gang(int number) {
    std::vector<std::shared_ptr<const PodRequest>> members;
    for (int i = 0; i < kMembers; ++i) {
      PodRequest pod = Asking("g" + std::to_string(number) + "-" + std::to_string(i), 8, number);
      pod.gang.id = GangId::Of("ns/g" + std::to_string(number));
      members.push_back(std::make_shared<const PodRequest>(std::move(pod)));
    }
    return members;
  }
  void Stand(std::vector<std::shared_ptr<const PodRequest>> pods) {
    line_.Stand({std::move(pods), WallTime(seconds(stood_++))}, snapshot_, now_);
  }

  std::shared_ptr<const Snapshot> snapshot_;
  EarmarkLine line_;
  Instant now_{seconds(1)};
  int stood_ = 0;
  std::size_t next_ = 0;
};

void BM_Earmarks_LookOfARequest(benchmark::State& state) {
  Waiting waiting;
  waiting.Look(EarmarkLine::Scope::kAll);
  double worst_us = 0;
  for (auto _ : state) {
    state.PauseTiming();
    waiting.ChangeOne();
    state.ResumeTiming();
    const auto before = std::chrono::steady_clock::now();
    waiting.Look(EarmarkLine::Scope::kChanges);
    const std::chrono::duration<double, std::micro> took =
        std::chrono::steady_clock::now() - before;
    worst_us = std::max(worst_us, took.count());
  }
  state.counters["worst_us"] = worst_us;
}
BENCHMARK(BM_Earmarks_LookOfARequest)->Iterations(2000)->Unit(benchmark::kMicrosecond);

// Nothing is reserved yet, for any shape.
void BM_Earmarks_FirstLook(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    auto waiting = std::make_unique<Waiting>();
    state.ResumeTiming();
    waiting->Look(EarmarkLine::Scope::kAll);
    state.PauseTiming();
    waiting.reset();
    state.ResumeTiming();
  }
}
BENCHMARK(BM_Earmarks_FirstLook)->Iterations(5)->Unit(benchmark::kMillisecond);

void BM_Earmarks_LookAtAllNodes(benchmark::State& state) {
  Waiting waiting;
  waiting.Look(EarmarkLine::Scope::kAll);
  for (auto _ : state) {
    waiting.Pass(EarmarkLine::kBetweenScans);
    waiting.Look(EarmarkLine::Scope::kAll);
  }
}
BENCHMARK(BM_Earmarks_LookAtAllNodes)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace berth::micro
