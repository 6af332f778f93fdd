// SPDX-License-Identifier: Apache-2.0
#include "server/kube/client/api_client.h"

#include <utility>

#include "base/dns_name.h"
#include "server/wire/api/watch_json.h"

namespace berth::kube {

std::string RefusalText(const ApiResponse& response) {
  const std::string message = wire::DecodeStatus(response.body).message;
  return "the API server answered " + std::to_string(response.status) +
         (message.empty() ? "" : ": " + message);
}

namespace {

constexpr std::size_t kMostShown = 80;

tl::unexpected<Error> NoName(std::string_view what, std::string_view wanted,
                             std::string_view name) {
  return Invalid(std::string(what) + ": want a DNS-1123 " + std::string(wanted) + ", got \"" +
                 std::string(name.substr(0, kMostShown)) + "\"");
}

Result<std::string> Namespaced(std::string_view api, std::string_view namespace_name,
                               std::string_view resource) {
  if (!IsDnsLabel(namespace_name)) return NoName("namespace", "label", namespace_name);
  std::string path(api);
  return path.append("/namespaces/").append(namespace_name).append("/").append(resource);
}

Result<std::string> WithName(std::string path, std::string_view what, std::string_view name) {
  if (!IsDnsSubdomain(name)) return NoName(what, "name", name);
  return path.append("/").append(name);
}

}  // namespace

Result<std::string> PodPath(std::string_view namespace_name, std::string_view name) {
  BERTH_TRY(std::string path, Namespaced("/api/v1", namespace_name, "pods"));
  return WithName(std::move(path), "pod name", name);
}

Result<std::string> PodsPath(std::string_view namespace_name) {
  return Namespaced("/api/v1", namespace_name, "pods");
}

Result<std::string> NodePath(std::string_view name) {
  return WithName("/api/v1/nodes", "node name", name);
}

Result<std::string> ClaimPath(std::string_view namespace_name, std::string_view name) {
  BERTH_TRY(std::string path,
            Namespaced("/apis/resource.k8s.io/v1", namespace_name, "resourceclaims"));
  return WithName(std::move(path), "claim name", name);
}

Result<std::string> EventsPath(std::string_view namespace_name) {
  return Namespaced("/api/v1", namespace_name, "events");
}

std::string EscapeForQuery(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      escaped += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      escaped += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return escaped;
}

}  // namespace berth::kube
