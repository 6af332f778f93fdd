// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace berth {

// How many insertions, deletions and replacements of a character make one text of the other
// (Levenshtein 1966). Time: the product of their sizes.
std::size_t EditDistance(std::string_view a, std::string_view b);

}  // namespace berth
