// SPDX-License-Identifier: Apache-2.0
#include "base/dns_name.h"

#include <algorithm>

namespace berth {
namespace {

bool IsAlphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool IsPart(std::string_view part) {
  return !part.empty() && IsAlphanumeric(part.front()) && IsAlphanumeric(part.back()) &&
         std::ranges::all_of(part, [](char c) { return IsAlphanumeric(c) || c == '-'; });
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

}  // namespace berth
