// SPDX-License-Identifier: Apache-2.0
#include "config/base64.h"

#include <cstdint>

namespace berth {

std::optional<std::string> DecodeBase64(std::string_view text) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t group = 0;  // six bits of each of its characters
  int characters = 0, padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    const std::size_t value = kAlphabet.find(c);
    if (c == '=' ? characters < 2 : (value == std::string_view::npos || padding > 0)) {
      return std::nullopt;
    }
    padding += c == '=' ? 1 : 0;
    group = group << 6 | static_cast<std::uint32_t>(c == '=' ? 0 : value);
    if (++characters < 4) continue;
    for (int i = 0; i < 3 - padding; ++i) {
      bytes += static_cast<char>(group >> (16 - 8 * i) & 0xff);
    }
    group = 0;
    characters = 0;
    if (padding > 0) padding = 4;  // nothing may follow
  }
  if (characters != 0) return std::nullopt;
  return bytes;
}

}  // namespace berth
