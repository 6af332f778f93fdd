// SPDX-License-Identifier: Apache-2.0
//
// Profiles of the configuration: what one that extends another has, and errors: a part of
// ProblemsOf and NotesOn (validate.h).
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace berth {

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

}  // namespace berth
