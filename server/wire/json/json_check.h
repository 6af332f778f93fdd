// SPDX-License-Identifier: Apache-2.0
//
// CheckJson: whether a text is JSON throughout (RFC 8259), in one pass and without memory.
// simdjson's On-Demand parser does not look at what nobody reads.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"

namespace berth::wire {

constexpr int kMostJsonLevels = 1000;
// Of values, keys and the signs around them. simdjson keeps four bytes for each.
constexpr std::size_t kMostJsonTokens = std::size_t{24} << 20;

// Error (kInvalidArgument): "JSON: byte 17: want a value", also for a text beyond these limits and
// for one with something behind its one value. UTF-8 is left to simdjson, which checks all of it.
Status CheckJson(std::string_view text);

}  // namespace berth::wire
