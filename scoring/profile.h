// SPDX-License-Identifier: Apache-2.0
//
// Profile: a placement policy - scorers with weights, how devices are picked, how ties end.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "scoring/devices/device_picker.h"
#include "scoring/scorer.h"
#include "scoring/waste/fleet.h"
#include "scoring/waste/request_mix.h"

namespace berth {

// What happens among nodes of equal score.
enum class TieRule {
  kEqual,  // they stay equal: the scheduler chooses
  kFirst,  // the first by name wins
  // For a pod with GPUs the node with the least free GPU wins, and a wholly idle one only after all
  // others (priority.h). Among nodes that are still equal, and for other pods, as kEqual.
  kFullest,
};

// How a scorer uses the request mix.
enum class MixUse {
  kNone,     // nothing
  kWeights,  // it looks at the weights of the classes
  kDraws,    // it draws pods from it: the mix should be calibrated (pod_draws.h)
};

// A policy as configuration has it: names and numbers.
struct ScorerSpec {
  std::string name;
  int weight = 1;  // 1..kMaxScorerWeight
  friend bool operator==(const ScorerSpec&, const ScorerSpec&) = default;
};
constexpr int kMaxScorerWeight = 1000;

// The name under which a profile weighs how near a node is to the pod's group. It depends on other
// nodes, so it is no Scorer: its value comes with the question (Engine::Prioritize).
constexpr std::string_view kDomainLocality = "domain-locality";

struct ProfileSpec {
  std::string name;
  std::vector<ScorerSpec> scorers;  // none: every node scores the same
  DeviceRule devices = DeviceRule::kTightest;
  TieRule ties = TieRule::kEqual;
  // The built-in profile that it was made from: `scorers` has those of that one too. Empty: none.
  std::string extends = {};
  std::vector<std::string> without = {};  // scorers that it leaves out on purpose
  friend bool operator==(const ProfileSpec&, const ProfileSpec&) = default;
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
