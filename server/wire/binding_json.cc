// SPDX-License-Identifier: Apache-2.0
#include "server/wire/binding_json.h"

#include "server/wire/devices_annotation.h"
#include "server/wire/hami_binding.h"
#include "server/wire/json_text.h"

namespace berth::wire {

std::string EncodeBinding(const PodRequest& pod, const Placement& placement, const NodeSpec& node,
                          std::string_view decision, WallTime now) {
  std::string out = R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":)";
  AppendString(out, pod.id.name);
  out += R"(,"namespace":)";
  AppendString(out, pod.id.namespace_name);
  out += R"(,"uid":)";
  AppendString(out, pod.id.uid);
  out += R"(,"annotations":{"berth.dev/decision":)";
  AppendString(out, decision);
  if (!placement.grants.empty() || !placement.mig.empty()) {
    out += R"(,"berth.dev/devices":)";
    AppendString(out, EncodeDevices(pod, placement, node));
  }
  if (SpeaksHami(placement, node)) {
    for (const auto& [key, value] : HamiAnnotations(pod, placement, node, now)) {
      out += ',';
      AppendString(out, key);
      out += ':';
      AppendString(out, value);
    }
  }
  out += R"(}},"target":{"apiVersion":"v1","kind":"Node","name":)";
  AppendString(out, placement.node);
  return out + "}}";
}

}  // namespace berth::wire
