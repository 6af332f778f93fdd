// SPDX-License-Identifier: Apache-2.0
#include "scoring/profile.h"

#include <algorithm>

#include "scoring/registry.h"

namespace berth {

int Profile::WeightOf(std::string_view scorer_name) const {
  const auto found = std::ranges::find(scorers, scorer_name, &Weighted::name);
  return found == scorers.end() ? 0 : found->weight;
}

const std::shared_ptr<const Profile>& Profiles::Of(std::string_view name) const {
  const auto own = std::ranges::find_if(
      others, [&](const std::shared_ptr<const Profile>& other) { return other->name == name; });
  return own == others.end() ? chosen : *own;
}

Result<Profile> BuildProfile(const ProfileSpec& spec, const RequestMix& mix,
                             const WasteParameters& waste, const Fleet& fleet) {
  Profile profile{spec.name, {}, spec.devices, spec.ties, 0};
  for (std::size_t i = 0; i < spec.scorers.size(); ++i) {
    const ScorerSpec& wanted = spec.scorers[i];
    const std::string place = ".scorers[" + std::to_string(i) + "]";
    const auto same_name = [&](const ScorerSpec& other) { return other.name == wanted.name; };
    if (std::any_of(spec.scorers.begin(), spec.scorers.begin() + static_cast<std::ptrdiff_t>(i),
                    same_name)) {
      return Invalid(place + ".name: \"" + wanted.name + "\" is there twice");
    }
    if (wanted.weight < 1 || wanted.weight > kMaxScorerWeight) {
      return Invalid(place + ".weight: want 1.." + std::to_string(kMaxScorerWeight) + ", got " +
                     std::to_string(wanted.weight));
    }
    if (wanted.name == kDomainLocality) {
      profile.locality_weight = wanted.weight;
      continue;
    }
    auto scorer = MakeScorer(wanted.name, mix, waste, fleet);
    if (!scorer) return tl::unexpected(std::move(scorer).error().Within(place + ".name"));
    profile.scorers.push_back({*std::move(scorer), wanted.weight, wanted.name});
  }
  return profile;
}

MixUse MixUseOf(const ProfileSpec& spec) {
  MixUse most = MixUse::kNone;
  for (const ScorerSpec& scorer : spec.scorers) most = std::max(most, MixUseOf(scorer.name));
  return most;
}

}  // namespace berth
