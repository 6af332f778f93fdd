// SPDX-License-Identifier: Apache-2.0
#include "server/wire/file/cluster_file.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/node/gpu_conditions.h"
#include "server/wire/node/node_traits.h"
#include "server/wire/pod/pod_parts.h"

namespace berth::wire {
namespace {

// What stays of objects, and of the objects of lists, that are fields of these names. "": they go.
// Labels and amounts have texts as values: one of such a name stays.
constexpr std::string_view kOfObject = " apiVersion kind metadata spec status ";
constexpr std::string_view kOfContainer = " name resources ports restartPolicy ";
constexpr std::string_view kOfStatus =
    " name resources allocatedResources allocatedResourcesStatus state ";
constexpr std::string_view kOfAffinity = " requiredDuringSchedulingIgnoredDuringExecution ";
constexpr std::pair<std::string_view, std::string_view> kStays[] = {
    {"Pod", kOfObject},
    {"Pod.spec",
     " containers initContainers overhead resources restartPolicy resourceClaims volumes nodeName "
     "terminationGracePeriodSeconds activeDeadlineSeconds schedulingGates priority nodeSelector "
     "topologySpreadConstraints preemptionPolicy tolerations affinity schedulerName "
     "priorityClassName schedulingGroup "},
    {"Pod.status",
     " phase startTime nominatedNodeName reason resourceClaimStatuses conditions resources "
     "extendedResourceClaimStatus containerStatuses initContainerStatuses allocatedResources "},
    {"Node", kOfObject},
    {"Node.spec", " taints unschedulable "},
    {"Node.status", " allocatable capacity conditions "},
    {"metadata",
     " name namespace uid resourceVersion generation labels annotations creationTimestamp "
     "deletionTimestamp ownerReferences "},
    {"ownerReferences", " apiVersion kind name uid controller "},
    {"conditions", " type status reason message lastTransitionTime "},
    {"tolerations", " key operator value effect tolerationSeconds "},
    {"taints", " key value effect timeAdded "},
    {"schedulingGates", " name "},
    {"resourceClaims", " name resourceClaimName resourceClaimTemplateName "},
    {"topologySpreadConstraints", " whenUnsatisfiable "},
    {"affinity", " nodeAffinity podAffinity podAntiAffinity "},
    {"nodeAffinity", kOfAffinity},
    {"podAffinity", kOfAffinity},
    {"podAntiAffinity", kOfAffinity},
    {"ports", " hostPort containerPort protocol "},
    {"resources", " limits requests claims resourceID health "},
    {"containers", kOfContainer},
    {"initContainers", kOfContainer},
    {"ephemeralContainers", ""},
    {"containerStatuses", kOfStatus},
    {"initContainerStatuses", kOfStatus},
    {"ephemeralContainerStatuses", ""},
    {"terminated", " finishedAt "},
    {"waiting", ""},
    {"imagePullSecrets", ""},
    {"images", ""},
    {"opaque", ""},  // of drivers, in classes and claims
    {"data", ""},
    {"networkData", ""},
    {"securityContext", ""},
    {"hostAliases", ""},
    {"dnsConfig", ""},
    {"addresses", ""}};
// Texts that go, of pod templates.
constexpr std::string_view kGone = " hostname subdomain serviceAccount serviceAccountName ";

bool Reads(const Dialects& dialects, const std::string& annotation) {
  return dialects.ReadsPod(annotation) || dialects.ReadsNode(annotation) ||
         PodMoveWords::Reads(annotation) || annotation == kHoldMark ||
         std::ranges::find(kHoldKeys, annotation) != kHoldKeys.end() ||
         annotation.starts_with("resource.kubernetes.io/");
}

// Returns whether nothing stays of it. What kube-scheduler said, and unhealthy GPUs, do.
bool SlimMessage(const Json& condition, Json& message) {
  if (TextIn(condition, {"type"}) == "PodScheduled") return false;
  const auto gpus = NamedGpus(message.is_string() ? message.get_ref<const std::string&>() : "");
  if (!gpus || gpus->empty()) return true;
  message = Join(*gpus, ";");
  return false;
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
    if (name == "conditions" && key == "message") return SlimMessage(json, value);
    if (name == "spec" && kGone.find(" " + key + " ") != kGone.npos) return true;
    if (name == "volumes" && value.is_object()) value.clear();  // Berth asks for their kinds alone
    if (name == "volumes") return key == "name";
    const bool of_kind = name == "Pod" || name == "Node";
    return Slim(of_kind && key != "metadata" ? name + "." + key : key, value, dialects);
  };
  if (json.is_array()) {
    for (Json& item : json) Slim(name, item, dialects);
    return false;
  }
  for (auto at = json.begin(); at != json.end();) {
    at = goes(at.key(), at.value()) ? json.erase(at) : std::next(at);
  }
  return false;
}

}  // namespace

std::string SlimCluster(std::string text, const Dialects& dialects, const ReadsKind& reads_kind) {
  constexpr std::string_view kOwn[] = {"Node", "Pod", "PodGroup", "PodDisruptionBudget"};
  const std::string as_json = ClusterAsJson(std::move(text)).value_or("");
  Json cluster = Json::parse(as_json, nullptr, false);
  if (!In(cluster, {"items"}).is_array()) return as_json;
  OpenLists(cluster);
  std::string slim = R"({"apiVersion":"v1","kind":)" + JsonText(cluster["kind"]) + ",\"items\":[";
  std::string_view joint = "\n";
  for (Json& item : cluster["items"]) {
    const std::string kind = TextIn(item, {"kind"});
    const bool is_own = kind.empty() || std::ranges::find(kOwn, kind) != std::end(kOwn);
    if (!is_own && !reads_kind(TextIn(item, {"apiVersion"}), kind)) continue;
    Slim(kind.empty() ? "Node" : kind, item, dialects);
    slim.append(std::exchange(joint, ",\n")) += JsonText(item);
  }
  return slim + "\n]}\n";
}

}  // namespace berth::wire
