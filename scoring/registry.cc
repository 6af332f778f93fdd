// SPDX-License-Identifier: Apache-2.0
#include "scoring/registry.h"

#include <algorithm>
#include <array>

#include "scoring/filters/device_fit.h"
#include "scoring/filters/gpu_model_match.h"
#include "scoring/filters/node_health.h"
#include "scoring/filters/node_traits_match.h"
#include "scoring/scorers/baselines.h"
#include "scoring/scorers/expected_waste.h"
#include "scoring/scorers/fragmentation_gradient.h"
#include "scoring/scorers/link_locality.h"
#include "scoring/scorers/mig_packing.h"
#include "scoring/scorers/power.h"
#include "scoring/scorers/workload_fit.h"

namespace berth {
namespace {

using Made = std::unique_ptr<const Scorer>;
using Factory = Made (*)(const RequestMix&, const WasteParameters&, const Fleet&);

template <class T>
Made Make(const RequestMix&, const WasteParameters&, const Fleet&) {
  return std::make_unique<const T>();
}

Made MakeExpectedWaste(const RequestMix& mix, const WasteParameters& waste, const Fleet& fleet) {
  return std::make_unique<const ExpectedWaste>(mix, fleet, waste);
}

Made MakeFragmentationGradient(const RequestMix& mix, const WasteParameters&, const Fleet&) {
  return std::make_unique<const FragmentationGradient>(mix);
}

struct Entry {
  std::string_view name;
  MixUse mix_use;
  Factory make;
};

constexpr auto kScorers = std::to_array<Entry>({
    {"best-fit", MixUse::kNone, Make<BestFit>},
    {"dot-product", MixUse::kNone, Make<DotProduct>},
    {"expected-waste", MixUse::kDraws, MakeExpectedWaste},
    {"fragmentation-gradient", MixUse::kWeights, MakeFragmentationGradient},
    {"gpu-clustering", MixUse::kNone, Make<GpuClustering>},
    {"gpu-packing", MixUse::kNone, Make<GpuPacking>},
    {"link-quality", MixUse::kNone, Make<LinkQuality>},
    {"mig-packing", MixUse::kNone, Make<MigPacking>},
    {"numa-locality", MixUse::kNone, Make<NumaLocality>},
    {"power", MixUse::kNone, Make<Power>},
    {"pwr", MixUse::kNone, Make<Pwr>},
    {"spreading", MixUse::kNone, Make<Spreading>},
    {kWorkloadClassScorer, MixUse::kNone, Make<WorkloadFit>},
});

}  // namespace

std::span<const Filter* const> BuiltinFilters() {
  static const NodeHealth health;
  static const GpuModelMatch model;
  static const NodeTraitsMatch traits;
  static const DeviceFit fit;
  static const std::array<const Filter*, 4> filters = {&health, &model, &traits, &fit};
  return filters;
}

Reason FirstObjection(const Node& node, const RequestShape& shape) {
  for (const Filter* filter : BuiltinFilters()) {
    if (const Reason reason = filter->Check(node, shape); reason != Reason::kFits) return reason;
  }
  return Reason::kFits;
}

std::vector<std::string_view> ScorerNames() {
  std::vector<std::string_view> names;
  names.reserve(kScorers.size());
  for (const Entry& entry : kScorers) names.push_back(entry.name);
  return names;
}

Result<std::unique_ptr<const Scorer>> MakeScorer(std::string_view name, const RequestMix& mix,
                                                 const WasteParameters& waste, const Fleet& fleet) {
  const auto entry = std::ranges::find(kScorers, name, &Entry::name);
  if (entry != kScorers.end()) return entry->make(mix, waste, fleet);
  std::string message = "want one of";
  for (const std::string_view known : ScorerNames()) message.append(" ").append(known);
  message.append(" ").append(kDomainLocality);
  return Invalid(message + ", got \"" + std::string(name) + "\"");
}

MixUse MixUseOf(std::string_view scorer) {
  const auto entry = std::ranges::find(kScorers, scorer, &Entry::name);
  return entry == kScorers.end() ? MixUse::kNone : entry->mix_use;
}

std::span<const ProfileSpec> BuiltinProfiles() {
  static const std::vector<ProfileSpec> profiles = {
      {"best-fit", {{"best-fit", 1}}, DeviceRule::kTightest, TieRule::kEqual},
      {"dot-product", {{"dot-product", 1}}, DeviceRule::kTightest, TieRule::kEqual},
      // To a pod, a level nearer to its group is worth a few wasted GPUs.
      {"expected-waste",
       {{"expected-waste", 1},
        {"mig-packing", 1},
        {std::string(kWorkloadClassScorer), 1},
        {std::string(kDomainLocality), 1}},
       DeviceRule::kBestScore,
       TieRule::kFullest},
      {"first-fit", {}, DeviceRule::kFirst, TieRule::kFirst},
      {"fragmentation-gradient",
       {{"fragmentation-gradient", 1}},
       DeviceRule::kBestScore,
       TieRule::kEqual},
      {"gpu-clustering", {{"gpu-clustering", 1}}, DeviceRule::kTightest, TieRule::kEqual},
      {"gpu-packing", {{"gpu-packing", 1}}, DeviceRule::kTightest, TieRule::kEqual},
      {"link-quality", {{"link-quality", 1}}, DeviceRule::kTightest, TieRule::kEqual},
      {"mig-packing", {{"mig-packing", 1}}, DeviceRule::kTightest, TieRule::kEqual},
      {"numa-locality", {{"numa-locality", 1}}, DeviceRule::kTightest, TieRule::kEqual},
      {"power", {{"power", 1}}, DeviceRule::kBestScore, TieRule::kEqual},
      {"power-saving",
       {{"expected-waste", 4},
        {"power", 1},
        {"mig-packing", 4},
        {std::string(kWorkloadClassScorer), 4},
        {std::string(kDomainLocality), 4}},
       DeviceRule::kBestScore,
       TieRule::kFullest},
      {"pwr", {{"pwr", 1}}, DeviceRule::kTightest, TieRule::kEqual},
      {"pwr-fgd",
       {{"pwr", 100}, {"fragmentation-gradient", 900}},
       DeviceRule::kBestScore,
       TieRule::kEqual},
      {"random", {}, DeviceRule::kRandom, TieRule::kEqual},
      {"spreading", {{"spreading", 1}}, DeviceRule::kTightest, TieRule::kEqual},
      {std::string(kWorkloadClassScorer),
       {{std::string(kWorkloadClassScorer), 1}},
       DeviceRule::kTightest,
       TieRule::kEqual},
  };
  return profiles;
}

const ProfileSpec* FindBuiltinProfile(std::string_view name) {
  const auto profiles = BuiltinProfiles();
  const auto found = std::ranges::find(profiles, name, &ProfileSpec::name);
  return found == profiles.end() ? nullptr : &*found;
}

}  // namespace berth
