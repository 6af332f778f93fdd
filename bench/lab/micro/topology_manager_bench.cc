// SPDX-License-Identifier: Apache-2.0
//
// One decision on machines whose kubelets have a Topology Manager policy, and on those without:
// four GPUs on each of two NUMA nodes, pods of 1, 2 and 4 GPUs in one container and in two.
#include "bench/lab/micro/churn.h"
#include "topology/links/link_matrix.h"

namespace berth::micro {
namespace {

LinkMatrix TwoSockets() {
  LinkMatrix matrix = *MakeLinkMatrix({"0", "1", "2", "3", "4", "5", "6", "7"}, {});
  for (int gpu = 0; gpu < kGpusPerNode; ++gpu) {
    matrix.numa_affinity[static_cast<std::size_t>(gpu)] = gpu < kGpusPerNode / 2 ? "0" : "1";
    for (int other = 0; other < kGpusPerNode; ++other) {
      const bool near = (gpu < kGpusPerNode / 2) == (other < kGpusPerNode / 2);
      if (other != gpu) matrix.link(gpu, other).pcie = near ? LinkType::kNode : LinkType::kSys;
    }
  }
  return matrix;
}

void BM_TopologyManager_Decision(benchmark::State& state, TopologyPolicy policy, int containers) {
  WiringTables tables;
  const LinkMatrix matrix = TwoSockets();
  const GpuLinks links(matrix, SpeedsFor(matrix), {LinkSource::kNode, "bench"}, tables);
  const auto make = [&links, policy](int number) {
    NodeSpec node = NodeOf8Gpus(number);
    node.links = links;
    node.topology_manager = {policy, false};
    return node;
  };
  Churn churn(make, [containers](Random& random, PodRequest& pod) {
    const int each = 1 << random.Below(containers == 1 ? 3 : 2);
    pod.shape.cpu_milli = 1'000;
    pod.shape.gpus = WholeGpus{each * containers};
    if (containers == 1) return;
    for (int i = 0; i < containers; ++i) pod.shape.gpu_steps.push_back({each, false});
  });
  churn.Measure(state);
}
BENCHMARK_CAPTURE(BM_TopologyManager_Decision, none, TopologyPolicy::kNone, 1)->Iterations(10000);
BENCHMARK_CAPTURE(BM_TopologyManager_Decision, restricted, TopologyPolicy::kRestricted, 1)
    ->Iterations(10000);
BENCHMARK_CAPTURE(BM_TopologyManager_Decision, single, TopologyPolicy::kSingleNumaNode, 1)
    ->Iterations(10000);
BENCHMARK_CAPTURE(BM_TopologyManager_Decision, two_containers, TopologyPolicy::kNone, 2)
    ->Iterations(10000);
BENCHMARK_CAPTURE(BM_TopologyManager_Decision, single_two_containers,
                  TopologyPolicy::kSingleNumaNode, 2)
    ->Iterations(10000);

}  // namespace
}  // namespace berth::micro
