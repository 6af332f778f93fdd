// SPDX-License-Identifier: Apache-2.0
#include "scoring/registry.h"

#include <algorithm>
#include <array>

#include "scoring/filters/device_fit.h"
#include "scoring/filters/gpu_model_match.h"
#include "scoring/filters/node_health.h"
#include "scoring/scorers/best_fit.h"
#include "scoring/scorers/dot_product.h"
#include "scoring/scorers/fragmentation_gradient.h"
#include "scoring/scorers/gpu_clustering.h"
#include "scoring/scorers/gpu_packing.h"
#include "scoring/scorers/spreading.h"

namespace berth {
namespace {

using Factory = std::unique_ptr<const Scorer> (*)(const RequestMix&);

template <class T>
std::unique_ptr<const Scorer> Make(const RequestMix&) {
  return std::make_unique<const T>();
}

struct Entry {
  std::string_view name;
  Factory make;
};

constexpr std::array<Entry, 6> kScorers = {{
    {"best-fit", Make<BestFit>},
    {"dot-product", Make<DotProduct>},
    {"fragmentation-gradient",
     [](const RequestMix& mix) -> std::unique_ptr<const Scorer> {
       return std::make_unique<const FragmentationGradient>(mix);
     }},
    {"gpu-clustering", Make<GpuClustering>},
    {"gpu-packing", Make<GpuPacking>},
    {"spreading", Make<Spreading>},
}};

}  // namespace

std::span<const Filter* const> BuiltinFilters() {
  static const NodeHealth health;
  static const GpuModelMatch model;
  static const DeviceFit fit;
  static const std::array<const Filter*, 3> filters = {&health, &model, &fit};
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
  for (const Entry& entry : kScorers) names.push_back(entry.name);
  return names;
}

Result<std::unique_ptr<const Scorer>> MakeScorer(std::string_view name, const RequestMix& mix) {
  const auto entry = std::ranges::find(kScorers, name, &Entry::name);
  if (entry != kScorers.end()) return entry->make(mix);
  std::string message = "want one of";
  for (const std::string_view known : ScorerNames()) message.append(" ").append(known);
  return Invalid(message + ", got \"" + std::string(name) + "\"");
}

std::span<const ProfileSpec> BuiltinProfiles() {
  static const std::vector<ProfileSpec> profiles = {
      {"best-fit", {{"best-fit", 1}}, DeviceRule::kTightest, TieRule::kEqual},
      {"dot-product", {{"dot-product", 1}}, DeviceRule::kTightest, TieRule::kEqual},
      {"first-fit", {}, DeviceRule::kFirst, TieRule::kFirst},
      {"fragmentation-gradient",
       {{"fragmentation-gradient", 1}},
       DeviceRule::kBestScore,
       TieRule::kEqual},
      {"gpu-clustering", {{"gpu-clustering", 1}}, DeviceRule::kTightest, TieRule::kEqual},
      {"gpu-packing", {{"gpu-packing", 1}}, DeviceRule::kTightest, TieRule::kEqual},
      {"random", {}, DeviceRule::kRandom, TieRule::kEqual},
      {"spreading", {{"spreading", 1}}, DeviceRule::kTightest, TieRule::kEqual},
  };
  return profiles;
}

const ProfileSpec* FindBuiltinProfile(std::string_view name) {
  const auto profiles = BuiltinProfiles();
  const auto found = std::ranges::find(profiles, name, &ProfileSpec::name);
  return found == profiles.end() ? nullptr : &*found;
}

}  // namespace berth
