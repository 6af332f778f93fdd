// SPDX-License-Identifier: Apache-2.0
//
// Errors of workload classes and traits: a part of ProblemsOf and NotesOn (validate.h).
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace berth {

// Errors: a missing or duplicate name, invalid labels, an unknown trait, a trait that a class names
// twice, a class whose pods an earlier class matches.
std::vector<std::string> ProblemsOfClasses(const Config& config);

// Notes: classes whose preferences have no effect, because the profile lacks the scorer.
std::vector<std::string> NotesOnClasses(const Config& config);

}  // namespace berth
