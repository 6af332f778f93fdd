// SPDX-License-Identifier: Apache-2.0
#include "server/wire/node/agent_annotations.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "cluster/values/node_constraints.h"
#include "cluster/values/pod_request.h"
#include "server/wire/json/strict_json.h"

namespace berth::wire {
namespace {

Result<GpuKind> ReadKind(const Json& json, const std::string& place) {
  Fields fields(json, place);
  GpuKind kind;
  std::string capability;
  fields.Text("uuid", kind.uuid);
  fields.Text("model", kind.model);
  fields.Integer("memory_mib", 1, std::int64_t{1} << 40, kind.memory_mib);
  fields.Text("compute_capability", capability);
  BERTH_TRY_STATUS(fields.FinishForeign());
  if (kind.model.empty() || kind.memory_mib == 0) {
    return Invalid(place + ": want a model and memory_mib");
  }
  if (capability.empty()) return kind;
  auto version = ParseVersion(capability);
  if (version) {
    kind.capability = CapabilityNumber(*version);
    return kind;
  }
  return tl::unexpected(std::move(version).error().Within(place + ".compute_capability"));
}

constexpr std::size_t kMostQuoted = 40;  // of a text in an error

std::string Quoted(std::string_view text) {
  return "\"" + std::string(text.substr(0, kMostQuoted)) + "\"";
}

}  // namespace

Result<std::vector<GpuKind>> ParseGpuKinds(std::string_view text) {
  const bool is_small = text.size() <= kMostGpuModelsBytes;
  const Json json = is_small ? Json::parse(text, nullptr, false) : Json();
  if (!json.is_array() || json.size() > kMaxGpusPerNode) {
    return Invalid("want a JSON list of at most " + std::to_string(kMaxGpusPerNode) + " GPUs and " +
                   std::to_string(kMostGpuModelsBytes) + " bytes, got something else");
  }
  std::vector<GpuKind> kinds;
  for (const Json& one : json) {
    BERTH_TRY(GpuKind kind, ReadKind(one, "[" + std::to_string(kinds.size()) + "]"));
    kinds.push_back(std::move(kind));
  }
  return kinds;
}

std::string GpuKindsText(const std::vector<GpuKind>& kinds) {
  return JsonText(ListOf(kinds, [](const GpuKind& kind) {
    Json json = {{"uuid", kind.uuid}, {"model", kind.model}, {"memory_mib", kind.memory_mib}};
    if (kind.capability > 0) json["compute_capability"] = CapabilityText(kind.capability);
    return json;
  }));
}

std::string TakeKinds(const std::vector<GpuKind>& kinds, const Registered& said, NodeSpec& spec) {
  if (kinds.empty() || spec.gpus_are_parts) return "";
  std::vector<const GpuKind*> found;
  const auto find = [&](const std::string& uuid) {
    const auto kind = std::ranges::find(kinds, uuid, &GpuKind::uuid);
    if (!uuid.empty() && kind != kinds.end()) found.push_back(&*kind);
  };
  for (const GpuSpec& gpu : spec.gpus) find(gpu.uuid);
  for (const std::string& uuid : spec.places.uuids) find(uuid);
  const std::size_t gpus = spec.gpus.size() + spec.places.uuids.size();
  if (found.size() < gpus) {
    return "annotation " + std::string(kGpuModelsKey) + ": want the node's " +
           std::to_string(gpus) + " GPUs by UUID, got " + std::to_string(found.size());
  }
  if (!spec.places.uuids.empty()) {
    const GpuKind* const least = std::ranges::min(found, {}, &GpuKind::memory_mib);
    spec.places.memory_mib = least->memory_mib / std::max(spec.places.each(), 1);
  }
  std::vector<std::string> models;
  for (std::size_t i = 0; i < spec.gpus.size(); ++i) {
    spec.gpus[i].capability = found[i]->capability;
    if (!said.memory) spec.gpus[i].memory_mib = found[i]->memory_mib;
    models.push_back(found[i]->model);
  }
  const auto is_known = [&](const std::string& model) { return model == spec.gpu_model; };
  if (!said.models && !std::ranges::all_of(models, is_known)) spec.gpu_models = std::move(models);
  return "";
}

Result<std::vector<std::string>> ParseCarriesOut(std::string_view text) {
  std::vector<std::string> resources;
  if (berth::Trimmed(text).empty()) return resources;
  while (!text.empty()) {
    const std::string_view name = NextPart(text, ',');
    if (resources.size() == kMostCarriedOut) {
      return Invalid("want at most " + std::to_string(kMostCarriedOut) + " resources, got more");
    }
    if (name.empty() || name.size() > kLongestResource) {
      return Invalid("[" + std::to_string(resources.size()) +
                     "]: want the name of a resource of 1.." + std::to_string(kLongestResource) +
                     " characters, got " + Quoted(name));
    }
    resources.emplace_back(name);
  }
  return resources;
}

Result<TopologyManager> ParseKubelet(std::string_view text) {
  if (text.size() > kMostKubeletBytes) {
    return Invalid("want at most " + std::to_string(kMostKubeletBytes) + " bytes, got " +
                   std::to_string(text.size()));
  }
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Invalid("want JSON, got something else");
  if (!json.is_object()) return Invalid(std::string("want an object, got ") + json.type_name());
  std::string policy, scope, numa;
  Fields fields(json, "");
  fields.Text("topologyManagerPolicy", policy);
  fields.Text("topologyManagerScope", scope);
  fields.Text("numa", numa);
  BERTH_TRY_STATUS(fields.FinishForeign());
  TopologyManager manager;
  if (!policy.empty()) {
    const auto known = ParseTopologyPolicy(policy);
    if (!known) {
      return Invalid(
          "topologyManagerPolicy: want one of none, best-effort, restricted, single-numa-node, "
          "got " +
          Quoted(policy));
    }
    manager.policy = *known;
  }
  if (!scope.empty() && scope != "container" && scope != "pod") {
    return Invalid("topologyManagerScope: want one of container, pod, got " + Quoted(scope));
  }
  manager.by_pod = scope == "pod";
  if (!numa.empty() && numa != "lifted") {
    return Invalid("numa: want \"lifted\" or nothing, got " + Quoted(numa));
  }
  return numa.empty() ? manager : TopologyManager{};
}

}  // namespace berth::wire
