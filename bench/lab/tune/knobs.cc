// SPDX-License-Identifier: Apache-2.0
#include "bench/lab/tune/knobs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "scoring/registry.h"

namespace berth::replay {
namespace {

Knob WeightKnob(const ProfileSpec& profile, std::size_t scorer) {
  return {"scorers[" + profile.scorers[scorer].name + "].weight",
          1,
          kMaxScorerWeight,
          Scale::kLog,
          true,
          [scorer](const TunedPolicy& policy) {
            return static_cast<double>(policy.profile.scorers[scorer].weight);
          },
          [scorer](TunedPolicy& policy, double value) {
            policy.profile.scorers[scorer].weight = static_cast<int>(value);
          }};
}

template <class Number>
Knob WasteKnob(const char* name, double low, double high, Scale scale,
               Number WasteParameters::*member) {
  return {std::string("expectedWaste.") + name,
          low,
          high,
          scale,
          std::is_integral_v<Number>,
          [member](const TunedPolicy& policy) { return double(policy.waste.*member); },
          [member](TunedPolicy& policy, double value) {
            policy.waste.*member = static_cast<Number>(value);
          }};
}

double ThreeDigits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return std::strtod(text, nullptr);
}

// Within the configuration's ranges, limited to values that can matter.
std::vector<Knob> WasteKnobs() {
  using Waste = WasteParameters;
  return {WasteKnob("patience", 1, 400, Scale::kLog, &Waste::patience),
          WasteKnob("settledPatience", 1, 400, Scale::kLog, &Waste::settled_patience),
          WasteKnob("optimismGpus", 0, 2, Scale::kLinear, &Waste::optimism),
          WasteKnob("fragmentation", 0, 4, Scale::kLinear, &Waste::fragmentation),
          WasteKnob("settledFragmentation", 0, 4, Scale::kLinear, &Waste::settled_fragmentation),
          WasteKnob("scarcityExponent", 1, 20, Scale::kLog, &Waste::scarcity_exponent),
          WasteKnob("scarcityLimitGpus", 0, 8, Scale::kLinear, &Waste::scarcity_limit),
          WasteKnob("sharePriceGpus", 0, 0.2, Scale::kLinear, &Waste::share_price),
          WasteKnob("modelPriceGpus", 0, 2, Scale::kLinear, &Waste::model_price),
          WasteKnob("bestFitGpus", 0, 0.5, Scale::kLinear, &Waste::best_fit),
          WasteKnob("settledBestFitGpus", 0, 3, Scale::kLinear, &Waste::settled_best_fit)};
}

}  // namespace

double Knob::ValueAt(double coordinate) const {
  const double at = std::clamp(coordinate, 0.0, 1.0);
  const double value =
      scale == Scale::kLog ? low * std::pow(high / low, at) : low + (high - low) * at;
  return whole ? std::round(value) : ThreeDigits(value);
}

double Knob::CoordinateOf(double value) const {
  const double within = std::clamp(value, low, high);
  return scale == Scale::kLog ? std::log(within / low) / std::log(high / low)
                              : (within - low) / (high - low);
}

Result<std::vector<Knob>> KnobsOf(const TunedPolicy& policy) {
  std::vector<Knob> knobs;
  for (std::size_t i = 0; i < policy.profile.scorers.size(); ++i) {
    if (MixUseOf(policy.profile.scorers[i].name) == MixUse::kDraws) knobs = WasteKnobs();
  }
  for (std::size_t i = 1; i < policy.profile.scorers.size(); ++i) {
    if (policy.profile.scorers[i].name == kDomainLocality) continue;  // traces have no groups
    knobs.push_back(WeightKnob(policy.profile, i));
  }
  if (!knobs.empty()) return knobs;
  return Invalid("profile " + policy.profile.name +
                 ": want two scorers or a scorer with parameters, got nothing to search");
}

TunedPolicy At(const TunedPolicy& policy, const std::vector<Knob>& knobs, const Point& point) {
  TunedPolicy turned = policy;
  for (std::size_t i = 0; i < knobs.size(); ++i) {
    knobs[i].set(turned, knobs[i].ValueAt(point[i]));
  }
  return turned;
}

Point PointOf(const TunedPolicy& policy, const std::vector<Knob>& knobs) {
  Point point;
  for (const Knob& knob : knobs) point.push_back(knob.CoordinateOf(knob.get(policy)));
  return point;
}

}  // namespace berth::replay
