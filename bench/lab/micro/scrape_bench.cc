// SPDX-License-Identifier: Apache-2.0
//
// What it takes to write the text of a scrape: 80 metrics of 6 series, as of any cluster, and with
// metrics.byGpu one with a series per GPU of 5,000 nodes of 8.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <string>
#include <vector>

#include "server/telemetry/metrics.h"

namespace berth {
namespace {

constexpr std::size_t kNodes = 5000, kGpus = 8;

void AddSomeMetrics(MetricsText& text) {
  for (int family = 0; family < 80; ++family) {
    text.Gauge("berth_metric_" + std::to_string(family), "What the metric is, in one sentence");
    for (const char* state : {"a", "b", "c", "d", "e", "f"}) {
      text.Sample(family * 1.25, {{"model", "NVIDIA-H100-80GB-HBM3"}, {"state", state}});
    }
  }
}

// state.range(0): with a series per GPU.
void BM_TextOfAScrape(benchmark::State& state) {
  std::vector<std::string> nodes, uuids;
  for (std::size_t node = 0; node < kNodes; ++node) {
    nodes.push_back("gpu-node-" + std::to_string(10'000 + node));
    for (std::size_t gpu = 0; gpu < kGpus; ++gpu) {
      uuids.push_back("GPU-5d3a1c2e-77a0-4b1c-9a3e-" + std::to_string(1'000'000 + uuids.size()));
    }
  }
  std::size_t bytes = 0;
  for (auto _ : state) {
    MetricsText text;
    AddSomeMetrics(text);
    if (state.range(0) != 0) text.Gauge("berth_gpu_allocated_ratio", "Fraction of the GPU");
    for (std::size_t gpu = 0; state.range(0) != 0 && gpu < uuids.size(); ++gpu) {
      text.Sample(0.25 * static_cast<double>(gpu % 5), {{"node", nodes[gpu / kGpus]},
                                                        {"gpu", std::to_string(gpu % kGpus)},
                                                        {"uuid", uuids[gpu]}});
    }
    const std::string written = text.Take();
    bytes = written.size();
    benchmark::DoNotOptimize(written.data());
  }
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(BM_TextOfAScrape)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace berth
