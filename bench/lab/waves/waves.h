// SPDX-License-Identifier: Apache-2.0
//
// Waves: equal pods arrive at a small fleet, one wave after the other. The result is how many nodes
// stay wholly idle for a pod that needs a whole one.
//
// Each pod is placed as by kube-scheduler: the engine filters and gives priorities 0..10, and
// KubeChoice chooses. So ties are not broken here, and the scores of kube-scheduler, which favour
// the emptiest node, count.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/lab/waves/scenario.h"
#include "scoring/profile.h"

namespace berth::replay {

struct WaveResult {
  std::string wave;
  int pods = 0;
  int unplaced = 0;
  int whole_gpus = 0;       // of wholly idle nodes, once the pods are there
  int most_whole_gpus = 0;  // with the best packing
};

struct WavesOptions {
  int rounds = 2;             // that the waves of a scenario come; not of one in which pods stay
  int extender_weight = 141;  // manifests/scheduler
  std::uint64_t seed = 42;    // of kube-scheduler's choice
};

// One entry per wave, in their order. A policy that learns begins with an empty mix; others get the
// mix of all waves. Error: as BuildProfile.
Result<std::vector<WaveResult>> RunWaves(const Scenario& scenario, const ProfileSpec& policy,
                                         const WavesOptions& options);

// All scenarios of a seed, added up.
struct WavesTotal {
  std::string scenario;
  std::string policy;
  int waves = 0;
  int unplaced = 0;
  int whole_gpus = 0;
  int most_whole_gpus = 0;
  [[nodiscard]] double lost_pct() const {
    return most_whole_gpus == 0 ? 0 : 100.0 * (most_whole_gpus - whole_gpus) / most_whole_gpus;
  }
};

// By scenario and policy, over `seeds` seeds from options.seed on; last, per policy, the sum over
// all scenarios under the name "all". Error: as RunWaves.
Result<std::vector<WavesTotal>> RunAllWaves(const std::vector<ProfileSpec>& policies, int seeds,
                                            WavesOptions options);

}  // namespace berth::replay
