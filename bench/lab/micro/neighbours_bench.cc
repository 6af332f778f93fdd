// SPDX-License-Identifier: Apache-2.0
//
// One decision for a pod that is to be near or far from the pods of its service, or beside a NIC,
// and for one that does not mind: eight services on machines with NVSwitches, two GPUs and a NIC
// under each PCIe root.
#include "bench/lab/micro/churn.h"
#include "topology/links/link_matrix.h"

namespace berth::micro {
namespace {

constexpr int kServices = 8;

LinkMatrix SwitchedPairs() {
  LinkMatrix matrix =
      *MakeLinkMatrix({"0", "1", "2", "3", "4", "5", "6", "7"}, {"a", "b", "c", "d"});
  for (int gpu = 0; gpu < kGpusPerNode; ++gpu) {
    matrix.numa_affinity[static_cast<std::size_t>(gpu)] = gpu < kGpusPerNode / 2 ? "0" : "1";
    for (int other = 0; other < kGpusPerNode; ++other) {
      if (other != gpu) matrix.link(gpu, other) = {LinkType::kUnknown, LinkType::kNvlink, 18};
    }
    for (int nic = 0; nic < 4; ++nic) {
      const LinkType relation = nic == gpu / 2 ? LinkType::kPxb : LinkType::kSys;
      matrix.link(gpu, kGpusPerNode + nic).pcie = matrix.link(kGpusPerNode + nic, gpu).pcie =
          relation;
    }
  }
  return matrix;
}

enum class Minds { kNothing, kFar, kNear, kNic };

void BM_Neighbours_Decision(benchmark::State& state, Minds minds) {
  WiringTables tables;
  const LinkMatrix matrix = SwitchedPairs();
  const GpuLinks links(matrix, SpeedsFor(matrix), {LinkSource::kNode, "bench"}, tables);
  const auto make = [&links](int number) {
    NodeSpec node = NodeOf8Gpus(number);
    node.links = links;
    return node;
  };
  Churn churn(make, [minds](Random& random, PodRequest& pod) {
    const int service = static_cast<int>(random.Below(kServices));
    const std::string name = "s" + std::to_string(service);
    pod.shape.cpu_milli = 1'000 * (service + 1);
    pod.shape.gpus = WholeGpus{1};
    pod.labels = std::make_shared<const Labels>(Labels{{"service", name}});
    const LabelSelector own = {{"service", LabelOperator::kIn, {name}}};
    if (minds == Minds::kFar) pod.shape.neighbours.far = own;
    if (minds == Minds::kNear) pod.shape.neighbours.near = own;
    pod.shape.beside_nic = minds == Minds::kNic;
  });
  churn.Measure(state);
}
BENCHMARK_CAPTURE(BM_Neighbours_Decision, none, Minds::kNothing)->Iterations(10000);
BENCHMARK_CAPTURE(BM_Neighbours_Decision, far, Minds::kFar)->Iterations(10000);
BENCHMARK_CAPTURE(BM_Neighbours_Decision, near, Minds::kNear)->Iterations(10000);
BENCHMARK_CAPTURE(BM_Neighbours_Decision, nic, Minds::kNic)->Iterations(10000);

}  // namespace
}  // namespace berth::micro
