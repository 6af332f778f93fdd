// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace berth {

// How many insertions, deletions and replacements of a character make one text of the other
// (Levenshtein 1966). Time: the product of their sizes.
std::size_t EditDistance(std::string_view a, std::string_view b);

// The word that a typo may stand for: the candidate with the least EditDistance, the first of
// several. Empty if none is within a third of the word's length.
std::string NearestWord(std::string_view word, std::span<const std::string> candidates);

}  // namespace berth
