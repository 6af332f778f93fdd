// SPDX-License-Identifier: Apache-2.0
#include "base/listen_address.h"

#include "base/number.h"

namespace berth {
namespace {

tl::unexpected<Error> NotAnAddress(std::string_view text) {
  return Invalid("want HOST:PORT, [V6]:PORT or :PORT, got \"" + std::string(text) + "\"");
}

}  // namespace

Result<ListenAddress> ParseListenAddress(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return NotAnAddress(text);
  }
  std::string_view host = text.substr(0, colon);
  if (!host.empty() && host.front() == '[') {
    if (host.size() < 3 || host.back() != ']') {
      return NotAnAddress(text);
    }
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return NotAnAddress(text);  // a bare IPv6 address: which colon begins the port?
  }
  const Result<std::int64_t> port = ParseInt(text.substr(colon + 1), 0, 65535);
  if (!port) {
    return NotAnAddress(text);
  }
  return ListenAddress{std::string(host), static_cast<std::uint16_t>(*port)};
}

}  // namespace berth
