// SPDX-License-Identifier: Apache-2.0
//
// What somebody may have meant who wrote something else.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace berth {

// The candidate at the least EditDistance (base/edit_distance.h), of several the first; empty: none
// is within a third of the word's length.
std::string NearestWord(std::string_view word, std::span<const std::string> candidates);

}  // namespace berth
