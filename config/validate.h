// SPDX-License-Identifier: Apache-2.0
//
// Checks across settings that are each well formed: names that must exist, pairs that belong
// together, addresses. Validate (config.h) returns the first problem.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace berth {

// Each begins with the path of its field: "profiles[1].name: want a name, got \"\"".
std::vector<std::string> ProblemsOf(const Config& config);

// Settings that are allowed and may be a mistake, in the same form: a profile without scorers, one
// that overrides a built-in profile, one that is not used.
std::vector<std::string> NotesOn(const Config& config);

// Adds what the profile has from the built-in one that it extends: scorers that it neither names
// nor leaves out, behind its own, and the rules that it does not say. Doing it twice changes
// nothing. Nothing happens where it extends none, or one that does not exist.
void Extend(ProfileSpec& profile, bool says_devices, bool says_ties);

}  // namespace berth
