// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

namespace berth {

std::string OnOneLine(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = [&](std::size_t at) {
      return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
    };
    const int a = byte(i), b = byte(i + 1), c = byte(i + 2);
    const bool turns =
        (b == 0x80 && c >= 0xa8 && c <= 0xae) || (b == 0x81 && c >= 0xa6 && c <= 0xa9);
    if (a < 0x20 || a == 0x7f) text[i] = ' ';
    if (a == 0xc2 && b >= 0x80 && b < 0xa0) text.replace(i, 2, " ");  // U+0080 to U+009F
    if (a == 0xe2 && turns) text.replace(i, 3, " ");  // U+2028 to U+202E, U+2066 to U+2069
  }
  return text;
}

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
