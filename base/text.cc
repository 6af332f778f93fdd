// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

namespace berth {

std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);  // from the beginning of a to each beginning of b
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

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

Result<std::int64_t> ParseInt(std::string_view text, std::int64_t low, std::int64_t high) {
  const auto value = ReadNumber<std::int64_t>(text);
  if (!value || *value < low || *value > high) {
    return Invalid("want an integer from " + std::to_string(low) + " to " + std::to_string(high) +
                   ", got \"" + std::string(text) + "\"");
  }
  return *value;
}

}  // namespace berth
