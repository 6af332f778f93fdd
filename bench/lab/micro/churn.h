// SPDX-License-Identifier: Apache-2.0
//
// Churn: decisions by the default policy on 5,000 nodes of 8 GPUs that pods of the same kind have
// filled to half, with departures that keep them there.
#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "cluster/state/cluster_state.h"
#include "scoring/engine/engine.h"
#include "scoring/registry.h"

namespace berth::micro {

constexpr int kNodes = 5'000, kGpusPerNode = 8;
constexpr std::int64_t kGpuMib = 80 * 1024;

inline NodeSpec NodeOf8Gpus(int number) {
  NodeSpec node;
  node.name = "n" + std::to_string(number);
  node.cpu_milli = 128'000;
  node.memory_bytes = std::int64_t{1} << 40;
  node.gpu_model = "A100";
  node.gpus.assign(kGpusPerNode, GpuSpec{"", kGpuMib, true});
  return node;
}

class Churn {
 public:
  using MakeNode = std::function<NodeSpec(int number)>;
  using Ask = std::function<void(Random& random, PodRequest& pod)>;  // sets all but the ID

  Churn(const MakeNode& make, Ask ask) : ask_(std::move(ask)) {
    std::vector<ClusterEvent> events;
    for (int i = 0; i < kNodes; ++i) events.emplace_back(NodeUpserted{make(i)});
    BERTH_CHECK(state_.Apply(events).has_value());
    constexpr std::int64_t kHalf = std::int64_t{kNodes} * kGpusPerNode * kMilliPerGpu / 2;
    while (held_ < kHalf) Place();
  }

  // One decision per iteration.
  void Measure(benchmark::State& state) {
    for (auto _ : state) {
      state.PauseTiming();
      Leave();
      state.ResumeTiming();
      Place();
    }
  }

 private:
  void Place() {
    PodRequest pod;
    pod.id.uid = "uid-" + std::to_string(next_++);
    pod.shape.memory_bytes = std::int64_t{4} << 30;
    ask_(random_, pod);
    const auto snapshot = state_.Current();
    mix_->Observe(pod.shape);
    engine_->Follow(snapshot);
    const std::vector<NodeIndex> best = engine_->Best(snapshot, pod.shape);
    BERTH_CHECK(!best.empty());
    const auto placement = engine_->PlaceOn(snapshot, pod.shape, best.front());
    std::int64_t milli = 0;
    for (const DeviceGrant& grant : placement->grants) milli += grant.milli;
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

  const Ask ask_;
  const std::shared_ptr<LearnedMix> mix_ = std::make_shared<LearnedMix>(LearningParameters{});
  const std::shared_ptr<Engine> engine_ =
      Engine::Create({*FindBuiltinProfile("expected-waste"), {}, mix_}).value();
  ClusterState state_;
  Random random_{1};
  std::deque<std::pair<std::string, std::int64_t>> running_;  // UID and milli
  std::int64_t held_ = 0;
  std::size_t next_ = 0;
};

}  // namespace berth::micro
