// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/engine_session.h"

#include "bench/replay/oracle_mix.h"
#include "scoring/registry.h"

namespace berth::replay {

Result<std::unique_ptr<EngineSession>> EngineSession::Create(
    const ProfileSpec& spec, const Workload& workload, const Arrivals& arrivals, std::uint64_t seed,
    const WasteParameters& waste, std::size_t nodes_to_score) {
  std::shared_ptr<LearnedMix> mix;
  std::shared_ptr<Engine> engine;
  if (Learns(spec)) {
    mix = std::make_shared<LearnedMix>(LearningParameters{});
    BERTH_TRY(engine, Engine::Create({spec, waste, mix}));
  } else {
    BERTH_TRY(Profile profile, BuildProfile(spec, OracleMix(workload.tasks)));
    engine = std::make_shared<Engine>(std::move(profile));
  }
  return std::unique_ptr<EngineSession>(new EngineSession(
      std::move(engine), std::move(mix), workload, arrivals, seed, nodes_to_score));
}

bool Learns(const ProfileSpec& spec) { return MixUseOf(spec) == MixUse::kDraws; }

Result<ProfileSpec> ProfileNamed(const std::string& policy) {
  if (const ProfileSpec* spec = FindBuiltinProfile(policy)) return *spec;
  std::string known;
  for (const ProfileSpec& spec : BuiltinProfiles()) known += " " + spec.name;
  return Invalid("policy: want one of" + known + ", got \"" + policy + "\"");
}

}  // namespace berth::replay
