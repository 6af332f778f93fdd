// SPDX-License-Identifier: Apache-2.0
//
// What it takes to explain one pod on 5,000 nodes of 8 GPUs that are nearly full: a pod a GPU, at
// most four GPUs idle, racks of 16, every tenth node tainted, links known.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "bench/machine_files/topo_text.h"
#include "cluster/node/mig_library.h"
#include "cluster/state/cluster_state.h"
#include "cluster/state/snapshot.h"
#include "scoring/explain/explain_pod.h"
#include "scoring/registry.h"

namespace berth {
namespace {

constexpr int kNodes = 5000, kGpus = 8;

PodRequest Pod(const std::string& uid, int gpus, int priority = 0) {
  PodRequest pod;
  pod.id = {uid, "default", uid};
  pod.shape.cpu_milli = 4000;
  pod.shape.memory_bytes = std::int64_t{16} << 30;
  pod.shape.gpus = WholeGpus{gpus};
  pod.priority = priority;
  return pod;
}

// Two sockets of four GPUs, each four with NVLink.
LinkMatrix TwoIslands() {
  std::string text = "      ";
  for (int gpu = 0; gpu < kGpus; ++gpu) text += " GPU" + std::to_string(gpu);
  text += " NUMA\n";
  for (int row = 0; row < kGpus; ++row) {
    text += "GPU" + std::to_string(row);
    for (int column = 0; column < kGpus; ++column) {
      text += row == column ? " X" : row / 4 == column / 4 ? " NV4" : " SYS";
    }
    text += " " + std::to_string(row / 4) + "\n";
  }
  return ParseTopoText(text).value();
}

struct Cluster {
  Cluster() {
    LinkLibrary links;
    const GpuLinks of_node = links.LinksOf(TwoIslands(), "", {LinkSource::kNode, "bench"});
    Random random(7);
    std::vector<ClusterEvent> events;
    for (int node = 0; node < kNodes; ++node) {
      NodeSpec spec;
      spec.name = "n" + std::to_string(10'000 + node);
      spec.gpu_model = node % 3 == 0 ? "H100" : "A100";
      spec.cpu_milli = 128'000;
      spec.memory_bytes = std::int64_t{1} << 40;
      spec.gpus.assign(kGpus, GpuSpec{"", 81'920, true});
      spec.links = of_node;
      spec.labels = {{"rack", "r" + std::to_string(node / 16)}};
      if (node % 10 == 0) spec.taints.push_back({"dedicated", "x", TaintEffect::kNoSchedule});
      const int idle = static_cast<int>(random.Below(5));  // so many stay idle, anywhere
      for (int gpu = idle / 2; gpu < kGpus - (idle + 1) / 2; ++gpu) {
        const std::string name = spec.name + "-" + std::to_string(gpu);
        const Placement placement{
            spec.name, 4000, std::int64_t{16} << 30, {{gpu, kMilliPerGpu, 81'920}}};
        events.emplace_back(PodBound{Pod(name, 1, static_cast<int>(random.Below(3))), placement});
      }
      events.emplace_back(NodeUpserted{std::move(spec)});
    }
    BERTH_CHECK(state.Apply(events).has_value());
    tree = domains.Of(state.Current());
  }

  ClusterState state;
  NodeDomains domains{{{"rack", {"rack"}}}};
  std::shared_ptr<const DomainTree> tree;
};

const Cluster& TheCluster() {
  static const Cluster cluster;
  return cluster;
}

enum class Kind { kEight, kLinked, kDomain, kPriority, kFits, kBound };

PodRequest PodOf(Kind kind) {
  PodRequest pod = Pod("asked", 8);
  pod.shape.models = {"A100", "H100"};
  if (kind == Kind::kLinked) {
    pod.shape.gpus = WholeGpus{4};
    pod.shape.links = {.link = LinkWish::kRequired, .numa = NumaWish::kRequired};
    pod.shape.links.min_megabytes_per_s = 50'000;
  }
  if (kind == Kind::kDomain) pod.domain.required = 0;
  if (kind == Kind::kPriority) pod.priority = 2;
  if (kind == Kind::kFits) pod.shape.gpus = WholeGpus{1};
  if (kind == Kind::kBound) pod = Pod("n12500-4", 1);
  return pod;
}

void Explain(benchmark::State& state, Kind kind) {
  const Cluster& cluster = TheCluster();
  const std::shared_ptr<const Snapshot> snapshot = cluster.state.Current();
  const auto engine = Engine::Create({.spec = *FindBuiltinProfile("expected-waste"),
                                      .waste = {},
                                      .mix = nullptr,
                                      .fixed = std::make_shared<const RequestMix>(RequestMix{
                                          {Pod("a", 1).shape, 0.75}, {Pod("b", 8).shape, 0.25}})},
                                     *snapshot)
                          .value();
  const PodRequest pod = PodOf(kind);
  const EvictionLimits limits{{}, [](const GangId&) { return std::size_t{0}; }};
  GroupPlaces group;
  if (kind == Kind::kDomain) group.tree = cluster.tree;
  bool fits = false;
  for (auto _ : state) {
    const PodExplanation told =
        ExplainPod(*engine, {.snapshot = snapshot, .pod = pod, .group = group, .limits = limits});
    fits = told.fitting > 0;
    benchmark::DoNotOptimize(told);
  }
  BERTH_CHECK(fits == (kind == Kind::kFits || kind == Kind::kBound));
}
BENCHMARK_CAPTURE(Explain, eight_gpus, Kind::kEight)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Explain, four_linked_of_one_numa_group, Kind::kLinked)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Explain, eight_in_a_required_rack, Kind::kDomain)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Explain, eight_with_priority, Kind::kPriority)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Explain, fits, Kind::kFits)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Explain, bound, Kind::kBound)->Unit(benchmark::kMillisecond);

void Top(benchmark::State& state) {
  const std::shared_ptr<const Snapshot> snapshot = TheCluster().state.Current();
  for (auto _ : state) benchmark::DoNotOptimize(SummarizeModels(*snapshot));
}
BENCHMARK(Top)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace berth
