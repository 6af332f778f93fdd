// SPDX-License-Identifier: Apache-2.0
//
// Knobs: the numbers of a policy that a search varies, each with its range and scale.
//
// A search works on points of the unit cube, one coordinate per knob; on a logarithmic scale equal
// steps are equal factors.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "scoring/profile.h"

namespace berth::replay {

// What a search varies.
struct TunedPolicy {
  ProfileSpec profile;
  WasteParameters waste = {};  // of the scorer expected-waste, where the profile has it
};

enum class Scale { kLinear, kLog };

struct Knob {
  std::string name;          // "scorers[best-fit].weight", "expectedWaste.patience"
  double low = 0, high = 1;  // kLog: low > 0
  Scale scale = Scale::kLinear;
  bool whole = false;  // only whole numbers; else three digits, as a configuration should have them
  std::function<double(const TunedPolicy&)> get;
  std::function<void(TunedPolicy&, double)> set;

  // The value at a coordinate, and the coordinate of a value; both are cut to the range.
  [[nodiscard]] double ValueAt(double coordinate) const;
  [[nodiscard]] double CoordinateOf(double value) const;
};

using Point = std::vector<double>;  // one coordinate in [0, 1] per knob

// Only the ratios of weights matter: the first scorer's weight is kFirstWeight and stays, the
// others' are knobs, and so are the parameters of expected-waste, except `fills` and `coverage`,
// where more is always better and slower. Error: kInvalidArgument if there is no knob.
constexpr int kFirstWeight = 100;
Result<std::vector<Knob>> KnobsOf(const TunedPolicy& policy);

// The policy with its knobs at that point.
TunedPolicy At(const TunedPolicy& policy, const std::vector<Knob>& knobs, const Point& point);
Point PointOf(const TunedPolicy& policy, const std::vector<Knob>& knobs);

}  // namespace berth::replay
