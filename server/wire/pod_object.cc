// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod_object.h"

#include <utility>

#include "server/wire/devices_annotation.h"
#include "server/wire/json_fields.h"
#include "server/wire/pod_json.h"

namespace berth::wire {
namespace {

// Where the pod is and what it holds there.
void Place(ObservedPod& observed, const std::string* devices) {
  const PodRequest& pod = observed.pod;
  observed.placement = {observed.node, pod.shape.cpu_milli, pod.shape.memory_bytes, {}};
  if (devices == nullptr) return;
  auto granted = DecodeDevices(*devices, pod, observed.node);
  if (granted) {
    observed.placement.grants = std::move(granted->gpus);
    observed.placement.mig = std::move(granted->mig);
    return;
  }
  const PodId& id = pod.id;
  observed.problem = "pod " + id.namespace_name + "/" + id.name + ": annotation " +
                     std::string(kDevicesKey) + ": " + granted.error().message;
}

}  // namespace

Result<ObservedPod> DecodeObservedPod(const std::string& text, const PodRules& rules) {
  PodFields fields;
  const Status read = ReadObject(text, [&](simdjson::ondemand::object object) -> Status {
    fields = ReadPod(object, rules);
    return {};
  });
  if (!read) return tl::unexpected(Error(read.error()).Within("pod"));
  if (!fields.kind.empty() && fields.kind != "Pod") {
    return Invalid("kind: want Pod, got \"" + fields.kind + "\"");
  }
  const PodId& id = fields.parts.id;
  if (id.name.empty() || id.uid.empty()) {
    return Invalid("metadata: want a name and a uid, got \"" + id.name + "\" and \"" + id.uid +
                   "\"");
  }
  ObservedPod observed;
  const auto annotation = fields.parts.annotations.extract(std::string(kDevicesKey));
  observed.pod = rules.ToRequest(std::move(fields.parts));
  observed.node = std::move(fields.node);
  observed.over = fields.phase == "Succeeded" || fields.phase == "Failed";
  observed.terminating = fields.terminating;
  observed.resource_version = std::move(fields.resource_version);
  if (!observed.node.empty()) Place(observed, annotation.empty() ? nullptr : &annotation.mapped());
  return observed;
}

}  // namespace berth::wire
