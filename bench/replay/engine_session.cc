// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/engine_session.h"

#include "bench/replay/oracle_mix.h"
#include "scoring/registry.h"

namespace berth::replay {

Result<std::unique_ptr<EngineSession>> EngineSession::Create(const ProfileSpec& spec,
                                                             const Workload& workload,
                                                             const Arrivals& arrivals,
                                                             std::uint64_t seed) {
  BERTH_TRY(Profile profile, BuildProfile(spec, OracleMix(workload.tasks)));
  return std::unique_ptr<EngineSession>(
      new EngineSession(std::move(profile), workload, arrivals, seed));
}

Result<ProfileSpec> ProfileNamed(const std::string& policy) {
  if (const ProfileSpec* spec = FindBuiltinProfile(policy)) return *spec;
  std::string known;
  for (const ProfileSpec& spec : BuiltinProfiles()) known += " " + spec.name;
  return Invalid("policy: want one of" + known + ", got \"" + policy + "\"");
}

}  // namespace berth::replay
