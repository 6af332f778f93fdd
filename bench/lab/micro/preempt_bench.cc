// SPDX-License-Identifier: Apache-2.0
//
// One preempt call over 100 candidate nodes of 8 GPUs, and filter on full nodes.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "base/check.h"
#include "cluster/state/cluster_state.h"
#include "scoring/victims.h"

namespace berth {
namespace {

constexpr int kNodes = 100, kGpus = 8;

PodRequest Pod(const std::string& uid, int gpus, int priority) {
  PodRequest pod;
  pod.id = {uid, "default", uid};
  pod.shape.cpu_milli = 4000;
  pod.shape.gpus = WholeGpus{gpus};
  pod.priority = priority;
  return pod;
}

std::string NameOf(int node, int gpu) {
  return "n" + std::to_string(node) + "-" + std::to_string(gpu);
}

// Every GPU is held by a pod of its own, the odd ones by pods of high priority.
std::shared_ptr<const Snapshot> FullCluster(int low_priority, int high_priority) {
  ClusterState state;
  std::vector<ClusterEvent> events;
  for (int node = 0; node < kNodes; ++node) {
    NodeSpec spec;
    spec.name = "n" + std::to_string(node);
    spec.cpu_milli = 128'000;
    spec.gpus.assign(kGpus, GpuSpec{"", 81'920, true});
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      const Placement placement{spec.name, 4000, 0, {{gpu, 1000, 81'920}}};
      const int priority = gpu % 2 == 0 ? low_priority : high_priority;
      events.emplace_back(PodBound{Pod(NameOf(node, gpu), 1, priority), placement});
    }
    events.emplace_back(NodeUpserted{std::move(spec)});
  }
  BERTH_CHECK(state.Apply(events).has_value());
  return state.Current();
}

void Preempt(benchmark::State& state, int wanted, int low_priority, int high_priority, bool given,
             bool found) {
  const auto snapshot = FullCluster(low_priority, high_priority);
  const PodRequest pod = Pod("preemptor", wanted, 50);
  const EvictionLimits limits{{}, [](const GangId&) { return std::size_t{0}; }};
  for (auto _ : state) {
    for (NodeIndex i = 0; i < snapshot->size(); ++i) {
      std::vector<std::string> victims;
      if (given) victims.push_back(snapshot->node(i).spec().name + "-0");
      const auto added = AddedVictims(snapshot->node(i), pod, victims, limits);
      BERTH_CHECK(added.has_value() == found);
      benchmark::DoNotOptimize(added);
    }
  }
}
// Vetoes: nobody may be evicted / all that may be evicted is not enough / with a given victim.
BENCHMARK_CAPTURE(Preempt, veto_by_priority, 4, 50, 90, false, false);
BENCHMARK_CAPTURE(Preempt, veto_of_too_few, 5, 1, 90, false, false);
BENCHMARK_CAPTURE(Preempt, veto_beside_a_given_victim, 5, 1, 90, true, false);
// Four of eight GPUs: 70 sets of GPUs, or with a given victim 35.
BENCHMARK_CAPTURE(Preempt, four_of_eight, 4, 1, 1, false, true);
BENCHMARK_CAPTURE(Preempt, four_of_eight_beside_a_given_victim, 4, 1, 1, true, true);

void FilterFull(benchmark::State& state, int priority) {
  const auto snapshot = FullCluster(1, 90);
  const PodRequest pod = Pod("p", 8, priority);
  for (auto _ : state) {
    for (NodeIndex i = 0; i < snapshot->size(); ++i) {
      benchmark::DoNotOptimize(AfterEvictions(snapshot->node(i), pod, Reason::kGpusBusy));
    }
  }
}
BENCHMARK_CAPTURE(FilterFull, nobody_of_lower_priority, 1);
BENCHMARK_CAPTURE(FilterFull, some_of_lower_priority, 50);

}  // namespace
}  // namespace berth
