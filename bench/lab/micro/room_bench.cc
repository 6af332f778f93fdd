// SPDX-License-Identifier: Apache-2.0
//
// What room costs and how near to its bound it is, on 5,000 nodes of 8 GPUs with some 20,000 pods
// of 1, 2 and 4 GPUs, after many have left: no node is idle, and one pod in ten may not be moved.
// 60 drawn goals of each kind, each with so many milliseconds. Counters, in shares of the goals:
// `found` a plan, `near` one of at most 1.1 times the bound, `optimal` one that is proven;
// `longest_ms` of one goal, the bounds included; `moves` per plan. The last kind lets in as many of
// some waiting pods as 8 moves can: `in` is the share of its own bound.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "scoring/room/make_room.h"

namespace berth {
namespace {

using std::chrono::steady_clock;

constexpr int kRoomNodes = 5000, kRoomGpus = 8, kRoomGoals = 60;
constexpr std::size_t kRoomClusters = 6;
constexpr WallTime kRoomNow = WallTime(std::chrono::hours(24 * 365 * 50));

PodRequest RoomPod(const std::string& uid, int gpus) {
  PodRequest pod;
  pod.id = {uid, "default", uid};
  pod.shape.cpu_milli = 4000 * gpus;
  pod.shape.memory_bytes = std::int64_t{16 * gpus} << 30;
  pod.shape.gpus = WholeGpus{gpus};
  return pod;
}

Node FilledNode(int index, Random& random) {
  auto spec = std::make_shared<NodeSpec>();
  spec->name = "n" + std::to_string(10'000 + index);
  spec->gpu_model = index % 3 == 0 ? "H100" : "A100";
  spec->cpu_milli = 128'000;
  spec->memory_bytes = std::int64_t{1} << 40;
  spec->gpus.assign(kRoomGpus, GpuSpec{"", 81'920, true});
  Node node(spec);
  for (int gpu = 0; gpu < kRoomGpus;) {
    const std::uint64_t draw = random.Below(100);
    const int size = std::min(kRoomGpus - gpu, draw < 60 ? 1 : draw < 85 ? 2 : 4);
    const bool is_last = gpu + size == kRoomGpus && node.pods().empty();
    const bool has_left = random.Below(100) < 12 && !is_last;
    PodRequest pod = RoomPod(spec->name + "-" + std::to_string(gpu), size);
    pod.mobility = random.Below(10) == 0 ? Mobility::kNoController : Mobility::kMoves;
    pod.checkpointed = kRoomNow - std::chrono::minutes(random.Below(2000));
    if (!has_left) {
      Placement placement{spec->name, pod.shape.cpu_milli, pod.shape.memory_bytes, {}};
      for (int i = gpu; i < gpu + size; ++i) placement.grants.push_back({i, kMilliPerGpu, 81'920});
      node.Put(std::make_shared<const PodRecord>(PodRecord{pod, placement, PodState::kBound, {}}));
    }
    gpu += size;
  }
  return node;
}

std::shared_ptr<const Snapshot> MakeRoomCluster(std::uint64_t seed) {
  Random random(seed);
  std::vector<std::shared_ptr<const Node>> nodes;
  for (int i = 0; i < kRoomNodes; ++i) {
    nodes.push_back(std::make_shared<const Node>(FilledNode(i, random)));
  }
  return std::make_shared<const Snapshot>(nodes);
}

std::shared_ptr<const Snapshot> RoomCluster(std::size_t seed) {
  static std::array<std::shared_ptr<const Snapshot>, kRoomClusters> clusters;
  auto& cluster = clusters[seed % kRoomClusters];
  if (cluster == nullptr) cluster = MakeRoomCluster(seed % kRoomClusters);
  return cluster;
}

enum class RoomKind { kOnePod, kGang, kManyPods, kIdleNodes };

RoomGoal DrawnGoal(RoomKind kind, Random& random) {
  RoomGoal goal;
  if (kind == RoomKind::kIdleNodes) {
    goal.idle_nodes = 1 + static_cast<int>(random.Below(4));
    goal.model = random.Below(2) == 0 ? "H100" : "";
    return goal;
  }
  const int pods = kind == RoomKind::kOnePod ? 1 : 2 + static_cast<int>(random.Below(7));
  for (int i = 0; i < pods; ++i) {
    const int gpus = kind == RoomKind::kManyPods ? 1 << (2 + random.Below(2)) : kRoomGpus;
    goal.pods.push_back(RoomPod("goal-" + std::to_string(i), gpus));
    if (kind == RoomKind::kOnePod && random.Below(2) == 0) goal.pods[0].shape.models = {"H100"};
  }
  return goal;
}

// The range is of milliseconds; 0: as many as the steps of the search take.
void Room(benchmark::State& state, RoomKind kind) {
  int found = 0, near = 0, optimal = 0;
  double moves = 0, longest = 0;
  for (auto _ : state) {
    Random random(11);
    found = near = optimal = 0;
    moves = longest = 0;
    for (int i = 0; i < kRoomGoals; ++i) {
      const auto snapshot = RoomCluster(static_cast<std::size_t>(i));
      const auto begin = steady_clock::now();
      const auto end = begin + std::chrono::milliseconds(state.range(0));
      RoomAsk ask{
          .snapshot = snapshot, .goal = DrawnGoal(kind, random), .rules = {.now = kRoomNow}};
      if (state.range(0) > 0) ask.limits.enough = [end] { return steady_clock::now() >= end; };
      const RoomPlan plan = MakeRoom(ask);
      const std::chrono::duration<double, std::milli> took = steady_clock::now() - begin;
      longest = std::max(longest, took.count());
      if (!plan.found) continue;
      ++found;
      moves += static_cast<double>(plan.moves.size());
      near += plan.cost * 10 <= plan.least_cost.price * 11 ? 1 : 0;
      optimal += plan.optimal ? 1 : 0;
    }
  }
  state.counters["found"] = found / double(kRoomGoals);
  state.counters["near"] = near / double(kRoomGoals);
  state.counters["optimal"] = optimal / double(kRoomGoals);
  state.counters["longest_ms"] = longest;
  state.counters["moves"] = found == 0 ? 0 : moves / found;
}

BENCHMARK_CAPTURE(Room, one_pod, RoomKind::kOnePod)->Arg(0)->Arg(100)->Arg(1000)->Iterations(1);
BENCHMARK_CAPTURE(Room, gang, RoomKind::kGang)->Arg(0)->Arg(100)->Arg(1000)->Iterations(1);
BENCHMARK_CAPTURE(Room, many_pods, RoomKind::kManyPods)->Arg(0)->Arg(100)->Arg(1000)->Iterations(1);
BENCHMARK_CAPTURE(Room, idle_nodes, RoomKind::kIdleNodes)
    ->Arg(0)
    ->Arg(100)
    ->Arg(1000)
    ->Iterations(1);

}  // namespace
}  // namespace berth
