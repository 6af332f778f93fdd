// SPDX-License-Identifier: Apache-2.0
#include "server/wire/node/node_shape.h"

#include <string>
#include <utility>

namespace berth::wire {
namespace {

// Makes it an object where it is not there. References into the object around it end with that.
Status MakeObject(Json& object, const char* key, const std::string& path) {
  Json& found = object[key];
  if (found.is_null()) found = Json::object();
  if (!found.is_object()) return Invalid(path + ": want an object, got " + found.type_name());
  return {};
}

// Kubernetes takes a number for a quantity; the decoder of Nodes takes what the API server writes.
void WriteQuantities(Json& amounts) {
  for (auto& [name, amount] : amounts.items()) {
    if (amount.is_number()) amount = amount.dump();
  }
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
  WriteQuantities(capacity);
  WriteQuantities(allocatable);
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
  return DecodeNode(PaddedText(JsonText(node)), own);
}

}  // namespace berth::wire
