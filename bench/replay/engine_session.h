// SPDX-License-Identifier: Apache-2.0
//
// EngineSession: one policy on a fresh cluster, with the engine in this process. Every replay,
// simulation and search starts with one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

  // On nodes without pods, with a mix that is learned and no short list. Error: as BuildProfile.
  static Result<std::unique_ptr<EngineSession>> Learning(const ReplayPolicy& policy,
                                                         const std::vector<NodeSpec>& nodes,
                                                         std::uint64_t seed);

  [[nodiscard]] EnginePlacer& placer() { return placer_; }

 private:
  template <class Cluster>
  EngineSession(std::shared_ptr<Engine> engine, std::shared_ptr<LearnedMix> mix,
                const Cluster& cluster, std::uint64_t seed, EnginePlacer::Serving serving)
      : mix_(std::move(mix)),
        engine_(std::move(engine)),
        placer_(*engine_, cluster, seed, mix_.get(), std::move(serving)) {}

  const std::shared_ptr<LearnedMix> mix_;  // nullptr: nothing is learned
  const std::shared_ptr<Engine> engine_;
  EnginePlacer placer_;
};

// Whether the policy never sees the oracle and learns the mix, as it does in service.
bool Learns(const ProfileSpec& spec);

}  // namespace berth::replay
