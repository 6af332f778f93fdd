// SPDX-License-Identifier: Apache-2.0
//
// Writing JSON without a document in memory.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace berth::wire {

// Appends the text as a JSON string, quotes included. Control characters are escaped, bytes that
// are not UTF-8 become U+FFFD.
void AppendString(std::string& out, std::string_view text);

void AppendNumber(std::string& out, std::integral auto number) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

// {"key":"text"} for short answers such as errors.
std::string ObjectOf(std::string_view key, std::string_view text);

// CheckJson: whether a text is JSON throughout (RFC 8259), in one pass and without memory.
// simdjson's On-Demand parser does not look at what nobody reads.

constexpr int kMostJsonLevels = 1000;
// Of values, keys and the signs around them. simdjson keeps four bytes for each.
constexpr std::size_t kMostJsonTokens = std::size_t{24} << 20;

// Error (kInvalidArgument): "JSON: byte 17: want a value", also for a text beyond these limits and
// for one with something behind its one value. UTF-8 is left to simdjson, which checks all of it.
Status CheckJson(std::string_view text);

// Times as Kubernetes and its agents write them.

// RFC 3339: "2026-11-23T00:15:00Z", "2026-11-23T00:15:00+01:00"; fractions of a second are passed
// over. Empty where the text is no time, or one that the clock may not hold: before 1970, or from
// 2200 on.
std::optional<WallTime> ParseTime(std::string_view text);

}  // namespace berth::wire
