// SPDX-License-Identifier: Apache-2.0
//
// EngineSession: one policy on a fresh cluster, with the engine in this process. Every replay,
// simulation and search starts with one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "bench/replay/arrivals.h"
#include "bench/replay/engine_placer.h"
#include "bench/replay/policy.h"
#include "bench/replay/workload.h"
#include "scoring/engine/engine.h"
#include "scoring/profile.h"

namespace berth::replay {

class EngineSession {
 public:
  // Nodes are named by their rank in `arrivals`; the seed is for ties. The request mix is the
  // oracle of the workload, as in the published protocol, but for a policy that learns it.
  // nodes_to_score: EnginePlacer::Serving. Error: as BuildProfile; a task of a class that is none
  // of the policy's, where it has some.
  static Result<std::unique_ptr<EngineSession>> Create(const ReplayPolicy& policy,
                                                       const Workload& workload,
                                                       const Arrivals& arrivals, std::uint64_t seed,
                                                       std::size_t nodes_to_score = 0);

  [[nodiscard]] EnginePlacer& placer() { return placer_; }

 private:
  EngineSession(std::shared_ptr<Engine> engine, std::shared_ptr<LearnedMix> mix,
                const ReplayPolicy& policy, const Workload& workload, const Arrivals& arrivals,
                std::uint64_t seed, std::size_t nodes_to_score)
      : mix_(std::move(mix)),
        engine_(std::move(engine)),
        placer_(*engine_, OrderedCluster(workload, arrivals), seed, mix_.get(),
                {nodes_to_score, {}, policy.classes}) {}

  const std::shared_ptr<LearnedMix> mix_;  // nullptr: nothing is learned
  const std::shared_ptr<Engine> engine_;
  EnginePlacer placer_;
};

// Whether the policy never sees the oracle and learns the mix, as it does in service.
bool Learns(const ProfileSpec& spec);

}  // namespace berth::replay
