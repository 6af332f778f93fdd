// SPDX-License-Identifier: Apache-2.0
//
// Errors of workload classes and traits: a part of ProblemsOf and NotesOn (validate.h).
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace berth {

// No name, or one that is there twice; labels that are none; a trait that nobody knows, or that a
// class wants in two ways; a class that no pod can be of, for an earlier one takes all its pods.
std::vector<std::string> ProblemsOfClasses(const Config& config);

// Classes whose wishes count for nothing, as the profile has no scorer for them.
std::vector<std::string> NotesOnClasses(const Config& config);

}  // namespace berth
