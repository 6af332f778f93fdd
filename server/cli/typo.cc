// SPDX-License-Identifier: Apache-2.0
#include "server/cli/typo.h"

#include <algorithm>
#include <cstddef>

#include "base/edit_distance.h"

namespace berth {

std::string NearestWord(std::string_view word, std::span<const std::string> candidates) {
  std::string nearest;
  std::size_t least = std::max<std::size_t>(word.size() / 3, 1) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = EditDistance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace berth
