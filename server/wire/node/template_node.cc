// SPDX-License-Identifier: Apache-2.0
#include "server/wire/node/template_node.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/text.h"
#include "server/wire/node/node_shape.h"
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
  return std::string(vendor->model_labels.empty() ? "" : vendor->model_labels.front());
}

// After the node is read: beside the label the type would no longer be asked for the memory.
void AddModelLabel(const NodeLabelKeys& keys, NodeSpec& node) {
  std::string label = ModelLabelOf(node.gpu_resource, keys);
  if (label.empty() || node.gpu_model.empty() || FindLabel(node.labels, label) != nullptr) return;
  node.labels.emplace_back(std::move(label), node.gpu_model);
  std::ranges::sort(node.labels);
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

}  // namespace berth::wire
