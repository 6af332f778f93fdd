// SPDX-License-Identifier: Apache-2.0
//
// The one list of filters, scorers and built-in profiles. A new scorer is one line here.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "scoring/filter.h"
#include "scoring/profile.h"
#include "scoring/scorer.h"
#include "scoring/waste/request_mix.h"

namespace berth {

// Every filter, in the order in which they are asked.
std::span<const Filter* const> BuiltinFilters();

// The reason of the first filter that refuses; kFits if none does.
Reason FirstObjection(const Node& node, const RequestShape& shape);

inline bool Fits(const Node& node, const RequestShape& shape) {
  return FirstObjection(node, shape) == Reason::kFits;
}

// The scorers of one node: all but kDomainLocality.
std::vector<std::string_view> ScorerNames();
// Error: kInvalidArgument naming the scorers there are, kDomainLocality as well.
Result<std::unique_ptr<const Scorer>> MakeScorer(std::string_view name, const RequestMix& mix,
                                                 const WasteParameters& waste = {},
                                                 const Fleet& fleet = {});
MixUse MixUseOf(std::string_view scorer);

// The policies that come with Berth, each usable by its name.
std::span<const ProfileSpec> BuiltinProfiles();
const ProfileSpec* FindBuiltinProfile(std::string_view name);

}  // namespace berth
