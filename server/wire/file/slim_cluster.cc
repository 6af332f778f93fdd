// SPDX-License-Identifier: Apache-2.0
#include "server/wire/file/slim_cluster.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "server/wire/file/cluster_file.h"
#include "server/wire/json/json_text.h"
#include "server/wire/json/object_reader.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/node/node_traits.h"
#include "server/wire/pod/pod_parts.h"

namespace berth::wire {
namespace {

// What stays of objects, and of the objects of lists, that are fields of these names. "": they go.
// Labels and amounts have texts as values: one of such a name stays.
constexpr std::string_view kOfContainer = " name resources ports restartPolicy ";
constexpr std::string_view kOfStatus =
    " name resources allocatedResources allocatedResourcesStatus state ";
constexpr std::pair<std::string_view, std::string_view> kStays[] = {
    {"containers", kOfContainer},
    {"initContainers", kOfContainer},
    {"ephemeralContainers", ""},
    {"containerStatuses", kOfStatus},
    {"initContainerStatuses", kOfStatus},
    {"ephemeralContainerStatuses", ""},
    {"terminated", " finishedAt "},
    {"waiting", ""},
    {"managedFields", ""},
    {"imagePullSecrets", ""},
    {"images", ""},
    {"opaque", ""},  // of drivers, in classes and claims
    {"data", ""},
    {"networkData", ""},
    {"securityContext", ""},
    {"hostAliases", ""},
    {"dnsConfig", ""},
    {"addresses", ""},
    {"podIPs", ""},
    {"hostIPs", ""},
    {"volumesAttached", ""}};
// Texts that go.
constexpr std::string_view kGone =
    " providerID machineID systemUUID bootID podIP hostIP hostname "
    "subdomain serviceAccount serviceAccountName ";

template <class Goes>
void EraseIf(Json& object, Goes goes) {
  for (auto at = object.begin(); object.is_object() && at != object.end();) {
    at = goes(at.key(), at.value()) ? object.erase(at) : std::next(at);
  }
}

bool Reads(const Dialects& dialects, const std::string& annotation) {
  return dialects.ReadsPod(annotation) || dialects.ReadsNode(annotation) ||
         PodMoveWords::Reads(annotation) || annotation == kHoldMark ||
         std::ranges::find(kHoldKeys, annotation) != kHoldKeys.end() ||
         annotation.starts_with("resource.kubernetes.io/");
}

// Returns whether nothing of it stays. name: of the field that has it.
bool Slim(const std::string& name, Json& json, const Dialects& dialects) {
  if (!json.is_structured()) return false;
  const auto rule =
      std::ranges::find(kStays, name, &std::pair<std::string_view, std::string_view>::first);
  const bool has_rule = rule != std::end(kStays);
  if (has_rule && rule->second.empty()) return true;
  const auto goes = [&](const std::string& key, Json& value) {
    if (has_rule && rule->second.find(" " + key + " ") == rule->second.npos) return true;
    if (name == "annotations" && !Reads(dialects, key)) return true;
    const bool is_of_object = name == "spec" || name == "status" || name == "nodeInfo";
    if (is_of_object && kGone.find(" " + key + " ") != kGone.npos) return true;
    if (name == "volumes" && value.is_object()) value.clear();  // Berth asks for their kinds alone
    if (name == "volumes") return key == "name";
    return Slim(key, value, dialects);
  };
  if (json.is_object()) EraseIf(json, goes);
  if (json.is_array()) {
    for (Json& item : json) Slim(name, item, dialects);
  }
  return false;
}

}  // namespace

std::string SlimCluster(std::string text, const Dialects& dialects, const ReadsKind& reads_kind) {
  constexpr std::string_view kOwn[] = {"Node", "Pod", "PodGroup", "PodDisruptionBudget"};
  const std::string as_json = ClusterAsJson(std::move(text)).value_or("");
  Json cluster = Json::parse(as_json, nullptr, false);
  if (!cluster.is_object() || !cluster.contains("items")) return as_json;
  std::string slim = R"({"apiVersion":"v1","kind":)" + JsonText(cluster["kind"]) + ",\"items\":[";
  std::string_view joint = "\n";
  for (Json& item : cluster["items"]) {
    const std::string kind = TextIn(item, {"kind"});
    const bool is_own = kind.empty() || std::ranges::find(kOwn, kind) != std::end(kOwn);
    if (!is_own && !reads_kind(TextIn(item, {"apiVersion"}), kind)) continue;
    Slim("", item, dialects);
    slim.append(std::exchange(joint, ",\n")) += JsonText(item);
  }
  return slim + "\n]}\n";
}

}  // namespace berth::wire
