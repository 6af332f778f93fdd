// SPDX-License-Identifier: Apache-2.0
//
// The "HOST:PORT" of a listener, as it is written in options and settings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth {

struct ListenAddress {
  std::string host;  // an address or name without brackets; empty: every address
  std::uint16_t port = 0;
};

// "127.0.0.1:0", "[::1]:8080", "localhost:8080", ":8080". Error: kInvalidArgument "want
// HOST:PORT, ...".
Result<ListenAddress> ParseListenAddress(std::string_view text);

}  // namespace berth
