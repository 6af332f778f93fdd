// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"

#include <charconv>

namespace berth {

Result<std::int64_t> ParseInt(std::string_view text, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end || value < low || value > high) {
    return Invalid("want an integer from " + std::to_string(low) + " to " + std::to_string(high) +
                   ", got \"" + std::string(text) + "\"");
  }
  return value;
}

}  // namespace berth
