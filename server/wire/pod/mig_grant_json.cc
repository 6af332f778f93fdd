// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/mig_grant_json.h"

#include <algorithm>
#include <utility>

#include "cluster/node/mig_use.h"

namespace berth::wire {
namespace {

constexpr int kMostGpuIndex = 4095;  // as in mig_json.cc
constexpr int kMostSlices = 100'000;
constexpr std::int64_t kMostWantedMib = std::int64_t{1} << 40;

}  // namespace

Status CheckGpuUuid(const std::string& path, const std::string& uuid) {
  constexpr std::size_t kLongest = 64;
  if (uuid.size() <= kLongest) return {};
  return Invalid(path + ": want at most " + std::to_string(kLongest) + " characters, got " +
                 std::to_string(uuid.size()));
}

Json MigGrantJson(const MigGrant& grant, const std::string& uuid) {
  Json json = Json::object();
  if (grant.gpu >= 0) json["gpu"] = grant.gpu;
  if (const std::string& known = uuid.empty() ? grant.uuid : uuid; !known.empty()) {
    json["uuid"] = known;
  }
  json["profile"] = MigProfileName(grant.profile);
  if (grant.start >= 0) json["start"] = grant.start;
  if (grant.shared) json["shared"] = true;
  return json;
}

Status ReadMigGrant(const Json& json, const std::string& path, std::vector<MigGrant>& grants) {
  Fields fields(json, path);
  MigGrant grant;
  std::string uuid;
  fields.Int("gpu", 0, kMostGpuIndex, grant.gpu);
  fields.Text("uuid", uuid);
  fields.Profile("profile", grant.profile);
  fields.Int("start", 0, kMaxMigUnits - 1, grant.start);
  fields.Bool("shared", grant.shared);
  BERTH_TRY_STATUS(fields.Finish());
  if (grants.size() >= kMaxMigDevicesPerPod) {
    return Invalid(path + ": want at most " + std::to_string(kMaxMigDevicesPerPod) + " devices");
  }
  BERTH_TRY_STATUS(CheckGpuUuid(path + ".uuid", uuid));
  if (grant.gpu < 0) grant.uuid = std::move(uuid);  // else it is for people
  if (grant.start >= 0 && !grant.exact()) {
    return Invalid(path + ".gpu: want the index of a GPU beside the start, got none");
  }
  if (grant.exact() && std::ranges::find(grants, grant) != grants.end()) {
    return Invalid(path + ": " + NameOf(grant) + " is there twice");
  }
  grants.push_back(grant);
  return {};
}

Json MigWantsJson(const MigSlices& ask) {
  Json wants = Json::array();
  for (const MigWant& want : ask.wants) {
    Json json = {{"count", want.count}};
    if (want.profile) {
      json["profile"] = MigProfileName(*want.profile);
      json["shared"] = want.shared;
    } else {
      json["min_slices"] = want.min_slices;
      json["min_memory_mib"] = want.min_memory_mib;
    }
    wants.push_back(std::move(json));
  }
  return wants;
}

Status ReadMigWant(const Json& json, const std::string& path, MigSlices& ask) {
  Fields fields(json, path);
  MigWant want;
  fields.Profile("profile", want.profile);
  fields.Bool("shared", want.shared);
  fields.Int("min_slices", 0, kMostSlices, want.min_slices);
  fields.Integer("min_memory_mib", 0, kMostWantedMib, want.min_memory_mib);
  fields.Int("count", 1, kMaxMigDevicesPerPod, want.count);
  BERTH_TRY_STATUS(fields.Finish());
  ask.wants.insert(std::ranges::upper_bound(ask.wants, want), want);
  return {};
}

}  // namespace berth::wire
