// SPDX-License-Identifier: Apache-2.0
#include "cel/runes.h"

#include <cstddef>
#include <cstdint>

namespace berth::cel {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

// How many bytes the character has that begins so; 0 = none begins so.
std::size_t SizeOfRune(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  return first >= 0xF0 && first < 0xF5 ? 4 : 0;
}

}  // namespace

std::u32string Runes(std::string_view text) {
  std::u32string runes;
  runes.reserve(text.size());
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const std::size_t size = SizeOfRune(first);
    char32_t rune = size <= 1 ? first : first & (0xFFU >> (size + 1));
    bool good = size > 0 && size <= text.size();
    for (std::size_t i = 1; good && i < size; ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      good = (byte & 0xC0U) == 0x80U;
      rune = rune << 6U | (byte & 0x3FU);
    }
    good = good && (size < 3 || rune >= 0x800) && (size < 4 || rune >= 0x10000) &&
           rune <= 0x10FFFF && (rune < 0xD800 || rune > 0xDFFF);
    runes += good ? rune : kReplacement;
    text.remove_prefix(good ? size : 1);
  }
  return runes;
}

std::string Utf8(std::u32string_view runes) {
  std::string text;
  const auto byte = [&text](std::uint32_t bits) { text += static_cast<char>(bits); };
  for (const char32_t rune : runes) {
    if (rune < 0x80) {
      byte(rune);
      continue;
    }
    if (rune < 0x800) {
      byte(0xC0U | rune >> 6U);
    } else if (rune < 0x10000) {
      byte(0xE0U | rune >> 12U);
      byte(0x80U | (rune >> 6U & 0x3FU));
    } else {
      byte(0xF0U | rune >> 18U);
      byte(0x80U | (rune >> 12U & 0x3FU));
      byte(0x80U | (rune >> 6U & 0x3FU));
    }
    byte(0x80U | (rune & 0x3FU));
  }
  return text;
}

}  // namespace berth::cel
