// SPDX-License-Identifier: Apache-2.0
//
// Parts of the messages about a configuration.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace berth {

// "profiles[2]".
inline std::string Element(std::string_view list, std::size_t i) {
  return std::string(list) + "[" + std::to_string(i) + "]";
}

inline std::string InQuotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

}  // namespace berth
