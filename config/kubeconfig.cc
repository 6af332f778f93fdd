// SPDX-License-Identifier: Apache-2.0
#include "config/kubeconfig.h"

#include <cstdint>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "config/parse_yaml.h"

namespace berth {
namespace {

// A node of the document and how to get there. Constant, because to assign a YAML::Node changes the
// document that it belongs to.
struct Place {
  const YAML::Node node;
  const std::string path;  // "users[admin].user"
};

bool IsThere(const YAML::Node& node) { return node.IsDefined() && !node.IsNull(); }

std::string Quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

class KubeconfigReader {
 public:
  explicit KubeconfigReader(const std::string& origin) : origin_(origin) {}

  Result<ClusterAccess> Read(const YAML::Node& document, std::string_view wanted) {
    const Place root{document, ""};
    std::string context_name(wanted);
    if (context_name.empty()) {
      BERTH_TRY(context_name, Text(root, "current-context"));
    }
    if (context_name.empty()) {
      return Refuse(root, "current-context: want the name of a context, got none");
    }
    BERTH_TRY(const Place context, Named(root, "contexts", "context", context_name));
    BERTH_TRY(const std::string cluster_name, Required(context, "cluster"));
    BERTH_TRY(const std::string user_name, Text(context, "user"));
    BERTH_TRY(const std::string name_space, Text(context, "namespace"));
    if (!name_space.empty()) access_.default_namespace = name_space;
    BERTH_TRY(const Place cluster, Named(root, "clusters", "cluster", cluster_name));
    BERTH_TRY_STATUS(ReadCluster(cluster));
    if (!user_name.empty()) {
      BERTH_TRY(const Place user, Named(root, "users", "user", user_name));
      BERTH_TRY_STATUS(ReadUser(user));
    }
    return std::move(access_);
  }

 private:
  tl::unexpected<Error> Refuse(const Place& place, const std::string& problem) const {
    const int line = std::max(place.node.IsDefined() ? place.node.Mark().line : 0, 0) + 1;
    const std::string path = place.path.empty() ? "" : place.path + ".";
    return Invalid(origin_ + ":" + std::to_string(line) + ": " + path + problem);
  }

  // The value of a key; a null node where there is none. A key that is there twice is refused.
  Result<YAML::Node> Member(const Place& place, std::string_view key) const {
    if (!IsThere(place.node)) return YAML::Node();
    if (!place.node.IsMap()) return Refuse(place, std::string(key) + ": want it in a mapping");
    std::optional<YAML::Node> found;
    for (const auto& entry : place.node) {
      if (!entry.first.IsScalar() || entry.first.Scalar() != key) continue;
      if (found) return Refuse(place, std::string(key) + ": want it once, got it twice");
      found.emplace(entry.second);
    }
    return found ? *found : YAML::Node();
  }

  Result<std::string> Text(const Place& place, std::string_view key) const {
    BERTH_TRY(const YAML::Node value, Member(place, key));
    if (!IsThere(value)) return std::string();
    if (!value.IsScalar()) {
      return Refuse({value, place.path}, std::string(key) + ": want a text");
    }
    return value.Scalar();
  }

  Result<std::string> Required(const Place& place, std::string_view key) const {
    BERTH_TRY(std::string text, Text(place, key));
    if (text.empty()) return Refuse(place, std::string(key) + ": want a text, got none");
    return text;
  }

  static Place ItemOf(const YAML::Node& item, const std::string& list, const std::string& key) {
    return {item, list + "[" + key + "]"};
  }

  // contexts, clusters and users are lists of {name: NAME, <inner>: {...}}.
  Result<Place> Named(const Place& root, const std::string& list, const std::string& inner,
                      const std::string& name) const {
    BERTH_TRY(const YAML::Node items, Member(root, list));
    if (IsThere(items) && !items.IsSequence()) return Refuse({items, ""}, list + ": want a list");
    std::optional<Place> found;
    for (std::size_t i = 0; IsThere(items) && i < items.size(); ++i) {
      BERTH_TRY(const std::string item_name,
                Text(ItemOf(items[i], list, std::to_string(i)), "name"));
      if (item_name != name) continue;
      const Place named = ItemOf(items[i], list, name);
      if (found) return Refuse(named, "name: want it once, got it twice");
      BERTH_TRY(const YAML::Node content, Member(named, inner));
      if (!IsThere(content)) return Refuse(named, inner + ": want a mapping, got none");
      found.emplace(Place{content, named.path + "." + inner});
    }
    if (!found)
      return Refuse({items, ""}, list + ": want one named " + Quoted(name) + ", got none");
    return *found;
  }

  Status ReadCluster(const Place& cluster) {
    BERTH_TRY(access_.server, Required(cluster, "server"));
    if (!access_.server.starts_with("https://") && !access_.server.starts_with("http://")) {
      return Refuse(cluster, "server: want https://..., got " + Quoted(access_.server));
    }
    BERTH_TRY_STATUS(Unsupported(cluster, "proxy-url", "reach the API server directly"));
    BERTH_TRY(access_.ca_pem, Pem(cluster, "certificate-authority"));
    BERTH_TRY(access_.tls_server_name, Text(cluster, "tls-server-name"));
    BERTH_TRY(const std::string insecure, Text(cluster, "insecure-skip-tls-verify"));
    if (insecure != "" && insecure != "true" && insecure != "false") {
      return Refuse(cluster,
                    "insecure-skip-tls-verify: want true or false, got " + Quoted(insecure));
    }
    access_.insecure_skip_tls_verify = insecure == "true";
    if (access_.insecure_skip_tls_verify && !access_.ca_pem.empty()) {
      return Refuse(cluster,
                    "insecure-skip-tls-verify: want it without certificate-authority, got both");
    }
    return {};
  }

  Status ReadUser(const Place& user) {
    constexpr const char* kInstead = "use a token or a client certificate";
    for (const char* key :
         {"exec", "auth-provider", "username", "password", "as", "as-uid", "as-groups"}) {
      BERTH_TRY_STATUS(Unsupported(user, key, kInstead));
    }
    BERTH_TRY(access_.client_certificate_pem, Pem(user, "client-certificate"));
    BERTH_TRY(access_.client_key_pem, Pem(user, "client-key"));
    if (access_.client_certificate_pem.empty() != access_.client_key_pem.empty()) {
      return Refuse(user, "client-certificate: want it with client-key, got one of the two");
    }
    BERTH_TRY(access_.token, Text(user, "token"));
    access_.token = std::string(Trimmed(access_.token));
    BERTH_TRY(const std::string token_file, Text(user, "tokenFile"));
    if (!token_file.empty()) access_.token_file = Resolved(token_file);
    return {};
  }

  Status Unsupported(const Place& place, const char* key, const char* instead) const {
    BERTH_TRY(const YAML::Node value, Member(place, key));
    if (!IsThere(value) || (value.IsScalar() && value.Scalar().empty())) return {};
    return Refuse({value, place.path}, std::string(key) + ": not supported, " + instead);
  }

  // KEY-data, which is base64, else what the file KEY holds.
  Result<std::string> Pem(const Place& place, const std::string& key) const {
    BERTH_TRY(const std::string data, Text(place, key + "-data"));
    if (!data.empty()) {
      auto decoded = DecodeBase64(data);
      if (!decoded || decoded->empty()) return Refuse(place, key + "-data: want base64");
      return *std::move(decoded);
    }
    BERTH_TRY(const std::string file, Text(place, key));
    if (file.empty()) return std::string();
    BERTH_TRY(std::string text,
              Within(ReadFile(Resolved(file)), Refuse(place, key).value().message));
    if (text.empty()) return Refuse(place, key + ": want PEM, got an empty file " + file);
    return text;
  }

  [[nodiscard]] std::string Resolved(const std::string& file) const {
    return (std::filesystem::path(origin_).parent_path() / file).string();
  }

  const std::string& origin_;
  ClusterAccess access_;
};

}  // namespace

Result<ClusterAccess> ParseKubeconfig(const std::string& text, const std::string& origin,
                                      std::string_view context) {
  BERTH_TRY(const YAML::Node document, ParseYaml(text, origin));
  return KubeconfigReader(origin).Read(document, context);
}

Result<ClusterAccess> LoadKubeconfig(const std::string& path, std::string_view context) {
  BERTH_TRY(const std::string text, ReadFile(path));
  return ParseKubeconfig(text, path, context);
}

Result<ClusterAccess> InClusterAccess(const std::string& host, const std::string& port,
                                      const std::string& folder) {
  if (host.empty() || port.empty()) {
    return Invalid("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT: want both, got " +
                   Quoted(host) + " and " + Quoted(port) + " (not inside a pod?)");
  }
  ClusterAccess access;
  const bool ipv6 = host.find(':') != std::string::npos;
  access.server = "https://" + (ipv6 ? "[" + host + "]" : host) + ":" + port;
  BERTH_TRY(access.ca_pem, ReadFile(folder + "/ca.crt"));
  access.token_file = folder + "/token";
  BERTH_TRY(const std::string token, ReadFile(access.token_file));
  if (Trimmed(token).empty()) return Invalid(access.token_file + ": want a token, got none");
  if (auto name_space = ReadFile(folder + "/namespace");
      name_space && !Trimmed(*name_space).empty()) {
    access.default_namespace = Trimmed(*name_space);
  }
  return access;
}

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
