// SPDX-License-Identifier: Apache-2.0
#include "server/wire/api/writes_json.h"

#include <chrono>
#include <cstdio>
#include <ctime>

#include "server/wire/json/json_text.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/pod/devices_annotation.h"

namespace berth::wire {
namespace {

template <class T>
void Read(const Json& object, const char* key, T& value) {
  const auto field = object.find(key);
  if (field != object.end() && !field->is_null()) value = field->get<T>();
}

constexpr std::size_t kMostMessageBytes = 1024;

}  // namespace

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

Result<Lease> DecodeLease(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    Lease lease;
    const Json& metadata = json.at("metadata");
    Read(metadata, "namespace", lease.namespace_name);
    Read(metadata, "name", lease.name);
    Read(metadata, "resourceVersion", lease.resource_version);
    const Json spec = json.value("spec", Json::object());
    Read(spec, "holderIdentity", lease.holder);
    Read(spec, "leaseDurationSeconds", lease.seconds);
    Read(spec, "acquireTime", lease.acquire_time);
    Read(spec, "renewTime", lease.renew_time);
    Read(spec, "leaseTransitions", lease.transitions);
    return lease;
  } catch (const Json::exception& problem) {
    return Invalid(std::string("lease: want a coordination.k8s.io/v1 Lease: ") + problem.what());
  }
}

std::string EncodeLease(const Lease& lease) {
  Json json;
  json["apiVersion"] = "coordination.k8s.io/v1";
  json["kind"] = "Lease";
  json["metadata"] = {{"name", lease.name}, {"namespace", lease.namespace_name}};
  if (!lease.resource_version.empty()) {
    json["metadata"]["resourceVersion"] = lease.resource_version;
  }
  json["spec"] = {{"holderIdentity", lease.holder},
                  {"leaseDurationSeconds", lease.seconds},
                  {"acquireTime", lease.acquire_time},
                  {"renewTime", lease.renew_time},
                  {"leaseTransitions", lease.transitions}};
  return JsonText(json);
}

std::string MicroTime(WallTime time) {
  using std::chrono::microseconds;
  const auto since = std::chrono::floor<microseconds>(time.time_since_epoch());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  const std::time_t whole = seconds.count();
  std::tm parts{};
  gmtime_r(&whole, &parts);
  char text[32];
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + size, sizeof text - size, ".%06dZ",
                static_cast<int>((since - seconds).count()));
  return text;
}

std::string SecondTime(WallTime time) { return MicroTime(time).substr(0, 19) + "Z"; }

}  // namespace berth::wire
