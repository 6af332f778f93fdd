// SPDX-License-Identifier: Apache-2.0
#include "server/wire/api/lease_json.h"

#include <chrono>
#include <cstdio>
#include <ctime>

#include "server/wire/json/strict_json.h"

namespace berth::wire {
namespace {

template <class T>
void Read(const Json& object, const char* key, T& value) {
  const auto field = object.find(key);
  if (field != object.end() && !field->is_null()) value = field->get<T>();
}

}  // namespace

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
