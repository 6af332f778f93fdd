// SPDX-License-Identifier: Apache-2.0
//
// Gangs: a plan for all members at once, and a step of the transaction on which it thinks. 5,000
// nodes of 8 GPUs, 18 to a rack, 16 racks to a block; two fifths of the nodes are idle, the others
// have one to eight GPUs taken.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "cluster/state/snapshot.h"
#include "scoring/gangs/gang_plan.h"
#include "scoring/registry.h"

namespace berth {
namespace {

constexpr std::size_t kNodes = 5000;
const TopologyLevels kLevels = {{"block", {"block"}}, {"rack", {"rack"}}};

RequestShape Asking(int gpus, std::int64_t cpu_milli) {
  RequestShape shape;
  shape.cpu_milli = cpu_milli;
  shape.gpus = WholeGpus{gpus};
  return shape;
}

class Fleet {
 public:
  Fleet() {
    Random random(3);
    std::vector<std::shared_ptr<const Node>> built;
    for (std::size_t i = 0; i < kNodes; ++i) built.push_back(ANode(i, random));
    snapshot_ = std::make_shared<const Snapshot>(built);
    tree_ = std::make_unique<const DomainTree>(DomainsOf(*snapshot_, kLevels));
    RequestMix mix;
    for (const int gpus : {1, 2, 4, 8}) mix.push_back({Asking(gpus, 4000 * gpus), 0.25});
    Engine::Learning learning{*FindBuiltinProfile("expected-waste"), {}, nullptr, nullptr};
    learning.fixed = std::make_shared<const RequestMix>(mix);
    engine_ = Engine::Create(std::move(learning), *snapshot_).value();
  }

  [[nodiscard]] Planning planning() { return {snapshot_, *tree_, *engine_, room_}; }
  [[nodiscard]] const std::shared_ptr<const Snapshot>& snapshot() const { return snapshot_; }

  static GangAsk Gang(int members, int gpus, int classes, std::int64_t cpu_milli = 4000) {
    GangAsk ask;
    ask.minimum = members;
    for (int i = 0; i < members; ++i) {
      GangMember member;
      member.rank = i;
      member.pod.id = {"uid-" + std::to_string(i), "ns", "m-" + std::to_string(i)};
      member.pod.gang.id = GangId::Of("ns/g");
      member.pod.shape = Asking(gpus, cpu_milli + i % classes * 1000);
      ask.members.push_back(std::move(member));
    }
    return ask;
  }

 private:
  static std::shared_ptr<const Node> ANode(std::size_t i, Random& random) {
    NodeSpec spec;
    spec.name = "node-" + std::to_string(100'000 + i);
    spec.cpu_milli = 128'000;
    spec.memory_bytes = std::int64_t{1} << 40;
    spec.gpus.assign(8, GpuSpec{"", 80'000, true});
    spec.labels = {{"block", "b" + std::to_string(i / 18 / 16)},
                   {"rack", "r" + std::to_string(i / 18 % 16)}};
    auto node = std::make_shared<Node>(std::make_shared<const NodeSpec>(std::move(spec)));
    if (random.Below(5) < 2) return node;
    PodRecord pod;
    pod.pod.id.uid = std::to_string(i);
    const int taken = 1 + static_cast<int>(random.Below(8));
    pod.pod.shape = Asking(taken, 1000);
    for (int gpu = 0; gpu < taken; ++gpu) pod.placement.grants.push_back({gpu, kMilliPerGpu, 0});
    node->Put(std::make_shared<const PodRecord>(std::move(pod)));
    return node;
  }

  std::shared_ptr<const Snapshot> snapshot_;
  std::unique_ptr<const DomainTree> tree_;
  std::shared_ptr<Engine> engine_;
  GangRoom room_;
};

// Tables and room are as the last plan left them.
void BM_Gang_PlanWarm(benchmark::State& state) {
  Fleet fleet;
  const GangAsk ask =
      Fleet::Gang(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)),
                  static_cast<int>(state.range(2)));
  for (int i = 0; i < 100; ++i) (void)PlanGang(fleet.planning(), ask);
  for (auto _ : state) {
    auto plan = PlanGang(fleet.planning(), ask);
    if (!plan) state.SkipWithError("no plan");
    benchmark::DoNotOptimize(plan);
  }
}
BENCHMARK(BM_Gang_PlanWarm)
    ->ArgNames({"members", "gpus", "classes"})
    ->Args({64, 8, 1})
    ->Args({64, 1, 1})
    ->Args({64, 4, 3})
    ->Args({1000, 8, 1})
    ->Args({1000, 1, 1})
    ->Unit(benchmark::kMicrosecond);

// Of a shape that nobody has asked about.
void BM_Gang_PlanOfANewShape(benchmark::State& state) {
  Fleet fleet;
  std::int64_t cpu_milli = 4000;
  for (auto _ : state) {
    state.PauseTiming();
    const GangAsk ask = Fleet::Gang(64, 8, 1, ++cpu_milli);
    state.ResumeTiming();
    benchmark::DoNotOptimize(PlanGang(fleet.planning(), ask));
  }
}
BENCHMARK(BM_Gang_PlanOfANewShape)->Iterations(200)->Unit(benchmark::kMicrosecond);

void BM_Gang_TransactionStep(benchmark::State& state) {
  Fleet fleet;
  Transaction transaction(fleet.snapshot());
  const Transaction::Mark mark = transaction.Here();
  const PodRequest pod = Fleet::Gang(1, 1, 1).members.front().pod;
  const Placement placement{"node-102500", 4000, 0, {{7, kMilliPerGpu, 0}}};
  for (auto _ : state) {
    benchmark::DoNotOptimize(transaction.Put(pod, placement));
    transaction.Return(mark);
  }
}
BENCHMARK(BM_Gang_TransactionStep)->Unit(benchmark::kNanosecond);

}  // namespace
}  // namespace berth
