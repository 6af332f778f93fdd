// SPDX-License-Identifier: Apache-2.0
//
// MIG: one decision over a fleet as full as load 1.0 leaves it, and the tables behind it. Between
// decisions one device leaves and the new one stays, so that states come and go.
#include <benchmark/benchmark.h>

#include <vector>

#include "base/random.h"
#include "scoring/mig/mig_fleet.h"
#include "scoring/mig/mig_policy.h"
#include "topology/mig_catalog.h"

namespace berth {
namespace {

const std::vector<int> kRows = {0, 2, 3, 4, 5, 6};  // the six profiles without +me

const MigStates& States() {
  static const MigStates states = *MigStates::Of(*FindMigProduct("A100-40GB"), kRows);
  return states;
}

int AnyRow(Random& random) { return kRows[random.Below(kRows.size())]; }

void BM_BuildStates(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(MigStates::Of(*FindMigProduct("A100-40GB")));
}
BENCHMARK(BM_BuildStates)->Unit(benchmark::kMillisecond);

void BM_BuildMigChooser(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(MigChooser(MigPolicy::kBerth, States()));
}
BENCHMARK(BM_BuildMigChooser)->Unit(benchmark::kMillisecond);

void BM_ChooseMig(benchmark::State& state) {
  const MigChooser chooser(MigPolicy::kBerth, States());
  const int gpus = static_cast<int>(state.range(0));
  MigFleet fleet(States(), gpus, 8);
  Random random(3);
  std::vector<MigChoice> running;
  const auto place = [&](int row) {
    if (const auto choice = chooser.Choose(fleet, row)) {
      fleet.Place(choice->gpu, choice->placement);
      running.push_back(*choice);
    }
  };
  const auto leave = [&] {
    std::swap(running[random.Below(running.size())], running.back());
    fleet.Remove(running.back().gpu, running.back().placement);
    running.pop_back();
  };
  // Two and a half instances per GPU is what load 1.0 of equal shares leaves.
  const auto full = static_cast<std::size_t>(gpus) * 5 / 2;
  for (int step = 0; step < 8 * gpus; ++step) {
    place(AnyRow(random));
    if (running.size() > full) leave();
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(chooser.Choose(fleet, AnyRow(random)));
    state.PauseTiming();
    leave();
    place(AnyRow(random));
    state.ResumeTiming();
  }
  state.counters["states"] = static_cast<double>(fleet.present().size());
}
BENCHMARK(BM_ChooseMig)->Arg(100)->Arg(40'000);

// The same with the changes of the fleet: a device leaves, one is chosen and placed.
void BM_ChooseAndPlaceMig(benchmark::State& state) {
  const MigChooser chooser(MigPolicy::kBerth, States());
  MigFleet fleet(States(), static_cast<int>(state.range(0)), 8);
  Random random(4);
  std::vector<MigChoice> running;
  for (std::int64_t step = 0; step < 8 * state.range(0); ++step) {
    if (const auto choice = chooser.Choose(fleet, AnyRow(random))) {
      fleet.Place(choice->gpu, choice->placement);
      running.push_back(*choice);
    }
  }
  for (auto _ : state) {
    MigChoice& leaving = running[random.Below(running.size())];
    const int row =
        States().product().placements()[static_cast<std::size_t>(leaving.placement)].row;
    fleet.Remove(leaving.gpu, leaving.placement);
    leaving = *chooser.Choose(fleet, row);
    fleet.Place(leaving.gpu, leaving.placement);
  }
}
BENCHMARK(BM_ChooseAndPlaceMig)->Arg(100)->Arg(40'000);

}  // namespace
}  // namespace berth
