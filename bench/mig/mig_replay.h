// SPDX-License-Identifier: Apache-2.0
//
// Pods with MIG devices come to a fleet of GPUs and go; every policy places the same pods at the
// same times, so that differences between policies are paired.
//
// A loss system: a pod that fits anywhere is placed at once and stays until it ends; a pod that
// fits nowhere is lost. `load` is the memory asked for, in units of the fleet's memory. The first
// third of the arrivals fills the fleet and is not counted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/mig/mig_workload.h"
#include "bench/replay/latency.h"
#include "bench/rules/mig_policy.h"
#include "topology/mig/mig_product.h"

namespace berth::replay {

struct MigReplayOptions {
  const MigProduct* product = nullptr;
  MigMix mix;
  MigLifetimes lifetimes = MigLifetimes::kExponential;
  std::vector<MigPolicy> policies;
  MigPick pick = MigPick::kPolicy;
  int gpus = 100, gpus_per_node = 8;
  double load = 1.0;
  int arrivals = 9'000;  // per seed
  std::uint64_t first_seed = 1;
  int seeds = 30;
};

// A mean over seeds and the half-width of its 95 % confidence interval (Student's t; 0 for one
// seed).
struct MigEstimate {
  double mean = 0, half_width = 0;
};
MigEstimate EstimateOf(const std::vector<double>& values);

struct MigScore {
  MigPolicy policy = MigPolicy::kBerth;
  std::vector<double> memory_pct;    // per seed: accepted memory of all memory asked for
  std::vector<double> pods_pct;      // per seed: accepted pods of all pods
  std::vector<double> rejected_pct;  // per row of the product: rejected pods of that row's
  LatencySummary decision_us;
};

// Called after each run with the number of finished runs and of all runs.
using MigProgress = std::function<void(std::size_t, std::size_t)>;

// One score per policy. Error: a mix of rows with too many layouts.
Result<std::vector<MigScore>> ReplayMig(const MigReplayOptions& options,
                                        const MigProgress& progress = {});

}  // namespace berth::replay
