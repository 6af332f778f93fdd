// SPDX-License-Identifier: Apache-2.0
//
// A Pod as the API server lists and watches it -> ObservedPod: what it asks for, and where it is.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/padded_text.h"
#include "base/result.h"
#include "cluster/groups/pod_groups.h"
#include "cluster/state/waiting_pods.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_record.h"
#include "cluster/values/pod_request.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::wire {

struct ObservedPod {
  PodRequest pod;
  std::string node;      // spec.nodeName; empty = not bound
  bool over = false;     // it has ended and holds nothing any more
  bool running = false;  // its containers have been started
  // It never ran, because the kubelet did not admit it: "UnexpectedAdmissionError: ...". Empty: no.
  std::string not_admitted;
  bool terminating = false;  // it was told to end, and still holds what it has
  PodLife life = {};
  // Of a pod without a node:
  std::string held_back;       // WaitingPod::held_back
  bool unschedulable = false;  // kube-scheduler has said that no node will do, ...
  std::string scheduler_said;  // ...in these words; at most kMostSaid bytes
  std::optional<WallTime> created;
  std::string nominated = {};  // the node on which kube-scheduler makes room for it, by evictions
  bool succeeded = false;      // it is over, and all of its containers have ended well
  std::optional<WallTime> finished = {};  // then: when it ended, unless it was told to
  std::string controller;                 // the UID of who made it; empty = nobody
  std::string resource_version;
  // Once bound: its effective request, and the devices by the first dialect that has recorded them.
  // A GPU pod without grants was bound past Berth, or has a problem; its node counts it all the
  // same.
  Placement placement;
  // It asks for GPUs and has the id of a decision of Berth's, and not the devices that Berth writes
  // beside it: somebody took them away, or its node gave places. Records of other schedulers are
  // not read then: they would be inventions.
  bool lacks_devices = false;
  // What it was given, by the kubelet or else by the node's agent; nullptr: nobody says it.
  std::shared_ptr<const GivenDevices> given = nullptr;
  // What is wrong with an annotation, or with what it was given: pod, key, what was wanted and
  // found. Empty = nothing.
  std::string problem;
};

// Error: kInvalidArgument for what is not JSON, not a Pod, or a Pod without a name or UID.
Result<ObservedPod> DecodeObservedPod(const PaddedText& text, const PodRules& rules);

// One without a node that has not ended, as those that wait keep it; of one that is being deleted,
// which needs no node, its name, with the reason in `held_back`.
inline constexpr std::string_view kBeingDeleted = "is being deleted";
WaitingPod WaitingOf(ObservedPod observed);

// Puts a PodGroup, or an object of that kind which a controller makes gangs of, into `groups`,
// under the namespace "default" where it has none. False: no dialect reads those of its apiVersion.
// problem: what of it cannot be read. Error: kInvalidArgument with the field. Requires: an object.
Result<bool> TakeGroup(const Json& object, std::string_view kind, const PodRules& rules,
                       PodGroups& groups, std::string& problem);

}  // namespace berth::wire
