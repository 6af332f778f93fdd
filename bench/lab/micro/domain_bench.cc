// SPDX-License-Identifier: Apache-2.0
//
// Domains across nodes: building the tree from labels, choosing a domain, and the extra time of
// filter and prioritize for a pod of a group. Nodes of 8 GPUs with 40 labels each, 18 to a rack,
// 16 racks to a block, 4 blocks to a zone; half of the GPUs are taken.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.h"
#include "cluster/state/snapshot.h"
#include "scoring/groups/group_domains.h"
#include "topology/domains/domain_tree.h"

namespace berth {
namespace {

constexpr std::size_t kLeaf = 4;  // of the default levels

class Fleet {
 public:
  explicit Fleet(std::size_t nodes) {
    Random random(3);
    std::vector<std::shared_ptr<const Node>> built;
    for (std::size_t i = 0; i < nodes; ++i) built.push_back(ANode(i, random));
    snapshot_ = std::make_shared<const Snapshot>(built);
    tree_ = std::make_unique<const DomainTree>(DomainsOf(*snapshot_, levels()));
    all_.resize(nodes);
    std::iota(all_.begin(), all_.end(), NodeIndex{0});
    for (const NodeIndex i : all_)
      room_.push_back(PodsThatFit(snapshot_->node(i), AMember().shape));
  }

  // One GPU; of a group of 64.
  static PodRequest AMember() {
    PodRequest pod;
    pod.id = {"new", "ns", "new"};
    pod.shape.cpu_milli = 1000;
    pod.shape.gpus = WholeGpus{1};
    pod.gang.id = GangId::Of("ns/g");
    pod.gang.total = 64;
    pod.domain.required = kLeaf;
    return pod;
  }
  static const TopologyLevels& levels() { return DefaultTopologyLevels(); }

  [[nodiscard]] const Snapshot& snapshot() const { return *snapshot_; }
  [[nodiscard]] const DomainTree& tree() const { return *tree_; }
  [[nodiscard]] const std::vector<NodeIndex>& all() const { return all_; }
  [[nodiscard]] const std::vector<int>& room() const { return room_; }
  // Where 16 members are that were placed before.
  [[nodiscard]] std::vector<std::string> MemberNodes() const {
    std::vector<std::string> names;
    for (NodeIndex i = 0; i < 16; ++i) names.emplace_back(snapshot_->names().name(i));
    return names;
  }

 private:
  static std::shared_ptr<const Node> ANode(std::size_t i, Random& random) {
    NodeSpec spec;
    const std::string digits = std::to_string(100'000 + i);
    spec.name = "node-" + digits;
    spec.cpu_milli = 128'000;
    spec.memory_bytes = std::int64_t{1} << 40;
    spec.gpus.assign(8, GpuSpec{"", 80'000, true});
    const std::size_t rack = i / 18, block = rack / 16, zone = block / 4;
    spec.labels = {{"cloud.google.com/gce-topology-block", "b" + std::to_string(block)},
                   {"cloud.google.com/gce-topology-subblock", "r" + std::to_string(rack % 16)},
                   {"nvidia.com/gpu.clique", "c" + std::to_string(rack)},
                   {"topology.kubernetes.io/region", "r"},
                   {"topology.kubernetes.io/zone", "z" + std::to_string(zone)}};
    for (int other = 0; other < 35; ++other) {
      spec.labels.emplace_back("feature.node.kubernetes.io/f" + std::to_string(other), "true");
    }
    std::ranges::sort(spec.labels);
    auto node = std::make_shared<Node>(std::make_shared<const NodeSpec>(std::move(spec)));
    PodRecord pod{AMember(), {}, PodState::kBound, {}};
    pod.pod.id.uid = digits;
    if (i >= 16) pod.pod.gang = {};
    for (int gpu = 0; gpu < 8; ++gpu) {
      if (random.Below(2) == 0) pod.placement.grants.push_back({gpu, kMilliPerGpu, 80'000});
    }
    node->Put(std::make_shared<const PodRecord>(std::move(pod)));
    return node;
  }

  std::shared_ptr<const Snapshot> snapshot_;
  std::unique_ptr<const DomainTree> tree_;
  std::vector<NodeIndex> all_;
  std::vector<int> room_;
};

void BM_Domains_TreeFromLabels(benchmark::State& state) {
  const Fleet fleet(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(DomainsOf(fleet.snapshot(), Fleet::levels()));
}
BENCHMARK(BM_Domains_TreeFromLabels)->Arg(1000)->Arg(5000)->Unit(benchmark::kMicrosecond);

void BM_Domains_SumUp(benchmark::State& state) {
  const Fleet fleet(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(fleet.tree().SumUp(fleet.room()));
}
BENCHMARK(BM_Domains_SumUp)->Arg(1000)->Arg(5000)->Unit(benchmark::kMicrosecond);

void BM_Domains_Choose(benchmark::State& state) {
  const Fleet fleet(5000);
  DomainWish wish;
  wish.pods = state.range(0);
  wish.mode = DomainMode::kPreferred;
  wish.level = kLeaf;
  for (auto _ : state) benchmark::DoNotOptimize(ChooseDomains(fleet.tree(), fleet.room(), wish));
}
// Held by a rack, by a block, by the region.
BENCHMARK(BM_Domains_Choose)->Arg(64)->Arg(1000)->Arg(8000)->Unit(benchmark::kMicrosecond);

// The extra time of filter for a required level: first member of a group, later member.
void BM_Domains_Filter(benchmark::State& state) {
  const Fleet fleet(5000);
  const PodRequest pod = Fleet::AMember();
  const std::vector<std::string> names =
      state.range(0) == 0 ? std::vector<std::string>() : fleet.MemberNodes();
  const std::vector<Reason> fits(fleet.all().size(), Reason::kFits);
  for (auto _ : state) {
    std::vector<Reason> reasons = fits;
    const GroupMembers members = MembersOn(fleet.snapshot(), pod, names);
    RequireDomain(fleet.snapshot(), fleet.tree(), pod, members, fleet.all(), reasons);
    benchmark::DoNotOptimize(reasons);
  }
}
BENCHMARK(BM_Domains_Filter)->ArgName("members")->Arg(0)->Arg(16)->Unit(benchmark::kMicrosecond);

// The extra time of prioritize for a group when all nodes are candidates.
void BM_Domains_Pull(benchmark::State& state) {
  const Fleet fleet(5000);
  const PodRequest pod = Fleet::AMember();
  const std::vector<std::string> names = fleet.MemberNodes();
  for (auto _ : state) {
    const GroupMembers members = MembersOn(fleet.snapshot(), pod, names);
    benchmark::DoNotOptimize(PullOf(fleet.snapshot(), fleet.tree(), pod, members, fleet.all()));
  }
}
BENCHMARK(BM_Domains_Pull)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace berth
