// SPDX-License-Identifier: Apache-2.0
//
// Writing JSON without a document in memory.
#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

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

}  // namespace berth::wire
