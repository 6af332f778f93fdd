// SPDX-License-Identifier: Apache-2.0
//
// The JSON of a Kubernetes Pod -> PodRequest. One pass, in any order of fields, any case of field
// names; fields that do not matter are skipped unread.
#pragma once

#include <simdjson.h>

#include <optional>
#include <string>

#include "base/clock.h"
#include "cluster/values/pod_record.h"
#include "cluster/values/pod_request.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::wire {

// Throws simdjson::simdjson_error where the text is not JSON or a field has another type than
// Kubernetes gives it; callers stop it at the room's door. What is JSON but makes no sense (a bad
// quantity) comes back as the request's refusal.
PodRequest DecodePod(simdjson::ondemand::object pod, const PodRules& rules);

// The same pass, with what only the API server's pods have (see pod_object.h).
inline constexpr std::size_t kMostSaid = 1000;
struct PodFields {
  PodParts parts;
  std::string kind;                       // empty = not said, as in lists
  std::string resource_version;           // metadata
  bool terminating = false;               // metadata.deletionTimestamp is set
  bool evicted = false;                   // PodLife::evicted, once it is terminating
  std::optional<WallTime> started, ends;  // status.startTime, metadata.deletionTimestamp
  std::optional<WallTime> finished = {};  // status: when the last of its containers ended
  std::string node;                       // spec.nodeName
  std::string phase;                      // status
  std::string reason, message;            // status: why the kubelet refused it, where it did
  bool unschedulable = false;             // status: kube-scheduler has said that no node will do
  std::string scheduler_said = {};        // in these words; at most kMostSaid bytes
  std::string nominated = {};             // status.nominatedNodeName, if it may name a node
  std::string held_back = {};             // spec.schedulingGates, in words; empty = there are none
  std::optional<WallTime> created = {};   // metadata.creationTimestamp
  // status: the GPUs that the kubelet gave its containers. What is wrong with it; empty = nothing.
  GivenDevices given = {};
  std::string given_problem = {};
};
PodFields ReadPod(simdjson::ondemand::object pod, const PodRules& rules);

// Only metadata.uid (or "namespace/name" without one).
std::string DecodePodUid(simdjson::ondemand::object pod);

}  // namespace berth::wire
