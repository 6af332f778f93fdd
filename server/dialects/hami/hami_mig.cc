// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/hami/hami_dialect.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "base/text.h"
#include "server/dialects/vgpu/vgpu_devices.h"
#include "server/wire/pod/given_json.h"
#include "topology/mig/mig_product.h"

namespace berth::dialects {
namespace {

using wire::Fields;
using wire::Json;

constexpr int kMostNumber = 1'000'000;
constexpr std::int64_t kMostMemoryMib = std::int64_t{1} << 40;
constexpr std::size_t kMostBytes = std::size_t{1} << 20;  // of an annotation

// Calls read(item, path) for each item of the list.
template <class Read>
Status EachOf(const Json& list, Read read) {
  if (!list.is_array()) return Invalid("want a JSON list");
  for (std::size_t i = 0; i < list.size(); ++i) {
    BERTH_TRY_STATUS(read(list[i], "[" + std::to_string(i) + "]"));
  }
  return {};
}

struct Place {
  int start = 0, size = 0;
};

Status ReadPlace(const Json& json, const std::string& path, Place& place) {
  Fields fields(json, path);
  fields.Int("start", 0, kMaxMigUnits - 1, place.start);
  fields.Int("size", 0, kMaxMigUnits, place.size);
  BERTH_TRY_STATUS(fields.FinishForeign());
  if (place.size == 0) return Invalid(path + ".size: want 1 or more, got none");
  return {};
}

struct Profile {
  MigProfile profile;
  int memory_mib = 0;
  int size = 0;
  std::vector<int> starts;
};

Status ReadMigProfile(const Json& json, const std::string& path, std::vector<Profile>& profiles) {
  Fields fields(json, path);
  Profile& read = profiles.emplace_back();
  fields.Profile("name", read.profile);
  fields.Int("memoryMB", 0, kMostNumber, read.memory_mib);
  fields.List("placements", [&read](const Json& placement, const std::string& at) -> Status {
    Place place;
    BERTH_TRY_STATUS(ReadPlace(placement, at, place));
    if (read.size != 0 && place.size != read.size) {
      return Invalid(at + ".size: want " + std::to_string(read.size) + " as before, got " +
                     std::to_string(place.size));
    }
    read.size = place.size;
    read.starts.push_back(place.start);
    return {};
  });
  BERTH_TRY_STATUS(fields.FinishForeign());
  if (read.starts.empty()) return Invalid(path + ".placements: want one or more, got none");
  return {};
}

struct Gpu {
  std::string uuid;
  int index = 0;
  std::string type;
  bool healthy = false;
};

// What the register says of the GPUs that are cut.
struct Register {
  std::vector<Gpu> gpus;
  std::vector<Profile> profiles;  // of the first: all of a node are alike
  std::int64_t devices = 0;
  bool has_others = false;     // GPUs that are not cut, and announced,
  bool shares_others = false;  // as more devices than one
  std::map<int, std::pair<GpuSpec, std::string>> others = {};  // these with their types, by index
};

Status ReadGpu(const Json& json, const std::string& path, Register& all) {
  Fields fields(json, path);
  std::string mode;
  Gpu gpu;
  int count = 0;
  fields.Text("mode", mode);
  fields.Text("id", gpu.uuid);
  fields.Int("index", 0, kMostNumber, gpu.index);
  fields.Text("type", gpu.type);
  fields.Int("count", 0, kMostNumber, count);
  fields.Bool("health", gpu.healthy);
  if (mode == "mig" && all.gpus.empty()) {
    fields.List("migProfiles", [&all](const Json& profile, const std::string& at) {
      return ReadMigProfile(profile, at, all.profiles);
    });
  }
  std::int64_t memory_mib = 0;
  int cores = 0;
  fields.Integer("devmem", 0, kMostMemoryMib, memory_mib);  // as HAMi scales it
  fields.Int("devcore", 0, kMostNumber, cores);             // the same
  BERTH_TRY_STATUS(fields.FinishForeign());
  if (mode != "mig") {
    all.has_others = all.has_others || count > 0;
    all.shares_others = all.shares_others || count > 1;
    const bool healthy = gpu.healthy && count > 0 && !gpu.uuid.empty();
    GpuSpec other{.uuid = gpu.uuid, .memory_mib = memory_mib, .healthy = healthy};
    other.most_users = count;
    other.cores = std::clamp(cores, 100, kMostCores);
    all.others.insert_or_assign(gpu.index, std::pair(std::move(other), std::move(gpu.type)));
    return {};
  }
  if (gpu.uuid.empty()) return Invalid(path + ".id: want a UUID, got none");
  if (all.profiles.empty()) return Invalid(path + ".migProfiles: want one or more, got none");
  if (!all.gpus.empty() && gpu.type != all.gpus.front().type) {
    return Invalid(path + ".type: want \"" + all.gpus.front().type +
                   "\" as all GPUs that are cut, got \"" + gpu.type + "\"");
  }
  all.devices += count;
  all.gpus.push_back(std::move(gpu));
  return {};
}

Status ReadAllocation(const Json& json, const std::string& path, MigGrant& grant) {
  Fields fields(json, path);
  Place place;
  fields.Text("gpuUUID", grant.uuid);
  fields.Profile("profile", grant.profile);
  fields.Object("placement", [&place](const Json& placement, const std::string& at) {
    return ReadPlace(placement, at, place);
  });
  BERTH_TRY_STATUS(fields.FinishForeign());
  if (grant.uuid.empty()) return Invalid(path + ".gpuUUID: want a UUID, got none");
  BERTH_TRY_STATUS(wire::CheckGpuUuid(path + ".gpuUUID", grant.uuid));
  if (place.size == 0) return Invalid(path + ".placement: want start and size, got none");
  grant.start = place.start;
  return {};
}

// The register has MiB as NVML says them, the catalogue perhaps from hundredths of GiB.
bool IsMemoryOf(const MigRow& known, int memory_mib) {
  constexpr int kPrintedMib = 6;
  return memory_mib == 0 || std::abs(known.memory_mib - memory_mib) <= kPrintedMib;
}

bool IsCatalogued(const MigProduct& product, const Profile& profile) {
  const auto row = product.RowOf(profile.profile);
  if (!row) return false;
  const MigRow& known = product.rows()[static_cast<std::size_t>(*row)];
  MigUnits starts = 0;
  for (const int start : profile.starts) starts |= static_cast<MigUnits>(1U << start);
  return known.memory_units == profile.size && known.starts == starts &&
         IsMemoryOf(known, profile.memory_mib);
}

// HAMi's plugin makes an instance by its number of slices alone, which is the smallest one of so
// many: it has no other with more memory, and none with an extension.
bool IsMade(const Profile& profile, const Register& all, const MigProduct* known) {
  const auto is_smaller = [&profile](const MigProfile& other, int size) {
    return other.extension == MigExtension::kNone &&
           other.compute_slices == profile.profile.compute_slices && size < profile.size;
  };
  const bool smaller_there =
      std::ranges::any_of(all.profiles,
                          [&](const Profile& p) { return is_smaller(p.profile, p.size); }) ||
      (known != nullptr && std::ranges::any_of(known->rows(), [&](const MigRow& row) {
         return is_smaller(row.profile, row.memory_units);
       }));
  return profile.profile.extension == MigExtension::kNone && !smaller_there;
}

// Whether a list that is joined by commas has that UUID.
bool Lists(std::string_view list, std::string_view uuid) {
  const std::vector<std::string_view> uuids = PartsOf(list, ',');
  return std::ranges::find(uuids, uuid) != uuids.end();
}

MigRow RowOf(const Profile& profile) {
  MigRow row;
  row.profile = profile.profile;
  row.memory_units = profile.size;
  for (const int start : profile.starts) row.starts |= static_cast<MigUnits>(1U << start);
  row.memory_mib = profile.memory_mib;
  wire::CompleteRow(row);
  return row;
}

wire::MigAnnouncement Announce(const Register& all, const HamiFacts& facts) {
  wire::MigAnnouncement announced;
  MigSpec& rest = announced.rest;
  rest.dynamic = true;
  if (facts.give) {
    rest.allocator = MigAllocator::kBerth;
    rest.agent = kHamiAgent;
  } else {
    rest.allocator = MigAllocator::kHighOrLow;
    rest.foreign = true;
  }
  const std::string own_label = GfdNameOf(all.gpus.front().type);
  const MigProduct* const known =
      MigProductOfLabel(MigProductOfLabel(facts.label) != nullptr ? facts.label : own_label);
  int units = 0, slices = 0;
  std::vector<wire::MigInstance> offered;
  for (const Profile& profile : all.profiles) {
    if (IsMade(profile, all, known)) offered.push_back({profile.profile});
    units = std::max(units, std::ranges::max(profile.starts) + profile.size);
    slices = std::max(slices, profile.profile.compute_slices);
    if (known != nullptr && IsCatalogued(*known, profile)) continue;
    announced.own.rows.push_back(RowOf(profile));
  }
  announced.product = known != nullptr ? known->name() : own_label;
  if (known == nullptr) {
    announced.own.memory_units = units;
    announced.own.compute_slices = slices;
  }
  for (const Gpu& gpu : all.gpus) {
    const bool is_closed = !gpu.healthy || Lists(facts.cordoned, gpu.uuid);
    wire::AnnouncedMigGpu entry;
    entry.path = "gpus[" + std::to_string(announced.gpus.size()) + "]";
    entry.index = gpu.index;
    entry.uuid = gpu.uuid;
    entry.offered = is_closed ? std::vector<wire::MigInstance>() : offered;
    announced.gpus.push_back(std::move(entry));
  }
  return announced;
}

}  // namespace

Result<Json> ParseHamiList(std::string_view text) {
  if (text.size() > kMostBytes) return Invalid("want at most 1 MiB");
  return Json::parse(text, nullptr, false);
}

Result<Json> ParseHamiRegister(std::string_view text) {
  if (text.starts_with('[') || text.empty()) return ParseHamiList(text);
  Json list = Json::array();
  for (const std::string_view gpu : PartsOf(text.substr(0, kMostBytes), ':')) {
    const std::vector<std::string_view> said = PartsOf(gpu, ',');
    const bool has_mode = said.size() == 9;
    const std::string place = "[" + std::to_string(list.size()) + "]: want ";
    if (said.size() != 7 && !has_mode) {
      return Invalid(place + "ID,COUNT,MIB,CORES,TYPE,NUMA,HEALTH and perhaps INDEX,MODE, got \"" +
                     Shortened(gpu, 100) + "\"");
    }
    if (has_mode && said[8] == "mig") return Json(Json::value_t::discarded);
    const auto number = [&said](std::size_t field) {
      return ParseInt(said[field], 0, kMostMemoryMib).value_or(-1);
    };
    Json read = {{"id", said[0]},
                 {"count", number(1)},
                 {"devmem", number(2)},
                 {"devcore", number(3)},
                 {"numa", number(5)},
                 {"type", said[4]},
                 {"health", said[6] == "true"},
                 {"index", has_mode ? number(7) : std::ssize(list)}};
    for (const auto& [key, field] :
         {std::pair("count", 1U), {"devmem", 2U}, {"devcore", 3U}, {"index", 7U}}) {
      if (read[key] != -1) continue;
      return Invalid(place + "a number for " + key + ", got \"" + Shortened(said[field], 40) +
                     "\"");
    }
    list.push_back(std::move(read));
  }
  return list;
}

Result<HamiMig> ReadHamiMig(const HamiFacts& facts) {
  Register all;
  BERTH_TRY_STATUS(EachOf(facts.registered, [&all](const Json& json, const std::string& path) {
    return ReadGpu(json, path, all);
  }));
  // Of one that lists nothing the GPUs are HAMi's all the same.
  const bool is_empty = all.gpus.empty() && all.others.empty();
  HamiMig read{std::nullopt, all.devices, all.has_others || is_empty,
               all.shares_others || is_empty};
  for (auto& [index, other] : all.others) {
    GpuSpec& gpu = other.first;
    gpu.healthy = gpu.healthy && !Lists(facts.cordoned, gpu.uuid);
    read.others.push_back(std::move(gpu));
    read.models.push_back(GfdNameOf(std::move(other.second)));
  }
  if (!all.gpus.empty()) read.announced = Announce(all, facts);
  return read;
}

Result<std::vector<MigGrant>> ParseHamiMigAllocations(std::string_view text) {
  std::vector<MigGrant> grants;
  BERTH_TRY(const Json list, ParseHamiList(text));
  BERTH_TRY_STATUS(EachOf(list, [&grants](const Json& json, const std::string& path) {
    return ReadAllocation(json, path, grants.emplace_back());
  }));
  if (grants.size() > kMaxMigDevicesPerPod) {
    return Invalid("want at most " + std::to_string(kMaxMigDevicesPerPod) + " devices, got " +
                   std::to_string(grants.size()));
  }
  std::ranges::sort(grants);
  return grants;
}

}  // namespace berth::dialects
