// SPDX-License-Identifier: Apache-2.0
//
// Profile: a placement policy - scorers with weights, how devices are picked, how ties end.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "scoring/profile_spec.h"
#include "scoring/scorer.h"
#include "scoring/waste/fleet.h"
#include "scoring/waste/request_mix.h"

namespace berth {

// How a scorer uses the request mix.
enum class MixUse {
  kNone,     // nothing
  kWeights,  // it looks at the weights of the classes
  kDraws,    // it draws pods from it: the mix should be calibrated (pod_draws.h)
};

// A policy ready to run. Immutable: any thread may use it.
struct Profile {
  struct Weighted {
    std::unique_ptr<const Scorer> scorer;
    int weight;
    std::string name = {};  // as the registry has it; empty: built by hand
  };
  std::string name;
  std::vector<Weighted> scorers;
  DeviceRule devices = DeviceRule::kTightest;
  TieRule ties = TieRule::kEqual;
  int locality_weight = 0;  // of kDomainLocality; 0 = not used

  // 0 = it does not have that scorer.
  [[nodiscard]] int WeightOf(std::string_view scorer_name) const;
};

// The policies of one configuration.
struct Profiles {
  std::shared_ptr<const Profile> chosen;
  std::vector<std::shared_ptr<const Profile>> others = {};  // of pods that name one

  // By NodeWishes::profile; a name that none has means the chosen one.
  [[nodiscard]] const std::shared_ptr<const Profile>& Of(std::string_view name) const;
};

// Error: kInvalidArgument with the path: a scorer that does not exist, one named twice, a weight
// out of range.
Result<Profile> BuildProfile(const ProfileSpec& spec, const RequestMix& mix,
                             const WasteParameters& waste = {}, const Fleet& fleet = {});

// The largest use that a scorer of the profile makes of the mix.
MixUse MixUseOf(const ProfileSpec& spec);

}  // namespace berth
