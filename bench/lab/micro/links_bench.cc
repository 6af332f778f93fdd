// SPDX-License-Identifier: Apache-2.0
//
// Decisions of the engine on nodes with known links: 5,000 nodes with 8 GPUs of four wirings, half
// of the GPUs taken, compared with the same nodes without known links.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "cluster/node/mig_library.h"
#include "cluster/state/cluster_state.h"
#include "scoring/engine/engine.h"
#include "scoring/registry.h"

namespace berth {
namespace {

constexpr int kGpus = 8;

// NVLinks of each pair, as digits (c: 12); the rest is PCIe. A cube mesh, four bridges, three.
constexpr const char* kMachines[][kGpus] = {{"01122000", "10210200", "12020010", "21200001",
                                             "20000112", "02001021", "00101202", "00012120"},
                                            {"0c000000", "c0000000", "000c0000", "00c00000",
                                             "00000c00", "0000c000", "0000000c", "000000c0"},
                                            {"0c000000", "c0000000", "000c0000", "00c00000",
                                             "00000000", "00000000", "0000000c", "000000c0"}};

// The fourth is the first with its GPUs in another order.
LinkMatrix Machine(std::size_t kind) {
  std::vector<std::string> names;
  for (int gpu = 0; gpu < kGpus; ++gpu) names.push_back("GPU" + std::to_string(gpu));
  LinkMatrix matrix = *MakeLinkMatrix(std::move(names), {});
  for (int a = 0; a < kGpus; ++a) {
    matrix.numa_affinity[static_cast<std::size_t>(a)] = a < kGpus / 2 ? "0" : "1";
    for (int b = 0; b < kGpus; ++b) {
      if (a == b) continue;
      const bool one_socket = a / 4 == b / 4;
      const char links = kind < 3 ? kMachines[kind][a][b] : kMachines[0][a ^ 3][b ^ 3];
      matrix.link(a, b).pcie = one_socket ? LinkType::kNode : LinkType::kSys;
      if (links == '0') continue;
      matrix.link(a, b).fabric = LinkType::kNvlink;
      matrix.link(a, b).fabric_links = static_cast<std::uint8_t>(links == 'c' ? 12 : links - '0');
    }
  }
  return matrix;
}

class LinkedCluster {
 public:
  LinkedCluster(std::string_view policy, int nodes, bool linked)
      : engine_(*BuildProfile(*FindBuiltinProfile(policy), {{Shape(2), 1}})) {
    std::vector<ClusterEvent> events;
    for (int i = 0; i < nodes; ++i) {
      NodeSpec spec;
      spec.name = "n" + std::to_string(i);
      spec.cpu_milli = 128'000;
      spec.memory_bytes = std::int64_t{1} << 40;
      spec.gpus.assign(kGpus, GpuSpec{"", 80'000, true});
      if (linked)
        spec.links = library_.LinksOf(Machine(random_.Below(4)), "", {LinkSource::kNode, "bench"});
      events.emplace_back(NodeUpserted{std::move(spec)});
    }
    BERTH_CHECK(state_.Apply(events).has_value());
    candidates_.resize(state_.Current()->size());
    std::iota(candidates_.begin(), candidates_.end(), NodeIndex{0});
    while (static_cast<int>(running_.size()) < nodes * kGpus / 4) Place(2);
  }

  static RequestShape Shape(int gpus) {
    RequestShape shape;
    shape.cpu_milli = 1000;
    shape.gpus = WholeGpus{gpus};
    return shape;
  }

  // One pod goes and one comes, each to a random node.
  void Change() {
    const ClusterEvent gone = PodGone{running_.front()};
    BERTH_CHECK(state_.Apply(std::span(&gone, 1)).has_value());
    running_.pop_front();
    Place(2);
  }

  // One decision after one change: the engine's part of filter and prioritize.
  void Decide(const RequestShape& shape) {
    const auto snapshot = state_.Current();
    benchmark::DoNotOptimize(engine_.Filter(snapshot, shape, candidates_));
    benchmark::DoNotOptimize(engine_.Prioritize(snapshot, shape, candidates_));
  }
  // The engine's part of bind.
  void Pick(const RequestShape& shape) {
    benchmark::DoNotOptimize(engine_.PlaceOn(state_.Current(), shape, 0));
  }

 private:
  void Place(int gpus) {
    const auto snapshot = state_.Current();
    for (;;) {
      const auto node = static_cast<NodeIndex>(random_.Below(candidates_.size()));
      const auto placement = engine_.PlaceOn(snapshot, Shape(gpus), node);
      if (!placement) continue;
      PodRequest pod;
      pod.id.uid = std::to_string(next_++);
      pod.shape = Shape(gpus);
      BERTH_CHECK(state_.Reserve(pod, *placement, Instant::max()).has_value());
      running_.push_back(pod.id.uid);
      return;
    }
  }

  LinkLibrary library_;
  Engine engine_;
  ClusterState state_;
  Random random_{7};
  std::vector<NodeIndex> candidates_;
  std::deque<std::string> running_;
  std::size_t next_ = 0;
};

// Percentiles of the time of each call, in microseconds.
void Report(benchmark::State& state, std::vector<double>& times) {
  std::ranges::sort(times);
  state.counters["p50_us"] = times[times.size() / 2];
  state.counters["p99_us"] = times[times.size() * 99 / 100];
}

template <class Call>
void Measure(benchmark::State& state, LinkedCluster& cluster, Call call) {
  for (int i = 0; i < 1000; ++i) {
    cluster.Change();
    call();
  }
  std::vector<double> times;
  for (auto _ : state) {
    state.PauseTiming();
    cluster.Change();
    state.ResumeTiming();
    const auto start = std::chrono::steady_clock::now();
    call();
    times.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
            .count());
  }
  Report(state, times);
}

void BM_DecideOverLinkedNodes(benchmark::State& state, std::string_view policy, bool linked) {
  LinkedCluster cluster(policy, 5000, linked);
  const RequestShape shape = LinkedCluster::Shape(static_cast<int>(state.range(0)));
  Measure(state, cluster, [&] { cluster.Decide(shape); });
}
BENCHMARK_CAPTURE(BM_DecideOverLinkedNodes, best_fit_links, "best-fit", true)
    ->Arg(2)
    ->Arg(4)
    ->Iterations(5000);
BENCHMARK_CAPTURE(BM_DecideOverLinkedNodes, best_fit_no_links, "best-fit", false)
    ->Arg(2)
    ->Arg(4)
    ->Iterations(5000);
BENCHMARK_CAPTURE(BM_DecideOverLinkedNodes, spreading_links, "spreading", true)
    ->Arg(4)
    ->Iterations(5000);
BENCHMARK_CAPTURE(BM_DecideOverLinkedNodes, first_fit_links, "first-fit", true)
    ->Arg(4)
    ->Iterations(5000);
BENCHMARK_CAPTURE(BM_DecideOverLinkedNodes, first_fit_no_links, "first-fit", false)
    ->Arg(4)
    ->Iterations(5000);

// One node, whose GPUs change before every pick.
void BM_PickOnOneLinkedNode(benchmark::State& state, bool linked, bool asks) {
  LinkedCluster cluster("best-fit", 1, linked);
  RequestShape shape = LinkedCluster::Shape(static_cast<int>(state.range(0)));
  if (asks) shape.links = {.pattern = LinkPattern::kAllToAll};
  Measure(state, cluster, [&] { cluster.Pick(shape); });
}
BENCHMARK_CAPTURE(BM_PickOnOneLinkedNode, links, true, false)->Arg(1)->Arg(2)->Arg(4);
BENCHMARK_CAPTURE(BM_PickOnOneLinkedNode, links_and_a_pattern, true, true)->Arg(2)->Arg(4);
BENCHMARK_CAPTURE(BM_PickOnOneLinkedNode, no_links, false, false)->Arg(1)->Arg(2)->Arg(4);

}  // namespace
}  // namespace berth
