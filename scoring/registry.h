// SPDX-License-Identifier: Apache-2.0
//
// The one list of filters, scorers and built-in profiles. A new scorer is one line here. Programs
// that compare policies add theirs (bench/baselines).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "scoring/profile.h"
#include "scoring/scorer.h"
#include "scoring/waste/request_mix.h"

namespace berth {

// The reason of the first filter (filters/device_fit.h) that refuses; kFits if none does.
Reason FirstObjection(const Node& node, const RequestShape& shape);

inline bool Fits(const Node& node, const RequestShape& shape) {
  return FirstObjection(node, shape) == Reason::kFits;
}

using MadeScorer = std::unique_ptr<const Scorer>;
struct ScorerEntry {
  std::string_view name;
  MixUse mix_use;
  MadeScorer (*make)(const RequestMix& mix, const WasteParameters& waste, const Fleet& fleet);
};
template <class T>
MadeScorer Make(const RequestMix&, const WasteParameters&, const Fleet&) {
  return std::make_unique<const T>();
}

// Adds policies to those of the service. Before main, where other threads are not yet.
void AddToRegistry(std::span<const ScorerEntry> scorers, std::vector<ProfileSpec> profiles);

// The scorers of one node: all but kDomainLocality.
std::vector<std::string_view> ScorerNames();
// Error: kInvalidArgument naming the scorers there are, kDomainLocality as well.
Result<MadeScorer> MakeScorer(std::string_view name, const RequestMix& mix,
                              const WasteParameters& waste = {}, const Fleet& fleet = {});
// The name in quotes, with where it is now if it was a policy of the service once.
std::string WrongPolicy(std::string_view name);
MixUse MixUseOf(std::string_view scorer);
// Whether the service has it, and not only this program (AddToRegistry).
bool IsServed(std::string_view scorer);

// The policies that come with Berth, each usable by its name; in the order of the names.
std::span<const ProfileSpec> BuiltinProfiles();
const ProfileSpec* FindBuiltinProfile(std::string_view name);

}  // namespace berth
