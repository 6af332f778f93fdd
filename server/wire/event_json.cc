// SPDX-License-Identifier: Apache-2.0
#include "server/wire/event_json.h"

#include "server/wire/json_text.h"
#include "server/wire/lease_json.h"

namespace berth::wire {
namespace {

constexpr std::size_t kMostMessageBytes = 1024;

void Add(std::string& out, std::string_view key, std::string_view text) {
  out += out.back() == '{' ? "\"" : ",\"";
  out += key;
  out += "\":";
  AppendString(out, text);
}

}  // namespace

std::string EncodeEvent(const PodEvent& event, std::string_view name) {
  const std::string time = SecondTime(event.time);
  std::string out = R"({"apiVersion":"v1","kind":"Event","metadata":{)";
  Add(out, "name", name);
  Add(out, "namespace", event.pod.namespace_name);
  out += R"(},"involvedObject":{)";
  Add(out, "apiVersion", "v1");
  Add(out, "kind", "Pod");
  Add(out, "namespace", event.pod.namespace_name);
  Add(out, "name", event.pod.name);
  Add(out, "uid", event.pod.uid);
  out += "}";
  Add(out, "type", event.warning ? "Warning" : "Normal");
  Add(out, "reason", event.reason);
  Add(out, "message", std::string_view(event.message).substr(0, kMostMessageBytes));
  Add(out, "firstTimestamp", time);
  Add(out, "lastTimestamp", time);
  out += R"(,"count":1,"source":{"component":"berth"})";
  Add(out, "reportingComponent", "berth.dev/berth");
  Add(out, "reportingInstance", event.instance);
  out += "}";
  return out;
}

}  // namespace berth::wire
