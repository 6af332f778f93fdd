// SPDX-License-Identifier: Apache-2.0
//
// Texts as their characters: CEL counts and cuts by code points.
#pragma once

#include <string>
#include <string_view>

namespace berth::cel {

// What is no UTF-8 becomes U+FFFD, byte for byte.
std::u32string Runes(std::string_view text);
std::string Utf8(std::u32string_view runes);

}  // namespace berth::cel
