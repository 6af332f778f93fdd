// SPDX-License-Identifier: Apache-2.0
//
// What is written to one pod, as JSON: its Binding, its Eviction, a condition that wakes it.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "cluster/node/node.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"
#include "server/wire/pod/dialect.h"

namespace berth::wire {

// A Binding, v1: a pod, its node and its devices in one atomic write.
// The pod's UID is a precondition of the write. The grants go along as the annotations that the
// dialects write, the decision's id as berth.dev/decision. Error: kInternal if the node does not
// have the devices (CheckDevices): a Binding that named others would give these twice.
Result<std::string> EncodeBinding(const PodRequest& pod, const Placement& placement,
                                  const NodeSpec& node, std::string_view decision, WallTime now,
                                  const Dialects& dialects);

// The condition on a pod's status by which kube-scheduler is made to ask about it again: any change
// of a pod that an extender has refused does that, and this one changes nothing else.
inline constexpr const char* kWakeContentType = "application/strategic-merge-patch+json";

// A patch of pods/status. It holds for the pod of that UID alone, and of two patches within a
// second the second changes nothing.
std::string EncodeWake(const PodId& pod, WallTime now);

// The JSON of an Eviction, policy/v1: what is posted to pods/NAME/eviction.
// It holds for the pod of that UID alone.
std::string EncodeEviction(const PodId& pod);

// The JSON of an Event about a pod, v1: what `kubectl describe pod` shows.

struct PodEvent {
  PodId pod;
  bool warning = false;
  std::string reason;   // CamelCase, a few words
  std::string message;  // cut to 1024 bytes, the most that the API server takes
  WallTime time;
  std::string instance;  // who says so
};

// Requires: a name that is unique in the namespace.
std::string EncodeEvent(const PodEvent& event, std::string_view name);

// The JSON of a Lease, coordination.k8s.io/v1: who of several processes leads.

struct Lease {
  std::string namespace_name;
  std::string name;
  std::string resource_version;  // empty: to be created
  std::string holder;            // empty: nobody
  int seconds = 0;
  std::string acquire_time;  // RFC 3339 with microseconds
  std::string renew_time;
  int transitions = 0;
};

// Fields that are absent stay empty. Error: kInvalidArgument where it is not a Lease.
Result<Lease> DecodeLease(std::string_view text);
std::string EncodeLease(const Lease& lease);

// "2026-03-01T12:00:00.123456Z", as Kubernetes writes a MicroTime.
std::string MicroTime(WallTime time);
// "2026-03-01T12:00:00Z": what of it are whole seconds.
std::string SecondTime(WallTime time);

}  // namespace berth::wire
