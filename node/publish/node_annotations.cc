// SPDX-License-Identifier: Apache-2.0
#include "node/publish/node_annotations.h"

#include <algorithm>
#include <array>

#include "server/wire/json/strict_json.h"
#include "server/wire/node/gpu_health.h"
#include "server/wire/node/kubelet_annotation.h"
#include "server/wire/node/mig_json.h"
#include "server/wire/node/topology_json.h"

namespace berth::node {
namespace {

using wire::Json;

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
constexpr std::array<Key, 6> kKeys = {{{wire::kCarriesOutKey, Foreign::kReplaced},
                                       {wire::kKubeletKey, Foreign::kReplaced},
                                       {wire::kGpuHealthKey, Foreign::kReplaced},
                                       {wire::kGpuUuidsKey, Foreign::kCorrected},
                                       {wire::kTopologyAnnotation, Foreign::kStays},
                                       {wire::kMigAnnotation, Foreign::kStays}}};

// The object at that place; empty where there is none.
const Json& ObjectAt(const Json& json, std::string_view key) {
  static const Json kEmpty = Json::object();
  const auto found = json.find(key);
  return found != json.end() && found->is_object() ? *found : kEmpty;
}

// Whether the entry of managedFields is the agent's own.
bool IsOurs(const Json& entry) {
  if (!entry.is_object()) return false;
  const auto manager = entry.find("manager");
  return manager != entry.end() && *manager == kFieldManager;
}

void ReadOwners(const Json& metadata, NodeAnnotations& read) {
  const auto entries = metadata.find("managedFields");
  if (entries == metadata.end() || !entries->is_array()) return;
  for (const Json& entry : *entries) {
    if (!IsOurs(entry)) continue;
    const Json& fields =
        ObjectAt(ObjectAt(ObjectAt(entry, "fieldsV1"), "f:metadata"), "f:annotations");
    for (const Key& key : kKeys) {
      if (fields.contains("f:" + std::string(key.name))) read.ours.emplace(key.name);
    }
  }
}

}  // namespace

Result<NodeAnnotations> ReadNodeAnnotations(std::string_view node_json) {
  // Status and spec are most of a Node.
  const auto keep = [](int depth, Json::parse_event_t event, const Json& parsed) {
    return depth != 1 || event != Json::parse_event_t::key || parsed == "metadata";
  };
  const Json node = Json::parse(node_json, keep, false);
  if (!node.is_object() || !node.contains("metadata") || !node["metadata"].is_object()) {
    return Invalid("want a Node with metadata");
  }
  const Json& metadata = node["metadata"];
  NodeAnnotations read;
  const Json& annotations = ObjectAt(metadata, "annotations");
  for (const Key& key : kKeys) {
    const auto found = annotations.find(key.name);
    if (found != annotations.end() && found->is_string()) {
      read.values.emplace(key.name, found->get<std::string>());
    }
  }
  const Json& labels = ObjectAt(metadata, "labels");
  const auto strategy = labels.find("nvidia.com/mig.strategy");
  read.mig_single = strategy != labels.end() && *strategy == "single";
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

}  // namespace berth::node
