// SPDX-License-Identifier: Apache-2.0
#include "node/publish/kubelet_policies.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "server/wire/json/strict_json.h"

namespace berth::node {
namespace {

using wire::Json;

constexpr std::size_t kMostWordBytes = 40;
constexpr std::string_view kPolicy = "topologyManagerPolicy", kScope = "topologyManagerScope",
                           kCpus = "cpuManagerPolicy";

// Words of policies are short and plain; anything else is not passed on.
bool IsWord(std::string_view text) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
  };
  return !text.empty() && text.size() <= kMostWordBytes && std::ranges::all_of(text, plain);
}

std::string WordOf(const Json& config, std::string_view key) {
  const auto found = config.find(key);
  if (found == config.end() || !found->is_string()) return "";
  auto word = found->get<std::string>();
  return IsWord(word) ? word : "";
}

// The value of a line "key: word" that begins in the first column, without quotes and comment.
std::string WordOf(std::string_view line, std::string_view key) {
  if (!line.starts_with(key) || line.substr(key.size(), 1) != ":") return "";
  std::string_view value = line.substr(key.size() + 1);
  value = Trimmed(value.substr(0, value.find(" #")));
  if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
      value.back() == value.front()) {
    value = value.substr(1, value.size() - 2);
  }
  return IsWord(value) ? std::string(value) : "";
}

}  // namespace

Result<KubeletPolicies> PoliciesOfConfigz(std::string_view json) {
  const Json all = Json::parse(json, nullptr, false);
  const auto config = all.is_object() ? all.find("kubeletconfig") : all.end();
  if (!all.is_object() || config == all.end() || !config->is_object()) {
    return Invalid("want an object with kubeletconfig");
  }
  return KubeletPolicies{WordOf(*config, kPolicy), WordOf(*config, kScope), WordOf(*config, kCpus)};
}

KubeletPolicies PoliciesOfConfigFile(std::string_view yaml) {
  KubeletPolicies policies{"none", "container", "none"};
  while (!yaml.empty()) {
    const std::size_t end = std::min(yaml.find('\n'), yaml.size());
    const std::string_view line = yaml.substr(0, end);
    if (auto word = WordOf(line, kPolicy); !word.empty()) policies.topology_manager = word;
    if (auto word = WordOf(line, kScope); !word.empty()) policies.topology_manager_scope = word;
    if (auto word = WordOf(line, kCpus); !word.empty()) policies.cpu_manager = word;
    yaml.remove_prefix(std::min(end + 1, yaml.size()));
  }
  return policies;
}

std::string KubeletUrl(const std::string& url) {
  constexpr std::string_view kScheme = "://";
  const std::size_t scheme = url.find(kScheme), port = url.rfind(':');
  if (scheme == std::string::npos || port <= scheme) return url;
  const std::size_t host = scheme + kScheme.size();
  if (url.find(':', host) == port || url.find('[') != std::string::npos) return url;
  return url.substr(0, host) + "[" + url.substr(host, port - host) + "]" + url.substr(port);
}

std::string KubeletAnnotation(const KubeletPolicies& policies, bool numa_lifted) {
  Json json = Json::object();
  const auto add = [&json](std::string_view key, const std::string& word) {
    if (!word.empty()) json[std::string(key)] = word;
  };
  add(kPolicy, policies.topology_manager);
  add(kScope, policies.topology_manager_scope);
  add(kCpus, policies.cpu_manager);
  if (numa_lifted) json["numa"] = "lifted";
  return json.empty() ? "" : wire::JsonText(json);
}

}  // namespace berth::node
