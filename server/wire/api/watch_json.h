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

#include "base/padded_text.h"
#include "base/result.h"
#include "cluster/groups/disruption_budgets.h"
#include "scoring/earmarks/job_ends.h"

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

}  // namespace berth::wire
