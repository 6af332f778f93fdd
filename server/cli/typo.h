// SPDX-License-Identifier: Apache-2.0
//
// Suggests the word that a typo may stand for.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace berth {

// The candidate with the least EditDistance (base/edit_distance.h); the first of several. Empty if
// none is within a third of the word's length.
std::string NearestWord(std::string_view word, std::span<const std::string> candidates);

}  // namespace berth
