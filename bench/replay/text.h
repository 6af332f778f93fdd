// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace berth::replay {

// "0042": the number with as many digits as every number below `count` needs, so that names sort as
// numbers.
inline std::string Padded(std::size_t number, std::size_t count) {
  const std::string digits = std::to_string(number);
  const std::size_t width = std::to_string(count == 0 ? 0 : count - 1).size();
  return std::string(width - digits.size(), '0') + digits;
}

}  // namespace berth::replay
