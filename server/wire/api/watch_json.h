// SPDX-License-Identifier: Apache-2.0
//
// The envelopes of the Kubernetes API: a page of a list, one line of a watch, a Status. Objects are
// passed through as the bytes that they came in; what is in them is for pod_json.h and node_json.h.
//
// Only the envelope is checked: an object that is no JSON inside may be passed on. Any thread may
// call any function.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/padded_text.h"
#include "base/result.h"

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

}  // namespace berth::wire
