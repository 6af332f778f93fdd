// SPDX-License-Identifier: Apache-2.0
//
// Names of Kubernetes objects (RFC 1123). A valid name contains no character with a meaning in a
// path or a query.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth {

// A namespace: 1..63 of a-z, 0-9 and '-', neither first nor last a '-'.
[[nodiscard]] bool IsDnsLabel(std::string_view name);

// A pod, a node, a claim: 1..253 characters, such labels (of any length) joined by '.'.
[[nodiscard]] bool IsDnsSubdomain(std::string_view name);

// "namespace/name": one object of a kind in the whole cluster.
[[nodiscard]] std::string FullName(std::string_view namespace_name, std::string_view name);

// The "HOST:PORT" of a listener, as it is written in options and settings.

struct ListenAddress {
  std::string host;  // an address or name without brackets; empty: every address
  std::uint16_t port = 0;
};

// "127.0.0.1:0", "[::1]:8080", "localhost:8080", ":8080". Error: kInvalidArgument "want
// HOST:PORT, ...".
Result<ListenAddress> ParseListenAddress(std::string_view text);

}  // namespace berth
