// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod_object.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "server/wire/object_reader.h"
#include "server/wire/pod_json.h"

namespace berth::wire {
namespace {

using Annotation = std::map<std::string, std::string, std::less<>>::node_type;

// Takes the annotation out by which the pod has its devices, of the first dialect that has one.
std::pair<const Dialect*, Annotation> TakeGrants(const Dialects& dialects, PodParts& parts) {
  for (const Dialect& dialect : dialects) {
    for (const std::string_view key : dialect.keys().grants) {
      Annotation taken = parts.annotations.extract(std::string(key));
      if (!taken.empty()) return {&dialect, std::move(taken)};
    }
  }
  return {nullptr, Annotation()};
}

// Whether it asks for GPUs, or parts of them, in anybody's words.
bool AsksForGpus(const PodParts& parts) {
  return std::ranges::any_of(parts.containers, [](const ContainerSpec& container) {
    return container.ask.wants_gpu() || !container.ask.part_resource.empty();
  });
}

Status ReadGrants(const Dialect& dialect, const Annotation& grants, bool asks_for_gpus,
                  ObservedPod& observed) {
  if (asks_for_gpus) return dialect.ReadGrants(grants.key(), grants.mapped(), observed);
  // Who may write a pod may write its annotations: they give nothing that it does not ask for. That
  // it has other devices than GPUs is all right.
  ObservedPod as_if = observed;
  const bool none = dialect.ReadGrants(grants.key(), grants.mapped(), as_if) &&
                    as_if.placement.grants.empty() && as_if.placement.mig.empty();
  return none ? Status() : Invalid("want a pod that asks for GPUs beside it");
}

// Where the pod is and what it holds there.
void Place(ObservedPod& observed, const Dialect* dialect, const Annotation& grants,
           bool asks_for_gpus) {
  const PodRequest& pod = observed.pod;
  observed.placement = WithoutDevices(observed.node, pod.shape);
  if (dialect == nullptr) return;
  const Status placed = ReadGrants(*dialect, grants, asks_for_gpus, observed);
  if (placed) return;
  const PodId& id = pod.id;
  observed.problem = "pod " + id.namespace_name + "/" + id.name + ": annotation " + grants.key() +
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

// The kubelet's words where it had no devices, CPU or memory for the pod, or none that its Topology
// Manager accepts together (k8s.io/kubernetes pkg/kubelet/lifecycle: AdmissionFailureHandlers,
// UnexpectedAdmissionError, OutOfcpu, ...; cm/topologymanager: TopologyAffinityError).
std::string NotAdmitted(const PodFields& fields) {
  const bool refused = fields.phase == "Failed" && (fields.reason == "UnexpectedAdmissionError" ||
                                                    fields.reason == "TopologyAffinityError" ||
                                                    fields.reason.starts_with("OutOf"));
  return refused ? fields.reason + ": " + fields.message.substr(0, 300) : "";
}

bool IsOver(const PodFields& fields) {
  return fields.phase == "Succeeded" || fields.phase == "Failed";
}

}  // namespace

Result<ObservedPod> DecodeObservedPod(const PaddedText& text, const PodRules& rules) {
  BERTH_TRY(PodFields fields, ReadWholePod(text, rules));
  ObservedPod observed;
  const auto [dialect, grants] = TakeGrants(rules.dialects(), fields.parts);
  const bool asks_for_gpus = AsksForGpus(fields.parts);
  observed.pod = rules.ToRequest(std::move(fields.parts));
  observed.node = std::move(fields.node);
  observed.over = IsOver(fields);
  observed.running = fields.phase == "Running";
  observed.not_admitted = NotAdmitted(fields);
  observed.terminating = fields.terminating;
  observed.gated = fields.gated;
  observed.unschedulable = fields.unschedulable;
  observed.created = fields.created;
  observed.resource_version = std::move(fields.resource_version);
  if (!observed.node.empty()) Place(observed, dialect, grants, asks_for_gpus);
  return observed;
}

}  // namespace berth::wire
