// SPDX-License-Identifier: Apache-2.0
#include "server/wire/node/template_node.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/text.h"
#include "topology/gpu_vendor.h"

namespace berth::wire {
namespace {

// More than pods ask for, and little enough to be added up over kMostAddedNodes.
constexpr const char* kCpu = "1000000";
constexpr const char* kMemory = "1Pi";

tl::unexpected<Error> Unknown(std::string_view name, const MachineTypes& types) {
  constexpr std::size_t kNearest = 3;
  return Invalid("want a machine type that is known, got \"" + std::string(name.substr(0, 100)) +
                 "\"; nearest: " + Join(types.NearestTo(name, kNearest), ", "));
}

// The label in which an agent publishes the model.
std::string ModelLabelOf(std::string_view resource, const NodeLabelKeys& keys) {
  const GpuVendor* const vendor = FindGpuVendor(resource);
  if (vendor == nullptr || vendor->name == kNvidiaVendor) return keys.gpu_model;
  return std::string(vendor->model_labels.front());
}

// After the node is read: beside the label the type would no longer be asked for the memory.
void AddModelLabel(const NodeLabelKeys& keys, NodeSpec& node) {
  std::string label = ModelLabelOf(node.gpu_resource, keys);
  if (label.empty() || node.gpu_model.empty() || FindLabel(node.labels, label) != nullptr) return;
  node.labels.emplace_back(std::move(label), node.gpu_model);
  std::ranges::sort(node.labels);
}

// Makes it an object where it is not there. References into the object around it end with that.
Status MakeObject(Json& object, const char* key, const std::string& path) {
  Json& found = object[key];
  if (found.is_null()) found = Json::object();
  if (!found.is_object()) return Invalid(path + ": want an object, got " + found.type_name());
  return {};
}

Status FillIn(Json& node) {
  BERTH_TRY_STATUS(MakeObject(node, "metadata", ".metadata"));
  BERTH_TRY_STATUS(MakeObject(node, "status", ".status"));
  Json& name = node["metadata"]["name"];
  if (name.is_null()) name = "node";
  if (!name.is_string() || name == "") {
    return Invalid(".metadata.name: want a name, got " + JsonText(name).substr(0, 100));
  }
  Json& status = node["status"];
  BERTH_TRY_STATUS(MakeObject(status, "capacity", ".status.capacity"));
  BERTH_TRY_STATUS(MakeObject(status, "allocatable", ".status.allocatable"));
  Json& capacity = status["capacity"];
  Json& allocatable = status["allocatable"];
  for (const auto& [resource, amount] : capacity.items()) {
    if (!allocatable.contains(resource)) allocatable[resource] = amount;
  }
  for (const char* resource : {"cpu", "memory"}) {
    if (allocatable.contains(resource)) continue;
    return Invalid(std::string(".status.allocatable.") + resource +
                   ": want how much pods can have of it, got none");
  }
  return {};
}

}  // namespace

Result<NodeSpec> TemplateNode(std::string_view machine_type, const NodeRules& rules) {
  const MachineType* const type = rules.machine_types->Find(machine_type);
  if (type == nullptr) return Unknown(machine_type, *rules.machine_types);
  const std::string resource(GpuResourceOf(*type));
  Json node;
  node["metadata"]["labels"] = {{kInstanceTypeLabel, type->name}, {"kubernetes.io/os", "linux"}};
  node["status"]["allocatable"] = {
      {"cpu", kCpu}, {"memory", kMemory}, {resource, std::to_string(type->gpus)}};
  BERTH_TRY(DecodedNode decoded, DecodeNodeShape(node, rules));
  if (decoded.spec.gpus.empty()) {
    return Invalid("want a machine type whose GPUs count, got \"" + std::string(type->name) +
                   "\": the configuration has no GPUs by " + resource);
  }
  AddModelLabel(rules.labels, decoded.spec);
  return std::move(decoded.spec);
}

Result<DecodedNode> DecodeNodeShape(const Json& object, const NodeRules& rules) {
  const auto kind = object.find("kind");
  if (kind != object.end() && *kind != "Node") {
    return Invalid(".kind: want Node, got " + JsonText(*kind).substr(0, 100));
  }
  Json node = object;
  BERTH_TRY_STATUS(FillIn(node));
  // Nobody needs its links and MIG products when the question is answered.
  NodeRules own = rules;
  own.links = std::make_shared<LinkLibrary>();
  own.mig = std::make_shared<MigLibrary>();
  BERTH_TRY(DecodedNode decoded, DecodeNode(PaddedText(JsonText(node)), own));
  if (!decoded.unread.empty()) {
    return Invalid("node " + decoded.spec.name + ": " + decoded.unread.substr(1));
  }
  return decoded;
}

}  // namespace berth::wire
