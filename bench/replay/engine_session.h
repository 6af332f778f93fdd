// SPDX-License-Identifier: Apache-2.0
//
// EngineSession: one policy about to place pods on a fresh cluster, with the engine in this
// process. Every replay, simulation and search starts here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "bench/replay/arrivals.h"
#include "bench/replay/engine_placer.h"
#include "bench/replay/workload.h"
#include "scoring/engine.h"
#include "scoring/profile.h"

namespace berth::replay {

class EngineSession {
 public:
  // The request mix is the oracle of the workload; nodes are named by their rank in `arrivals`; the
  // seed is for ties. Error: as BuildProfile.
  static Result<std::unique_ptr<EngineSession>> Create(const ProfileSpec& spec,
                                                       const Workload& workload,
                                                       const Arrivals& arrivals,
                                                       std::uint64_t seed);

  [[nodiscard]] EnginePlacer& placer() { return placer_; }

 private:
  EngineSession(Profile profile, const Workload& workload, const Arrivals& arrivals,
                std::uint64_t seed)
      : engine_(std::move(profile)),
        placer_(engine_, OrderedNodes(workload.nodes, arrivals), seed) {}

  Engine engine_;
  EnginePlacer placer_;
};

// The built-in profile. Error: kInvalidArgument naming those there are.
Result<ProfileSpec> ProfileNamed(const std::string& policy);

}  // namespace berth::replay
