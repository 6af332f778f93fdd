// SPDX-License-Identifier: Apache-2.0
#include "server/wire/api/event_json.h"

#include "server/wire/api/lease_json.h"
#include "server/wire/json/strict_json.h"

namespace berth::wire {
namespace {

constexpr std::size_t kMostMessageBytes = 1024;

}  // namespace

std::string EncodeEvent(const PodEvent& event, std::string_view name) {
  const std::string time = SecondTime(event.time);
  return JsonText({{"apiVersion", "v1"},
                   {"kind", "Event"},
                   {"metadata", {{"name", name}, {"namespace", event.pod.namespace_name}}},
                   {"involvedObject",
                    {{"apiVersion", "v1"},
                     {"kind", "Pod"},
                     {"namespace", event.pod.namespace_name},
                     {"name", event.pod.name},
                     {"uid", event.pod.uid}}},
                   {"type", event.warning ? "Warning" : "Normal"},
                   {"reason", event.reason},
                   {"message", std::string_view(event.message).substr(0, kMostMessageBytes)},
                   {"firstTimestamp", time},
                   {"lastTimestamp", time},
                   {"count", 1},
                   {"source", {{"component", "berth"}}},
                   {"reportingComponent", "berth.dev/berth"},
                   {"reportingInstance", event.instance}});
}

}  // namespace berth::wire
