// SPDX-License-Identifier: Apache-2.0
#include "server/wire/api/pod_writes.h"

#include "server/wire/api/lease_json.h"
#include "server/wire/json/json_text.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/pod/devices_annotation.h"

namespace berth::wire {

Result<std::string> EncodeBinding(const PodRequest& pod, const Placement& placement,
                                  const NodeSpec& node, std::string_view decision, WallTime now,
                                  const Dialects& dialects) {
  BERTH_TRY_STATUS(CheckDevices(placement, node));
  Annotations written;
  // Where kube-scheduler gives GPUs, the pod's claim says which it has.
  const bool is_written = node.by_claims.empty() || placement.grants.empty();
  for (const Dialect& dialect : dialects) {
    if (is_written) dialect.WriteGrants(pod, placement, node, now, written);
  }
  Json annotations = {{kDecisionKey, decision}};
  for (const auto& [key, value] : written) annotations[key] = value;
  return JsonText({{"apiVersion", "v1"},
                   {"kind", "Binding"},
                   {"metadata",
                    {{"name", pod.id.name},
                     {"namespace", pod.id.namespace_name},
                     {"uid", pod.id.uid},
                     {"annotations", std::move(annotations)}}},
                   {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", placement.node}}}});
}

std::string EncodeWake(const PodId& pod, WallTime now) {
  const std::string time = SecondTime(now);
  std::string out = R"({"metadata":{"uid":)";
  AppendString(out, pod.uid);
  out += R"(},"status":{"conditions":[{"type":"berth.dev/RoomSeen","status":"True",)";
  out += R"("reason":"AskAgain","message":"berth has room for the pod since it was refused",)";
  out += R"("lastProbeTime":")" + time + R"(","lastTransitionTime":")" + time + R"("}]}})";
  return out;
}

std::string EncodeEviction(const PodId& pod) {
  std::string out = R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":)";
  AppendString(out, pod.name);
  out += R"(,"namespace":)";
  AppendString(out, pod.namespace_name);
  out += R"(},"deleteOptions":{"preconditions":{"uid":)";
  AppendString(out, pod.uid);
  out += "}}}";
  return out;
}

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
