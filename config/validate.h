// SPDX-License-Identifier: Apache-2.0
//
// Checks across settings that are each well formed: names that must exist, pairs that belong
// together, addresses. Validate (config.h) returns the first problem.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace berth {

// Each begins with the path of its field: "profiles[1].name: want a name, got \"\"".
std::vector<std::string> ProblemsOf(const Config& config);

// Settings that are allowed and may be a mistake, in the same form: a profile without scorers, one
// that overrides a built-in profile, one that is not used.
std::vector<std::string> NotesOn(const Config& config);

// Errors of workload classes and traits: a part of ProblemsOf and NotesOn (validate.h).

// Errors: a missing or duplicate name, invalid labels, an unknown trait, a trait that a class names
// twice, a class whose pods an earlier class matches.
std::vector<std::string> ProblemsOfClasses(const Config& config);

// Notes: classes whose preferences have no effect, because the profile lacks the scorer.
std::vector<std::string> NotesOnClasses(const Config& config);

// Profiles of the configuration: what one that extends another has, and errors: a part of
// ProblemsOf and NotesOn (validate.h).

// Adds what the profile has from the built-in one that it extends: scorers that it neither names
// nor leaves out, behind its own, and the rules that it does not say. Doing it twice changes
// nothing. Nothing happens where it extends none, or one that does not exist (ProblemsOfProfiles).
void Extend(ProfileSpec& profile, bool says_devices, bool says_ties);

// Errors: a missing or duplicate name, a scorer or a profile that does not exist, a scorer that is
// named and left out; `profile` names none.
std::vector<std::string> ProblemsOfProfiles(const Config& config);

// Notes: a profile that overrides a built-in one, scores nothing, is not used, or has lost scorers
// of the default profile without saying so.
std::vector<std::string> NotesOnProfiles(const Config& config);

// Parts of the messages about a configuration.

// "profiles[2]".
inline std::string Element(std::string_view list, std::size_t i) {
  return std::string(list) + "[" + std::to_string(i) + "]";
}

inline std::string InQuotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

}  // namespace berth
