// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/given_json.h"

#include <algorithm>
#include <utility>

#include "cluster/node/mig_use.h"
#include "topology/mig/mig_product.h"

namespace berth::wire {
namespace {

constexpr int kMostGpuIndex = 4095;  // as in mig_json.cc
constexpr int kMostSlices = 100'000;
constexpr std::int64_t kMostWantedMib = std::int64_t{1} << 40;

void SortUnique(std::vector<std::string>& ids) {
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

// More are not kept while reading: what is beyond the bound may come many times.
constexpr std::size_t kMostRead = 4 * GivenDevices::kMostIds;

Status AddIds(GivenKind kind, const Json& ids, const std::string& path, GivenCollector& given) {
  if (!ids.is_array()) return Invalid(path + ": want a list of IDs, got " + ids.type_name());
  for (const Json& id : ids) {
    if (!id.is_string()) return Invalid(path + ": want IDs as texts, got " + id.type_name());
    given.Add(kind, id.get_ref<const std::string&>());
  }
  return {};
}

std::vector<std::string>& ListOf(GivenKind kind, GivenDevices& given) {
  if (kind == GivenKind::kMig) return given.mig;
  return kind == GivenKind::kClaimed ? given.claimed : given.ids;
}

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

void GivenCollector::Add(GivenKind kind, std::string_view id, std::string_view health) {
  if (kind == GivenKind::kOther) return;
  const std::string_view whole = id;
  const bool claimed = kind == GivenKind::kClaimed;
  const std::size_t longest = claimed ? GivenDevices::kLongestClaimed : GivenDevices::kLongestId;
  if (!claimed) id = id.substr(0, id.find("::"));
  if (id.empty() || id.size() > longest || whole.size() > 2 * longest) {
    problem_ = "want device IDs of 1.." + std::to_string(longest) + " bytes, got one of " +
               std::to_string(whole.size());
  }
  std::vector<std::string>& list = ListOf(kind, given_);
  if (list.size() >= kMostRead) {
    problem_ = "want at most " + std::to_string(GivenDevices::kMostIds) + " devices, got more";
  }
  if (!problem_.empty()) return;
  list.emplace_back(id);
  if (kind == GivenKind::kGpus && whole.size() > id.size()) replicas_.emplace(whole);
  if (health == "Unhealthy") given_.unwell.emplace_back(id);
}

Result<GivenDevices> GivenCollector::Finish() {
  if (!problem_.empty()) return Invalid(problem_);
  SortUnique(given_.unwell);
  for (const GivenKind kind : {GivenKind::kGpus, GivenKind::kMig, GivenKind::kClaimed}) {
    std::vector<std::string>& list = ListOf(kind, given_);
    SortUnique(list);
    if (list.size() > GivenDevices::kMostIds) {
      return Invalid("want at most " + std::to_string(GivenDevices::kMostIds) + " devices, got " +
                     std::to_string(list.size()));
    }
  }
  for (const std::string& id : given_.ids) {
    if (replicas_.empty()) break;
    const std::string begin = id + "::";
    const auto is_of = [&begin](const std::string& replica) { return replica.starts_with(begin); };
    const auto count = std::ranges::count_if(replicas_, is_of);
    given_.replicas.push_back(std::max(static_cast<int>(count), 1));
  }
  return std::move(given_);
}

GivenKind KindOfResource(std::string_view resource, const IsGpuResource& is_gpus) {
  constexpr std::string_view kClaim = "claim:";
  if (resource.starts_with(kClaim)) return GivenKind::kClaimed;
  if (is_gpus(resource)) return GivenKind::kGpus;
  return resource.starts_with(kMigResourcePrefix) ? GivenKind::kMig : GivenKind::kOther;
}

Result<GivenDevices> DecodeGiven(std::string_view text, const IsGpuResource& is_gpus) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Invalid("want JSON, got something else");
  if (!json.is_object()) return Invalid(std::string("want an object, got ") + json.type_name());
  GivenCollector given(Evidence::kAgent);
  int version = 0;
  Fields fields(json, "");
  fields.Int("version", 1, 1, version);
  fields.Object("containers", [&](const Json& list, const std::string& path) -> Status {
    for (const auto& [name, resources] : list.items()) {
      const std::string place = path + "." + name;
      if (!resources.is_object()) {
        return Invalid(place + ": want an object, got " + resources.type_name());
      }
      for (const auto& [resource, ids] : resources.items()) {
        const GivenKind kind = KindOfResource(resource, is_gpus);
        if (kind != GivenKind::kGpus && kind != GivenKind::kMig) continue;
        BERTH_TRY_STATUS(AddIds(kind, ids, place + "." + resource, given));
      }
    }
    return {};
  });
  BERTH_TRY_STATUS(fields.Finish());
  if (version == 0) return Invalid("version: want 1, got none");
  return given.Finish();
}

}  // namespace berth::wire
