// SPDX-License-Identifier: Apache-2.0
#include "node/publish/node_annotations.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "node/kubelet/registrar.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/node/agent_annotations.h"
#include "server/wire/node/gpu_conditions.h"
#include "server/wire/node/mig_json.h"
#include "server/wire/node/topology_json.h"
#include "topology/mig/mig_product.h"

namespace berth::node {
namespace {

using wire::In;
using wire::Json;
using wire::TextIn;

// What happens to a value that the agent did not write.
enum class Foreign {
  kReplaced,   // nobody else has a say
  kCorrected,  // the agent's value replaces it; without one it stays
  kStays,
};

struct Key {
  std::string_view name;
  Foreign foreign;
};
constexpr std::array<Key, 7> kKeys = {{{wire::kCarriesOutKey, Foreign::kReplaced},
                                       {wire::kKubeletKey, Foreign::kReplaced},
                                       {wire::kGpuHealthKey, Foreign::kReplaced},
                                       {wire::kGpuUuidsKey, Foreign::kCorrected},
                                       {wire::kGpuModelsKey, Foreign::kCorrected},
                                       {wire::kTopologyAnnotation, Foreign::kStays},
                                       {wire::kMigAnnotation, Foreign::kStays}}};

void ReadOwners(const Json& metadata, NodeAnnotations& read) {
  const auto entries = metadata.find("managedFields");
  if (entries == metadata.end() || !entries->is_array()) return;
  for (const Json& entry : *entries) {
    if (TextIn(entry, {"manager"}) != kFieldManager) continue;
    const Json& fields = In(entry, {"fieldsV1", "f:metadata", "f:annotations"});
    for (const Key& key : kKeys) {
      if (fields.contains("f:" + std::string(key.name))) read.ours.emplace(key.name);
    }
  }
}

constexpr std::array<std::string_view, 4> kFactKeys = {
    wire::kGpuUuidsKey, wire::kGpuModelsKey, wire::kTopologyAnnotation, wire::kMigAnnotation};

// nullopt for "": the annotation is not there.
std::optional<std::string> Unless(std::string text) {
  if (text.empty()) return std::nullopt;
  return text;
}

std::string UnhealthyDevices(const WhatIsSaid& says) {
  std::set<std::string> all;
  for (const auto& [resource, ids] : says.unhealthy) all.insert(ids.begin(), ids.end());
  while (all.size() > kMostUnhealthy) all.erase(std::prev(all.end()));
  return Join(all, ",");
}

// Where the agent carries Berth's choice out, Berth picks the device; otherwise the plugin does.
std::string WithAllocator(const std::string& mig, const std::set<std::string>& carries) {
  const bool carried = std::ranges::any_of(
      carries, [](const std::string& name) { return name.starts_with(kMigResourcePrefix); });
  Json json = Json::parse(mig, nullptr, false);
  if (!carried || !json.is_object()) return mig;
  json["allocator"] = "berth";
  return wire::JsonText(json);
}

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
  const std::string word = TextIn(config, {key});
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

Result<NodeAnnotations> ReadNodeAnnotations(std::string_view node_json) {
  // Status and spec are most of a Node.
  const auto keep = [](int depth, Json::parse_event_t event, const Json& parsed) {
    return depth != 1 || event != Json::parse_event_t::key || parsed == "metadata";
  };
  const Json node = Json::parse(node_json, keep, false);
  const Json& metadata = In(node, {"metadata"});
  if (!metadata.is_object()) return Invalid("want a Node with metadata");
  NodeAnnotations read;
  for (const Key& key : kKeys) {
    const Json& found = In(metadata, {"annotations", key.name});
    if (found.is_string()) read.values.emplace(key.name, found.get<std::string>());
  }
  read.mig_single = TextIn(metadata, {"labels", "nvidia.com/mig.strategy"}) == "single";
  ReadOwners(metadata, read);
  return read;
}

std::optional<std::string> AnnotationPatch(const NodeAnnotations& now,
                                           const WantedAnnotations& wanted,
                                           std::vector<std::string>& kept) {
  Json changes = Json::object();
  for (const Key& key : kKeys) {
    const std::string name(key.name);
    const auto want = wanted.find(name);
    if (want == wanted.end()) continue;
    const auto is = now.values.find(name);
    const bool there = is != now.values.end();
    if (want->second ? there && is->second == *want->second : !there) continue;
    const bool foreign = there && !now.ours.contains(name);
    if (foreign && key.foreign == Foreign::kStays) {
      if (want->second) kept.push_back(name);
      continue;
    }
    if (foreign && key.foreign == Foreign::kCorrected && !want->second) continue;
    changes[name] = want->second ? Json(*want->second) : Json(nullptr);
  }
  if (changes.empty()) return std::nullopt;
  return wire::JsonText(Json{{"metadata", {{"annotations", std::move(changes)}}}});
}

bool WhatIsSaid::SetUnhealthy(const std::string& resource, std::set<std::string> ids) {
  std::set<std::string> devices;
  for (const std::string& id : ids) {
    const std::string device(WithoutReplica(id));
    if (device.empty() || device.size() > kMostIdBytes) continue;
    if (devices.size() == kMostUnhealthy) break;
    devices.insert(device);
  }
  std::set<std::string>& said = unhealthy[resource];
  if (said == devices) return false;
  said = std::move(devices);
  return true;
}

WantedAnnotations Wanted(const WhatIsSaid& says, bool mig_single) {
  WantedAnnotations wanted;
  std::vector<std::string> carries(says.carries.begin(), says.carries.end());
  carries.resize(std::min(carries.size(), kMostCarried));
  wanted[std::string(wire::kCarriesOutKey)] = Unless(Join(carries, ","));
  wanted[std::string(wire::kGpuHealthKey)] = Unless(UnhealthyDevices(says));
  if (!says.kubelet.empty()) wanted[std::string(wire::kKubeletKey)] = says.kubelet;
  // A driver that is away for a moment has no GPUs: what was published stays.
  if (says.facts->gpus.empty() && says.facts->mig.empty()) return wanted;
  for (const std::string_view key : kFactKeys) {
    const auto found = says.facts->annotations.find(std::string(key));
    std::string text = found == says.facts->annotations.end() ? "" : found->second;
    if (key == wire::kMigAnnotation && !text.empty()) {
      text = mig_single ? "" : WithAllocator(text, says.carries);
    }
    // Where something could not be found out, what was published before stays too.
    if (text.empty() && !says.facts->problems.empty()) continue;
    wanted[std::string(key)] = Unless(std::move(text));
  }
  return wanted;
}

Result<KubeletPolicies> PoliciesOfConfigz(std::string_view json) {
  const Json all = Json::parse(json, nullptr, false);
  const Json& config = In(all, {"kubeletconfig"});
  if (!config.is_object()) return Invalid("want an object with kubeletconfig");
  return KubeletPolicies{WordOf(config, kPolicy), WordOf(config, kScope), WordOf(config, kCpus)};
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
