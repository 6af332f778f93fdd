// SPDX-License-Identifier: Apache-2.0
//
// Set tables: building one, and one decision from it, over the free sets that a random half-full
// machine has. The 16-GPU machine is two cube meshes, joined by PCIe.
#include <benchmark/benchmark.h>

#include <bit>
#include <vector>

#include "base/random.h"
#include "topology/links/set_table.h"

namespace berth {
namespace {

// The NVLinks of a V100 hybrid cube mesh.
constexpr int kMesh[8][8] = {{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0},
                             {1, 2, 0, 2, 0, 0, 1, 0}, {2, 1, 2, 0, 0, 0, 0, 1},
                             {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
                             {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};

Wiring Meshes(int gpus) {
  Wiring wiring;
  wiring.gpus = gpus;
  for (int a = 0; a < gpus; ++a) {
    wiring.numa.push_back(a / 4);
    for (int b = 0; b < gpus; ++b) {
      const int links = a / 8 == b / 8 ? kMesh[a % 8][b % 8] : 0;
      wiring.megabytes_per_s.push_back(a == b ? 0 : links > 0 ? links * 25'000 : 9'000);
    }
  }
  return wiring;
}

void BM_BuildSetTable(benchmark::State& state) {
  const Wiring wiring = Meshes(static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(SetTable(wiring));
}
BENCHMARK(BM_BuildSetTable)->Arg(8)->Arg(16)->Unit(benchmark::kMillisecond);

void BM_Choose(benchmark::State& state) {
  const int gpus = static_cast<int>(state.range(0)), size = static_cast<int>(state.range(1));
  const SetTable table(Meshes(gpus));
  Random random(5);
  std::vector<GpuMask> frees;
  while (frees.size() < 1024) {
    const GpuMask free = random.Next() & AllGpus(gpus);
    if (std::popcount(free) >= size) frees.push_back(free);
  }
  std::size_t next = 0;
  for (auto _ : state) benchmark::DoNotOptimize(table.Choose(frees[next++ % 1024], size));
}
BENCHMARK(BM_Choose)->ArgsProduct({{8, 16}, {1, 2, 4, 8}});

// The machine is full of pods of random sizes but for `free`.
void BM_ChooseAmongTenants(benchmark::State& state) {
  const int size = static_cast<int>(state.range(0));
  const SetTable table(Meshes(8));
  const SetOutlook outlook(table, {});
  struct World {
    GpuMask free = 0;
    std::vector<GpuMask> tenants;
  };
  Random random(5);
  std::vector<World> worlds;
  while (worlds.size() < 1024) {
    World world;
    GpuMask rest = 0xff;
    while (rest != 0) {
      const GpuMask set = rest & random.Next();
      if (set != 0) world.tenants.push_back(set);
      rest &= ~set;
    }
    world.free = world.tenants.back();
    world.tenants.pop_back();
    if (std::popcount(world.free) >= size) worlds.push_back(world);
  }
  std::size_t next = 0;
  for (auto _ : state) {
    const World& world = worlds[next++ % 1024];
    benchmark::DoNotOptimize(outlook.Choose(world.free, size, 0, world.tenants));
  }
}
BENCHMARK(BM_ChooseAmongTenants)->Arg(1)->Arg(2)->Arg(4);

// Nothing is free to skip: a required GPU, which is not looked up, and an empty machine.
void BM_ChooseInEmptyMachine(benchmark::State& state) {
  const int gpus = static_cast<int>(state.range(0));
  const SetTable table(Meshes(gpus));
  const GpuMask all = AllGpus(gpus);
  for (auto _ : state) benchmark::DoNotOptimize(table.Choose(all, gpus / 2, 1));
}
BENCHMARK(BM_ChooseInEmptyMachine)->Arg(8)->Arg(16);

}  // namespace
}  // namespace berth
