// SPDX-License-Identifier: Apache-2.0
//
// One decision for a pod with a share of a GPU, beside one for a whole GPU.
#include "bench/lab/micro/churn.h"

namespace berth::micro {
namespace {

constexpr int kShapes = 8;

// The shapes of a kind; all kinds have as many, and ask for as much CPU.
using AskOf = GpuAsk (*)(int shape);
GpuAsk Whole(int) { return WholeGpus{1}; }
GpuAsk ByCompute(int shape) { return GpuShare{100 * (shape + 1), 0}; }
GpuAsk ByMemory(int shape) { return GpuShare{0, kGpuMib * (shape + 1) / 10}; }
GpuAsk ByBoth(int shape) { return GpuShare{100 * (shape + 1), kGpuMib * (kShapes - shape) / 10}; }

void BM_Shares_Decision(benchmark::State& state, AskOf ask) {
  Churn churn(NodeOf8Gpus, [ask](Random& random, PodRequest& pod) {
    const int shape = static_cast<int>(random.Below(kShapes));
    pod.shape.cpu_milli = 1'000 * (shape + 1);
    pod.shape.gpus = ask(shape);
  });
  churn.Measure(state);
}
BENCHMARK_CAPTURE(BM_Shares_Decision, whole, Whole)->Iterations(10000);
BENCHMARK_CAPTURE(BM_Shares_Decision, by_compute, ByCompute)->Iterations(10000);
BENCHMARK_CAPTURE(BM_Shares_Decision, by_memory, ByMemory)->Iterations(10000);
BENCHMARK_CAPTURE(BM_Shares_Decision, by_both, ByBoth)->Iterations(10000);

}  // namespace
}  // namespace berth::micro
