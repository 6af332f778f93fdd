// SPDX-License-Identifier: Apache-2.0
//
// The envelopes of the Kubernetes API: a page of a list, one line of a watch, a Status. Objects are
// passed through as the bytes that they came in; what is in them is for pod_json.h and node_json.h.
//
// Only the envelope is checked: an object that is no JSON inside may be passed on. Any thread may
// call any function.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/padded_text.h"
#include "base/result.h"
#include "cluster/groups/disruption_budgets.h"
#include "cluster/node/node.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"
#include "scoring/earmarks/pod_ends.h"
#include "server/wire/pod/dialect.h"

namespace berth::wire {

// kind Status: what the API server says went wrong.
struct ApiStatus {
  int code = 0;         // as the HTTP status would be; 0 = not said
  std::string reason;   // "Expired", "Forbidden", ...; "" = not said
  std::string message;  // "" = not said
};

// What is no Status becomes its message, cut off after 200 bytes.
ApiStatus DecodeStatus(std::string_view text);

struct ListPage {
  std::string resource_version;  // never empty
  std::string next;              // the value for `continue`; "" = this was the last page
};

// Calls `item` with each object's bytes, in order; they are valid during the call; and `head` as
// soon as it has read what is returned: an API server writes that before the objects. Error:
// kInvalidArgument with the place: what `item` was given until then stands.
Result<ListPage> DecodeListPage(const PaddedText& text,
                                const std::function<void(std::string_view object)>& item,
                                const std::function<void(const ListPage& page)>& head = {});

// What stands before the objects, of a page that is still coming: `begin` is the beginning of its
// text. Empty: it has not come, or it stands behind the objects.
std::optional<ListPage> DecodeListHead(std::string_view begin);

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark, kError };

struct WatchEvent {
  WatchEventType type = WatchEventType::kError;
  // Views into the line.
  std::string_view kind;
  std::string_view resource_version;  // never empty, but for kError
  std::string_view object;            // its bytes; of a kError: a Status
};

// {"type":"ADDED","object":{"kind":...,"metadata":{"resourceVersion":...},...}}. Error:
// kInvalidArgument.
Result<WatchEvent> DecodeWatchEvent(const PaddedText& line);

// The JSON of a batch/v1 Job, as the API server lists and watches it: until when it runs. (What it
// says of gangs is read in server/dialects/groups.)

// A deadline that no Job has, or one of more than a year, is none; a start that is no time has not
// been. Error: kInvalidArgument for what is not JSON, not a Job, has no name, or a UID that no pod
// can name as that of its controller.
Result<JobDeadline> DecodeJobDeadline(const PaddedText& text);

// The JSON of a policy/v1 PodDisruptionBudget, as the API server lists and watches it.

// Error: kInvalidArgument for what is not JSON, not such a budget, or has an operator that there is
// not.
Result<PodDisruptionBudget> DecodeBudget(const PaddedText& text);

// What is written to one pod, as JSON: its Binding, its Eviction, a condition that wakes it.

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
