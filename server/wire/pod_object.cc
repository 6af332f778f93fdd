// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod_object.h"

#include <functional>
#include <map>
#include <utility>

#include "server/wire/devices_annotation.h"
#include "server/wire/hami_mig.h"
#include "server/wire/object_reader.h"
#include "server/wire/pod_json.h"

namespace berth::wire {
namespace {

using Annotation = std::map<std::string, std::string, std::less<>>::node_type;

// The GPUs of the pod, by Berth's own annotation.
Status PlaceByBerth(const std::string& devices, ObservedPod& observed) {
  BERTH_TRY(GrantedDevices granted, DecodeDevices(devices, observed.pod, observed.node));
  observed.placement.grants = std::move(granted.gpus);
  observed.placement.mig = std::move(granted.mig);
  return {};
}

// As HAMi's scheduler recorded them. Such a pod asks in HAMi's terms (nvidia.com/gpu with
// nvidia.com/gpumem); what it got says the same in ours.
Status PlaceByHami(const std::string& allocations, ObservedPod& observed) {
  BERTH_TRY(observed.placement.mig, ParseHamiMigAllocations(allocations));
  MigCounts counts;
  for (const MigGrant& grant : observed.placement.mig) counts.Add({grant.profile, false}, 1);
  if (!counts.empty()) observed.pod.shape.gpus = counts.ToSlices();
  return {};
}

// Where the pod is and what it holds there.
void Place(ObservedPod& observed, const Annotation& own, const Annotation& hami) {
  const PodRequest& pod = observed.pod;
  observed.placement = {observed.node, pod.shape.cpu_milli, pod.shape.memory_bytes, {}};
  const Annotation& record = own.empty() ? hami : own;
  if (record.empty()) return;
  const Status placed =
      own.empty() ? PlaceByHami(hami.mapped(), observed) : PlaceByBerth(own.mapped(), observed);
  if (placed) return;
  const PodId& id = pod.id;
  observed.problem = "pod " + id.namespace_name + "/" + id.name + ": annotation " + record.key() +
                     ": " + placed.error().message;
}

// The fields of a Pod that has a name and a UID.
Result<PodFields> ReadWholePod(const PaddedText& text, const PodRules& rules) {
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
  return fields;
}

bool IsOver(const PodFields& fields) {
  return fields.phase == "Succeeded" || fields.phase == "Failed";
}

}  // namespace

Result<ObservedPod> DecodeObservedPod(const PaddedText& text, const PodRules& rules) {
  BERTH_TRY(PodFields fields, ReadWholePod(text, rules));
  ObservedPod observed;
  const Annotation own = fields.parts.annotations.extract(std::string(kDevicesKey));
  const Annotation hami = fields.parts.annotations.extract(std::string(kHamiMigAnnotation));
  observed.pod = rules.ToRequest(std::move(fields.parts));
  observed.node = std::move(fields.node);
  observed.over = IsOver(fields);
  observed.terminating = fields.terminating;
  observed.resource_version = std::move(fields.resource_version);
  if (!observed.node.empty()) Place(observed, own, hami);
  return observed;
}

Result<WaitingPod> DecodeWaitingPod(const PaddedText& text, const PodRules& rules) {
  BERTH_TRY(PodFields fields, ReadWholePod(text, rules));
  WaitingPod waiting{fields.parts.id.namespace_name, fields.parts.id.name, {}, false};
  waiting.waits =
      fields.unschedulable && fields.node.empty() && !fields.terminating && !IsOver(fields);
  waiting.pod = rules.ToRequest(std::move(fields.parts));
  return waiting;
}

}  // namespace berth::wire
