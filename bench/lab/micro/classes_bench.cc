// SPDX-License-Identifier: Apache-2.0
//
// One decision for pods of workload classes on nodes of three sorts, beside the same pods without
// classes. Pods of one class ask for other CPU than those of another, or, alike, for the same: the
// classes alone then make three shapes of each.
#include <array>

#include "bench/lab/classes/class_policies.h"
#include "bench/lab/micro/churn.h"

namespace berth::micro {
namespace {

constexpr std::array<int, 4> kGpuCounts = {1, 2, 4, 8};

NodeSpec NodeOfSorts(int number) {
  NodeSpec node = NodeOf8Gpus(number);
  const int sort = number % 3;
  if (sort == 0) node.traits = {"family=rdma", "nvlink", "nvme", "rdma"};
  if (sort == 1) node.traits = {"family=plain", "nvme"};
  if (sort == 2) node.traits = {"family=spot", "spot"};
  node.gpu_price = sort == 2 ? 1 : 4 - sort;
  return node;
}

void BM_Classes_Decision(benchmark::State& state, bool with_wishes, bool alike) {
  replay::PerWorkClass<NodeWishes> wishes;  // empty ones: no classes
  if (with_wishes) wishes = replay::WishesPerWork(replay::BerthWithExample().classes).value();
  Churn churn(NodeOfSorts, [&](Random& random, PodRequest& pod) {
    const int gpus = kGpuCounts[random.Below(kGpuCounts.size())];
    const std::size_t work = random.Below(wishes.size());
    pod.shape.cpu_milli = 1'000 * gpus + (alike ? 0 : 100 * static_cast<int>(work));
    pod.shape.gpus = WholeGpus{gpus};
    pod.shape.nodes = wishes[work];
  });
  churn.Measure(state);
}
BENCHMARK_CAPTURE(BM_Classes_Decision, none, false, false)->Iterations(10000);
BENCHMARK_CAPTURE(BM_Classes_Decision, classes, true, false)->Iterations(10000);
BENCHMARK_CAPTURE(BM_Classes_Decision, none_alike, false, true)->Iterations(10000);
BENCHMARK_CAPTURE(BM_Classes_Decision, classes_alike, true, true)->Iterations(10000);

}  // namespace
}  // namespace berth::micro
