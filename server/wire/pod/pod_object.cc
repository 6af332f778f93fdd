// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/pod_object.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/text.h"
#include "server/wire/json/object_meta.h"
#include "server/wire/json/object_reader.h"
#include "server/wire/pod/devices_annotation.h"
#include "server/wire/pod/given_json.h"
#include "server/wire/pod/pod_json.h"
#include "server/wire/pod/recorded_devices.h"

namespace berth::wire {
namespace {

using Annotation = std::map<std::string, std::string, std::less<>>::node_type;

// nullptr: it has none of that key (DialectKeys::grants).
const std::string* FindKey(std::string_view key, const PodParts& parts) {
  const std::size_t star = key.find('*');
  const std::string_view beginning = key.substr(0, star);
  const std::string_view end = star == key.npos ? "" : key.substr(star + 1);
  for (auto at = parts.annotations.lower_bound(beginning); at != parts.annotations.end(); ++at) {
    if (star == key.npos) return at->first == key ? &at->first : nullptr;
    if (!at->first.starts_with(beginning)) break;
    if (at->first.ends_with(end)) return &at->first;
  }
  return nullptr;
}

// Takes the annotation out by which the pod has its devices, of the first dialect that has one.
std::pair<const Dialect*, Annotation> TakeGrants(const Dialects& dialects, PodParts& parts) {
  for (const Dialect& dialect : dialects) {
    for (const std::string_view key : dialect.keys().grants) {
      const std::string* const found = FindKey(key, parts);
      if (found != nullptr) return {&dialect, parts.annotations.extract(std::string(*found))};
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

Status ReadGrants(const Dialect& dialect, const Annotation& grants, const PodParts& asked,
                  ObservedPod& observed) {
  if (AsksForGpus(asked)) return dialect.ReadGrants(grants.key(), grants.mapped(), asked, observed);
  // Who may write a pod may write its annotations: they give nothing that it does not ask for. That
  // it has other devices than GPUs is all right.
  ObservedPod as_if = observed;
  const bool none = dialect.ReadGrants(grants.key(), grants.mapped(), asked, as_if) &&
                    as_if.placement.grants.empty() && as_if.placement.mig.empty();
  return none ? Status() : Invalid("want a pod that also asks for GPUs");
}

// Where the pod is and what it holds there. asked: its containers, as they ask.
void Place(ObservedPod& observed, const Dialect* dialect, const Annotation& grants,
           const PodParts& asked) {
  PodRequest& pod = observed.pod;
  // The node gives it what it asks for, whether Berth would have or not.
  if (!pod.refusal.empty() && !pod.shape.wants_gpu() && AsksForGpus(asked)) {
    pod.shape.gpus = RefusedAsk(asked);
  }
  observed.placement = WithoutDevices(observed.node, pod.shape);
  if (dialect == nullptr) return;
  const Status placed = ReadGrants(*dialect, grants, asked, observed);
  if (placed) {
    const bool has = !observed.placement.grants.empty() || !observed.placement.mig.empty();
    if (has && dialect->keys().grants_of_own_nodes) observed.placement.agent = dialect->name();
    return;
  }
  const PodId& id = pod.id;
  observed.problem = "pod " + id.namespace_name + "/" + id.name + ": annotation " + grants.key() +
                     ": " + placed.error().message.substr(0, 1024);
}

// What it was given. agents: the annotation of the node's agent; empty: none.
void TakeGiven(PodFields& fields, const Annotation& agents, const PodRules& rules,
               ObservedPod& observed) {
  if (observed.node.empty() || observed.over) return;
  if (!observed.pod.shape.wants_gpu() && fields.given.claimed.empty()) return;
  std::string problem = std::move(fields.given_problem);
  if (!fields.given.empty()) {
    observed.given = std::make_shared<const GivenDevices>(std::move(fields.given));
  } else if (!agents.empty()) {
    const auto is_gpus = [&rules](std::string_view resource) { return rules.CountsGpus(resource); };
    if (auto given = DecodeGiven(agents.mapped(), is_gpus); !given) {
      problem = "annotation " + agents.key() + ": " + given.error().message.substr(0, 1024);
    } else if (!given->empty()) {
      observed.given = std::make_shared<const GivenDevices>(*std::move(given));
    }
  }
  if (problem.empty() || !observed.problem.empty()) return;
  const PodId& id = observed.pod.id;
  observed.problem = "pod " + id.namespace_name + "/" + id.name + ": " + problem;
}

// The fields of a Pod that has a name and a UID.
Result<PodFields> ReadWholePod(const PaddedText& text, const PodRules& rules) {
  PodFields fields;
  const Status read = ReadObject(text, [&](simdjson::ondemand::object object) -> Status {
    fields = ReadPod(object, rules);
    return {};
  });
  if (!read) {
    const auto meta = DecodeObjectMeta(text);
    return tl::unexpected(
        Error(read.error()).Within(meta ? "pod " + Shortened(meta->FullName(), 316) : "pod"));
  }
  if (!fields.kind.empty() && fields.kind != "Pod") {
    return Invalid("kind: want Pod, got \"" + Shortened(fields.kind, 64) + "\"");
  }
  const PodId& id = fields.parts.id;
  if (id.name.empty() || id.uid.empty()) {
    return Invalid("metadata: want a name and a uid, got \"" + Shortened(id.name, 64) +
                   "\" and \"" + Shortened(id.uid, 64) + "\"");
  }
  BERTH_TRY_STATUS(CheckNames(id, "metadata"));
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

// The name of a Deployment's ReplicaSet ends with the hash that its pods have as a label.
std::string ReplicaSetOf(const PodParts& parts) {
  constexpr std::string_view kHash = "pod-template-hash";
  const auto hash = std::ranges::find(parts.labels, kHash, &Labels::value_type::first);
  if (parts.controller_kind != "ReplicaSet" || hash == parts.labels.end()) return "";
  const bool ends = parts.controller_name.ends_with("-" + hash->second);
  return ends && parts.controller_name.size() <= kMostNameBytes ? parts.controller_name : "";
}

PodLife LifeOf(const PodFields& fields) {
  PodLife life{.started = fields.started, .ends = fields.ends};
  life.completes = fields.parts.completes;
  life.evicted = fields.terminating && fields.evicted;
  life.comes_back = fields.parts.of_daemon_set || fields.parts.controller_kind == "Node";
  life.replica_set = ReplicaSetOf(fields.parts);
  return life;
}

// The object with its kind, which a list says once, and with a namespace.
PaddedText WholeObject(const Json& object, std::string_view kind) {
  Json whole = object;
  whole["kind"] = kind;
  Json& metadata = whole["metadata"];
  if (metadata.is_object()) {
    Json& space = metadata["namespace"];
    if (space.is_null() || space == "") space = "default";
  }
  return PaddedText(JsonText(whole));
}

}  // namespace

Result<ObservedPod> DecodeObservedPod(const PaddedText& text, const PodRules& rules) {
  BERTH_TRY(PodFields fields, ReadWholePod(text, rules));
  ObservedPod observed;
  const bool decided = fields.parts.annotations.contains(kDecisionKey);
  const auto [dialect, grants] = TakeGrants(rules.dialects(), fields.parts);
  const Annotation agents = fields.parts.annotations.extract(std::string(kGivenKey));
  PodParts asked;
  if (!fields.node.empty()) {
    asked.containers = fields.parts.containers;
    asked.overhead = fields.parts.overhead;
  }
  observed.controller = fields.parts.controller;
  observed.life = LifeOf(fields);
  fields.parts.gated = !fields.held_back.empty();
  observed.pod = rules.ToRequest(std::move(fields.parts));
  observed.node = std::move(fields.node);
  observed.over = IsOver(fields);
  observed.succeeded = fields.phase == "Succeeded";
  if (observed.succeeded && !fields.terminating) observed.finished = fields.finished;
  observed.running = fields.phase == "Running";
  observed.not_admitted = NotAdmitted(fields);
  observed.terminating = fields.terminating;
  observed.nominated = std::move(fields.nominated);
  observed.held_back = std::move(fields.held_back);
  observed.unschedulable = fields.unschedulable;
  observed.scheduler_said = std::move(fields.scheduler_said);
  observed.created = fields.created;
  observed.resource_version = std::move(fields.resource_version);
  observed.lacks_devices = decided && AsksForGpus(asked) && observed.pod.shape.wants_gpu() &&
                           !observed.node.empty() && (!grants || grants.key() != kDevicesKey);
  const Dialect* const believed = observed.lacks_devices ? nullptr : dialect;
  if (!observed.node.empty()) Place(observed, believed, grants, asked);
  TakeGiven(fields, agents, rules, observed);
  return observed;
}

WaitingPod WaitingOf(ObservedPod observed) {
  if (observed.terminating) {
    PodRequest name;
    name.id = std::move(observed.pod.id);
    name.scheduler = std::move(observed.pod.scheduler);
    observed.pod = std::move(name);
    // Without finalizers it would be gone at once.
    observed.held_back = std::string(kBeingDeleted) + "; it stays until its finalizers are removed";
  }
  return {.pod = std::make_shared<const PodRequest>(std::move(observed.pod)),
          .held_back = std::move(observed.held_back),
          .unschedulable = observed.unschedulable,
          .created = observed.created,
          .scheduler_said = std::move(observed.scheduler_said),
          .nominated = std::move(observed.nominated),
          .replica_set = std::move(observed.life.replica_set)};
}

Result<bool> TakeGroup(const Json& object, std::string_view kind, const PodRules& rules,
                       PodGroups& groups, std::string& problem) {
  const PaddedText text = WholeObject(object, kind);
  const auto api = object.find("apiVersion");
  const bool has_api = api != object.end() && api->is_string();
  const std::string version = has_api ? api->get<std::string>() : "";
  for (const Dialect& dialect : rules.dialects()) {
    BERTH_TRY(const bool is_read, dialect.TakeGroup(version, kind, text, rules, groups, problem));
    if (is_read) return true;
  }
  return false;
}

}  // namespace berth::wire
