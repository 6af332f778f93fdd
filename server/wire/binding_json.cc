// SPDX-License-Identifier: Apache-2.0
#include "server/wire/binding_json.h"

#include "server/wire/json_text.h"

namespace berth::wire {

std::string EncodeBinding(const PodRequest& pod, const Placement& placement, const NodeSpec& node,
                          std::string_view decision, WallTime now, const Dialects& dialects) {
  std::string out = R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":)";
  AppendString(out, pod.id.name);
  out += R"(,"namespace":)";
  AppendString(out, pod.id.namespace_name);
  out += R"(,"uid":)";
  AppendString(out, pod.id.uid);
  out += R"(,"annotations":{"berth.dev/decision":)";
  AppendString(out, decision);
  Annotations annotations;
  for (const Dialect& dialect : dialects) {
    dialect.WriteGrants(pod, placement, node, now, annotations);
  }
  for (const auto& [key, value] : annotations) {
    out += ',';
    AppendString(out, key);
    out += ':';
    AppendString(out, value);
  }
  out += R"(}},"target":{"apiVersion":"v1","kind":"Node","name":)";
  AppendString(out, placement.node);
  return out + "}}";
}

}  // namespace berth::wire
