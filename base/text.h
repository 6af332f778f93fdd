// SPDX-License-Identifier: Apache-2.0
//
// Small operations on texts and lists.
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth {

// The texts with `separator` between every two. `text_of` maps an element to its text:
//
//   Join(words, ", ")    Join(presets, ", ", &TopologyPreset::name)
template <class Range, class TextOf = std::identity>
std::string Join(const Range& elements, std::string_view separator, TextOf text_of = {}) {
  std::string joined;
  bool first = true;
  for (const auto& element : elements) {
    if (!first) joined += separator;
    first = false;
    joined += std::invoke(text_of, element);
  }
  return joined;
}

// One more of several facts in a text.
inline void AddFact(std::string& text, std::string_view fact) {
  if (!text.empty() && !fact.empty()) text += "; ";
  text += fact;
}

// The first `most` of them, or all.
template <class T>
std::span<const T> FirstOf(const std::vector<T>& all, std::size_t most) {
  return std::span(all).first(std::min(most, all.size()));
}

// "a, b, c and 2 more".
inline std::string Listed(const std::vector<std::string>& names, std::size_t most = 3) {
  const std::string text = Join(FirstOf(names, most), ", ");
  return names.size() <= most ? text
                              : text + " and " + std::to_string(names.size() - most) + " more";
}

// 0, 1, ... so many.
template <class T = std::size_t>
std::vector<T> UpTo(std::size_t count) {
  std::vector<T> all(count);
  std::iota(all.begin(), all.end(), T{0});
  return all;
}

// "2 pods", "1 pod".
std::string CountText(std::integral auto count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

// The text without the blanks (space, tab, line ends) at its beginning and its end.
inline std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// The text, or as much of its beginning as fits into `most` bytes with "..." behind it. No UTF-8
// character is cut. Requires: most >= 3.
inline std::string Shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  constexpr std::string_view kMore = "...";
  std::size_t size = most - kMore.size();
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  while (size > 0 && continues(text[size])) --size;
  return std::string(text.substr(0, size)).append(kMore);
}

// The text with blanks for control characters, those of C1 and those that turn the direction of
// writing included: nothing moves a terminal's cursor, nothing begins a line or hides another.
std::string OnOneLine(std::string text);

// The next part of the text, trimmed; it and the separator behind it are taken from the text.
inline std::string_view NextPart(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = Trimmed(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

// The parts between separators, trimmed; empty ones are left out. Views of the text.
inline std::vector<std::string_view> PartsOf(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    if (const auto part = NextPart(text, separator); !part.empty()) parts.push_back(part);
  }
  return parts;
}

// How many insertions, deletions and replacements of a character make one text of the other
// (Levenshtein 1966). Time: the product of their sizes.
std::size_t EditDistance(std::string_view a, std::string_view b);

// The word that a typo may stand for: the candidate with the least EditDistance, the first of
// several. Empty if none is within a third of the word's length.
std::string NearestWord(std::string_view word, std::span<const std::string> candidates);

// Strict numbers: the whole text or nothing, no leading blanks, no locale. `base` is of integers.
template <class Number>
std::optional<Number> ReadNumber(std::string_view text, int base = 10) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  std::from_chars_result read;
  if constexpr (std::integral<Number>) {
    read = std::from_chars(text.data(), end, number, base);
  } else {
    read = std::from_chars(text.data(), end, number);
  }
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

// An integer in [low, high]. Error: kInvalidArgument "want an integer from LOW to HIGH, got TEXT".
Result<std::int64_t> ParseInt(std::string_view text, std::int64_t low, std::int64_t high);

}  // namespace berth
