// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/plugin_names.h"

#include <algorithm>
#include <cctype>

namespace berth::node {
namespace {

constexpr std::size_t kMostDomainBytes = 253;
constexpr std::size_t kMostNameBytes = 63;
constexpr std::size_t kMostEndpointBytes = 63;  // a socket's path has at most 107 in all

bool IsLetterOrDigit(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool IsName(std::string_view text, std::size_t most, std::string_view between) {
  return !text.empty() && text.size() <= most && IsLetterOrDigit(text.front()) &&
         IsLetterOrDigit(text.back()) && std::ranges::all_of(text, [between](char c) {
           return IsLetterOrDigit(c) || between.find(c) != std::string_view::npos;
         });
}

std::string Quoted(std::string_view text) {
  constexpr std::size_t kMost = 100;
  return "\"" + std::string(text.substr(0, kMost)) + (text.size() > kMost ? "..." : "") + "\"";
}

}  // namespace

Status CheckResourceName(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos || !IsName(name.substr(0, slash), kMostDomainBytes, "-.") ||
      !IsName(name.substr(slash + 1), kMostNameBytes, "-._")) {
    return Invalid("resource_name: want a domain, a slash and a name, got " + Quoted(name));
  }
  return {};
}

Status CheckEndpoint(std::string_view name) {
  if (!IsName(name, kMostEndpointBytes, "-._")) {
    return Invalid("endpoint: want the name of a socket, at most 63 bytes, got " + Quoted(name));
  }
  if (name == "kubelet.sock" || name.starts_with("berth-")) {
    return Invalid("endpoint: want a name that neither the kubelet nor berth-node uses, got " +
                   Quoted(name));
  }
  return {};
}

std::string EndpointFor(std::string_view resource, unsigned number) {
  std::string name = "berth-" + std::string(resource);
  std::ranges::replace(name, '/', '-');
  std::ranges::replace(name, '.', '-');
  constexpr std::size_t kMost = 56;
  const std::string counted = number == 0 ? "" : "-" + std::to_string(number);
  return name.substr(0, kMost) + counted + ".sock";
}

std::string_view WithoutReplica(std::string_view device) {
  return device.substr(0, device.find("::"));
}

}  // namespace berth::node
