// SPDX-License-Identifier: Apache-2.0
#include "server/wire/api/binding_json.h"

#include "server/wire/json/strict_json.h"
#include "server/wire/pod/devices_annotation.h"

namespace berth::wire {

Result<std::string> EncodeBinding(const PodRequest& pod, const Placement& placement,
                                  const NodeSpec& node, std::string_view decision, WallTime now,
                                  const Dialects& dialects) {
  BERTH_TRY_STATUS(CheckDevices(placement, node));
  Annotations written;
  // Where kube-scheduler gives GPUs, the pod's claim says which it has.
  const bool is_written = node.by_claims.empty() || placement.grants.empty();
  for (const Dialect& dialect : dialects) {
    if (is_written) dialect.WriteGrants(pod, placement, node, now, written);
  }
  Json annotations = {{kDecisionKey, decision}};
  for (const auto& [key, value] : written) annotations[key] = value;
  return JsonText({{"apiVersion", "v1"},
                   {"kind", "Binding"},
                   {"metadata",
                    {{"name", pod.id.name},
                     {"namespace", pod.id.namespace_name},
                     {"uid", pod.id.uid},
                     {"annotations", std::move(annotations)}}},
                   {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", placement.node}}}});
}

}  // namespace berth::wire
