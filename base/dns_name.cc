// SPDX-License-Identifier: Apache-2.0
#include "base/dns_name.h"

#include <algorithm>

#include "base/text.h"

namespace berth {
namespace {

bool IsAlphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool IsPart(std::string_view part) {
  return !part.empty() && IsAlphanumeric(part.front()) && IsAlphanumeric(part.back()) &&
         std::ranges::all_of(part, [](char c) { return IsAlphanumeric(c) || c == '-'; });
}

tl::unexpected<Error> NotAnAddress(std::string_view text) {
  return Invalid("want HOST:PORT, [V6]:PORT or :PORT, got \"" + std::string(text) + "\"");
}

}  // namespace

bool IsDnsLabel(std::string_view name) { return name.size() <= 63 && IsPart(name); }

bool IsDnsSubdomain(std::string_view name) {
  if (name.size() > 253) return false;
  while (true) {
    const std::size_t dot = name.find('.');
    if (!IsPart(name.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    name.remove_prefix(dot + 1);
  }
}

std::string FullName(std::string_view namespace_name, std::string_view name) {
  return std::string(namespace_name).append("/").append(name);
}

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
