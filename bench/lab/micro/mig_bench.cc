// SPDX-License-Identifier: Apache-2.0
//
// MIG: one decision over a fleet that is nearly full, with what it changes, and the tables behind
// it.
#include <benchmark/benchmark.h>

#include <vector>

#include "base/random.h"
#include "bench/rules/mig_fleet.h"
#include "bench/rules/mig_policy.h"
#include "topology/mig/mig_product.h"

namespace berth::replay {
namespace {

const std::vector<int> kRows = {0, 2, 3, 4, 5, 6};  // the six profiles without +me

const MigStates& States() {
  static const MigStates states = *MigStates::Of(*FindMigProduct("A100-40GB"), kRows);
  return states;
}

void BM_BuildStates(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(MigStates::Of(*FindMigProduct("A100-40GB")));
}
BENCHMARK(BM_BuildStates)->Unit(benchmark::kMillisecond);

void BM_BuildMigChooser(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(MigChooser(MigPolicy::kBerth, States()));
}
BENCHMARK(BM_BuildMigChooser)->Unit(benchmark::kMillisecond);

// A device comes and is placed, another one leaves.
void BM_ChooseAndPlaceMig(benchmark::State& state) {
  const MigChooser chooser(MigPolicy::kBerth, States());
  const int gpus = static_cast<int>(state.range(0));
  MigFleet fleet(States(), gpus, 8);
  Random random(3);
  std::vector<MigChoice> running;
  const auto step = [&] {
    const auto choice = chooser.Choose(fleet, kRows[random.Below(kRows.size())]);
    if (!choice) return;
    fleet.Place(choice->gpu, choice->placement);
    running.push_back(*choice);
    // Two instances per GPU are seven of its eight units, where all profiles are equally frequent.
    if (running.size() <= static_cast<std::size_t>(2 * gpus)) return;
    std::swap(running[random.Below(running.size())], running.back());
    fleet.Remove(running.back().gpu, running.back().placement);
    running.pop_back();
  };
  for (int i = 0; i < 20 * gpus; ++i) step();
  for (auto _ : state) step();
  state.counters["states"] = static_cast<double>(fleet.present().size());
}
BENCHMARK(BM_ChooseAndPlaceMig)->Arg(100)->Arg(40'000);

}  // namespace
}  // namespace berth::replay
