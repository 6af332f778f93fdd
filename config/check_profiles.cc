// SPDX-License-Identifier: Apache-2.0
#include "config/validate.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "scoring/registry.h"

namespace berth {
namespace {

using Problems = std::vector<std::string>;

// One profile alone is built with each scorer by itself, so that every faulty one is named.
void CheckScorers(const ProfileSpec& spec, const std::string& place, Problems& problems) {
  auto built = BuildProfile(spec, {});
  if (built) return;
  const std::size_t before = problems.size();
  std::set<std::string> names;
  for (std::size_t i = 0; i < spec.scorers.size(); ++i) {
    const std::string& name = spec.scorers[i].name;
    const std::string path = place + "." + Element("scorers", i) + ".name: ";
    if (!names.insert(name).second) {
      problems.push_back(path + InQuotes(name) + " is there twice");
    } else if (name != kDomainLocality) {
      if (auto scorer = MakeScorer(name, {}); !scorer) {
        problems.push_back(path + scorer.error().message);
      }
    }
  }
  if (problems.size() == before) {
    problems.push_back(std::move(built).error().Within(place).message);
  }
}

bool Has(const ProfileSpec& spec, std::string_view scorer) {
  return std::ranges::find(spec.scorers, scorer, &ScorerSpec::name) != spec.scorers.end();
}

bool LeavesOut(const ProfileSpec& spec, std::string_view scorer) {
  return std::ranges::find(spec.without, scorer) != spec.without.end();
}

void CheckExtension(const ProfileSpec& spec, const std::string& place, Problems& problems) {
  if (!spec.extends.empty() && FindBuiltinProfile(spec.extends) == nullptr) {
    problems.push_back(place + ".extends: want one of " +
                       Join(BuiltinProfiles(), " ", &ProfileSpec::name) + ", got " +
                       WrongPolicy(spec.extends));
  }
  std::vector<std::string_view> known = ScorerNames();
  known.push_back(kDomainLocality);
  for (std::size_t i = 0; i < spec.without.size(); ++i) {
    const std::string path = place + "." + Element("without", i) + ": ";
    if (std::ranges::find(known, spec.without[i]) == known.end()) {
      problems.push_back(path + "want one of " + Join(known, " ") + ", got " +
                         InQuotes(spec.without[i]));
    } else if (Has(spec, spec.without[i])) {
      problems.push_back(path + InQuotes(spec.without[i]) + " is one of scorers too");
    }
  }
}

void CheckProfiles(const Config& config, Problems& problems) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < config.profiles.size(); ++i) {
    const ProfileSpec& spec = config.profiles[i];
    const std::string place = Element("profiles", i);
    if (spec.name.empty()) {
      problems.push_back(place + ".name: want a name, got \"\"");
    } else if (!names.insert(spec.name).second) {
      problems.push_back(place + ".name: " + InQuotes(spec.name) + " is there twice");
    }
    CheckScorers(spec, place, problems);
    CheckExtension(spec, place, problems);
  }
  if (names.contains(config.profile) || FindBuiltinProfile(config.profile) != nullptr) return;
  for (const ProfileSpec& spec : BuiltinProfiles()) names.insert(spec.name);
  problems.push_back("profile: want one of " + Join(names, " ") + ", got " +
                     WrongPolicy(config.profile));
}

// Those of the default profile that are gone, and nobody said so.
std::vector<std::string> LostScorers(const ProfileSpec& spec) {
  std::vector<std::string> lost;
  for (const ScorerSpec& scorer : FindBuiltinProfile(DefaultConfig().profile)->scorers) {
    if (!Has(spec, scorer.name) && !LeavesOut(spec, scorer.name)) lost.push_back(scorer.name);
  }
  return lost;
}

}  // namespace

void Extend(ProfileSpec& profile, bool says_devices, bool says_ties) {
  const ProfileSpec* const base = FindBuiltinProfile(profile.extends);
  if (base == nullptr) return;
  if (!says_devices) profile.devices = base->devices;
  if (!says_ties) profile.ties = base->ties;
  for (const ScorerSpec& scorer : base->scorers) {
    if (!Has(profile, scorer.name) && !LeavesOut(profile, scorer.name)) {
      profile.scorers.push_back(scorer);
    }
  }
}

std::vector<std::string> ProblemsOfProfiles(const Config& config) {
  Problems problems;
  CheckProfiles(config, problems);
  return problems;
}

std::vector<std::string> NotesOnProfiles(const Config& config) {
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < config.profiles.size(); ++i) {
    const ProfileSpec& spec = config.profiles[i];
    const std::string place = Element("profiles", i);
    if (FindBuiltinProfile(spec.name) != nullptr) {
      notes.push_back(place + ".name: overrides the built-in profile " + InQuotes(spec.name));
    }
    if (spec.scorers.empty() && spec.ties == TieRule::kEqual) {
      notes.push_back(place + ".scorers: empty, so all nodes score the same");
    }
    const std::vector<std::string> lost = LostScorers(spec);
    if (!spec.scorers.empty() && !lost.empty()) {
      notes.push_back(place + ".scorers: without " + Join(lost, ", ") +
                      " of the default profile; "
                      "want `extends: " +
                      DefaultConfig().profile + "`, or `without` if that is meant");
    }
    const bool is_of_class =
        std::ranges::find(config.workload_classes, spec.name, &WorkloadClass::profile) !=
        config.workload_classes.end();
    if (spec.name != config.profile && !is_of_class) {
      notes.push_back(place + ": not used; profile is " + InQuotes(config.profile));
    }
  }
  return notes;
}

}  // namespace berth
