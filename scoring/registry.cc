// SPDX-License-Identifier: Apache-2.0
#include "scoring/registry.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "scoring/filters/device_fit.h"
#include "scoring/scorers/scorers.h"

namespace berth {
namespace {

MadeScorer MakeExpectedWaste(const RequestMix& mix, const WasteParameters& waste,
                             const Fleet& fleet) {
  return std::make_unique<const ExpectedWaste>(mix, fleet, waste);
}

MadeScorer MakeFragmentationGradient(const RequestMix& mix, const WasteParameters&, const Fleet&) {
  return std::make_unique<const FragmentationGradient>(mix);
}

constexpr auto kScorers = std::to_array<ScorerEntry>({
    {"expected-waste", MixUse::kDraws, MakeExpectedWaste},
    {"fragmentation-gradient", MixUse::kWeights, MakeFragmentationGradient},
    {"link-quality", MixUse::kNone, Make<LinkQuality>},
    {"mig-packing", MixUse::kNone, Make<MigPacking>},
    {"numa-locality", MixUse::kNone, Make<NumaLocality>},
    {kWorkloadClassScorer, MixUse::kNone, Make<WorkloadFit>},
});

// Those of the service, and what a program has added.
std::vector<ScorerEntry>& AllScorers() {
  static std::vector<ScorerEntry> scorers(kScorers.begin(), kScorers.end());
  return scorers;
}

std::vector<ProfileSpec>& AllProfiles() {
  static std::vector<ProfileSpec> profiles = {
      // To a pod, a level nearer to its group is worth a few wasted GPUs.
      {"expected-waste",
       {{"expected-waste", 1},
        {"mig-packing", 1},
        {std::string(kWorkloadClassScorer), 1},
        {std::string(kDomainLocality), 1}},
       DeviceRule::kBestScore,
       TieRule::kFullest},
      {"fragmentation-gradient",
       {{"fragmentation-gradient", 1}},
       DeviceRule::kBestScore,
       TieRule::kEqual},
  };
  return profiles;
}

}  // namespace

Reason FirstObjection(const Node& node, const RequestShape& shape) {
  for (const auto check : {CheckHealth, CheckModel, CheckTraits, CheckFit}) {
    if (const Reason reason = check(node, shape); reason != Reason::kFits) return reason;
  }
  return Reason::kFits;
}

void AddToRegistry(std::span<const ScorerEntry> scorers, std::vector<ProfileSpec> profiles) {
  AllScorers().insert(AllScorers().end(), scorers.begin(), scorers.end());
  std::ranges::sort(AllScorers(), {}, &ScorerEntry::name);
  std::ranges::move(profiles, std::back_inserter(AllProfiles()));
  std::ranges::sort(AllProfiles(), {}, &ProfileSpec::name);
}

std::vector<std::string_view> ScorerNames() {
  std::vector<std::string_view> names;
  for (const ScorerEntry& entry : AllScorers()) names.push_back(entry.name);
  return names;
}

Result<MadeScorer> MakeScorer(std::string_view name, const RequestMix& mix,
                              const WasteParameters& waste, const Fleet& fleet) {
  const auto entry = std::ranges::find(AllScorers(), name, &ScorerEntry::name);
  if (entry != AllScorers().end()) return entry->make(mix, waste, fleet);
  std::string message = "want one of";
  for (const std::string_view known : ScorerNames()) message.append(" ").append(known);
  message.append(" ").append(kDomainLocality);
  return Invalid(message + ", got " + WrongPolicy(name));
}

std::string WrongPolicy(std::string_view name) {
  constexpr std::array<std::string_view, 15> kOfReplay = {
      "best-fit",    "dot-product",        "first-fit",   "gpu-clustering",
      "gpu-packing", "link-quality",       "mig-packing", "numa-locality",
      "power",       "power-saving",       "pwr",         "pwr-fgd",
      "random",      kWorkloadClassScorer, "spreading"};
  const bool gone = std::ranges::find(kOfReplay, name) != kOfReplay.end();
  return "\"" + std::string(name) + "\"" +
         (gone ? " (only berth-replay has it now: docs/upgrade.md)" : "");
}

MixUse MixUseOf(std::string_view scorer) {
  const auto entry = std::ranges::find(AllScorers(), scorer, &ScorerEntry::name);
  return entry == AllScorers().end() ? MixUse::kNone : entry->mix_use;
}

bool IsServed(std::string_view scorer) {
  return scorer == kDomainLocality ||
         std::ranges::find(kScorers, scorer, &ScorerEntry::name) != kScorers.end();
}

std::span<const ProfileSpec> BuiltinProfiles() { return AllProfiles(); }

const ProfileSpec* FindBuiltinProfile(std::string_view name) {
  const auto profiles = BuiltinProfiles();
  const auto found = std::ranges::find(profiles, name, &ProfileSpec::name);
  return found == profiles.end() ? nullptr : &*found;
}

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
    BERTH_TRY(MadeScorer scorer,
              Within(MakeScorer(wanted.name, mix, waste, fleet), place + ".name"));
    profile.scorers.push_back({std::move(scorer), wanted.weight, wanted.name});
  }
  return profile;
}

MixUse MixUseOf(const ProfileSpec& spec) {
  MixUse most = MixUse::kNone;
  for (const ScorerSpec& scorer : spec.scorers) most = std::max(most, MixUseOf(scorer.name));
  return most;
}

}  // namespace berth
