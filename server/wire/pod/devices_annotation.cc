// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/devices_annotation.h"

#include <simdjson.h>
#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "base/padded_text.h"
#include "base/text.h"
#include "cluster/node/gpu_division.h"
#include "cluster/node/mig_use.h"
#include "server/wire/json/object_reader.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/pod/given_json.h"

namespace berth::wire {
namespace {

using MigOfContainer = std::map<std::string, std::vector<MigGrant>>;
using PlacesOfContainer = std::map<std::string, std::vector<int>>;

struct Containers {
  GpusByContainer gpus = {};
  MigOfContainer mig = {};
  PlacesOfContainer places = {};
};

// As in GrantsByContainer: consecutive containers add up, and an init container that ends first
// only counts where it needs more.
struct ShareSum {
  int milli = 0;
  std::int64_t memory_mib = 0;
  ContainerMask containers = 0;
  std::string uuid = {};
};

Json GpuJson(const DeviceGrant& grant, const NodeSpec& node) {
  Json json = {{"index", grant.gpu}};
  const std::string& uuid = node.UuidOf(grant.gpu);
  if (!uuid.empty()) json["uuid"] = uuid;
  json["milli"] = grant.milli;
  json["memory_mib"] = grant.memory_mib;
  return json;
}

Json PlaceJson(int gpu, const NodeSpec& node) {
  return {{"index", gpu}, {"uuid", node.places.uuids[static_cast<std::size_t>(gpu)]}};
}

Json MigDeviceJson(const MigGrant& grant, const NodeSpec& node) {
  const auto gpu = node.mig.known() ? node.mig->PositionOf(grant.gpu) : std::nullopt;
  return MigGrantJson(grant, gpu ? node.mig->gpus[*gpu].uuid : "");
}

Status ReadGpu(const Json& json, const std::string& path, std::vector<DeviceGrant>& grants) {
  Fields fields(json, path);
  DeviceGrant grant{-1, 0, 0};
  fields.Int("index", 0, kMaxGpusPerNode - 1, grant.gpu);
  fields.Text("uuid", grant.uuid);
  fields.Int("milli", 0, kMilliPerGpu, grant.milli);
  fields.Integer("memory_mib", 0, kMostGrantedMib, grant.memory_mib);
  BERTH_TRY_STATUS(fields.Finish());
  if (grant.gpu < 0) return Invalid(path + ".index: want the index of a GPU, got none");
  if (std::ranges::find(grants, grant.gpu, &DeviceGrant::gpu) != grants.end()) {
    return Invalid(path + ".index: GPU " + std::to_string(grant.gpu) + " is there twice");
  }
  grants.push_back(grant);
  return {};
}

Status ReadPlace(const Json& json, const std::string& path, std::vector<int>& places) {
  Fields fields(json, path);
  int gpu = -1;
  std::string uuid;
  fields.Int("index", 0, kMaxGpusPerNode - 1, gpu);
  fields.Text("uuid", uuid);
  BERTH_TRY_STATUS(fields.Finish());
  if (gpu < 0) return Invalid(path + ".index: want the index of a GPU, got none");
  places.push_back(gpu);
  return {};
}

Result<Containers> ReadContainers(std::string_view text, std::string_view node) {
  if (auto plain = ReadPlainDevices(text, node)) return Containers{.gpus = *std::move(plain)};
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Invalid("want JSON, got something else");
  if (!json.is_object()) return Invalid(std::string("want an object, got ") + json.type_name());
  Containers containers;
  int version = 0;
  std::string named;
  Fields fields(json, "");
  fields.Int("version", 1, 1, version);
  fields.Text("node", named);
  fields.Object("containers", [&](const Json& list, const std::string& path) -> Status {
    for (const auto& [name, devices] : list.items()) {
      Fields of_container(devices, path + "." + name);
      std::vector<DeviceGrant>& gpus = containers.gpus[name];
      std::vector<MigGrant>& mig = containers.mig[name];
      of_container.List("gpus", [&gpus](const Json& gpu, const std::string& place) {
        return ReadGpu(gpu, place, gpus);
      });
      of_container.List("mig", [&mig](const Json& device, const std::string& place) {
        return ReadMigGrant(device, place, mig);
      });
      std::vector<int>& places = containers.places[name];
      of_container.List("places", [&places](const Json& gpu, const std::string& place) {
        return ReadPlace(gpu, place, places);
      });
      BERTH_TRY_STATUS(of_container.Finish());
    }
    return {};
  });
  BERTH_TRY_STATUS(fields.Finish());
  if (version == 0) return Invalid("version: want 1, got none");
  if (named != node) {
    return Invalid("node: want \"" + std::string(node) + "\", got \"" + named + "\"");
  }
  return containers;
}

std::vector<DeviceGrant> MergeWhole(const GpusByContainer& containers) {
  std::map<int, DeviceGrant> by_gpu;
  for (const auto& [name, grants] : containers) {
    for (const DeviceGrant& grant : grants) by_gpu.emplace(grant.gpu, grant);
  }
  std::vector<DeviceGrant> merged;
  for (const auto& [gpu, grant] : by_gpu) merged.push_back(grant);
  return merged;
}

std::vector<DeviceGrant> MergeShare(const PodRequest& pod, const GpusByContainer& containers) {
  std::map<int, ShareSum> most, running;  // by GPU
  ContainerMask all = 0;
  for (const ContainerAsk& container : pod.containers) {
    const ContainerMask bit = pod.shape.may_divide() ? all + 1 : 0;
    all |= bit;
    const auto entry = containers.find(container.name);
    if (entry == containers.end()) continue;
    for (const DeviceGrant& part : entry->second) {
      ShareSum& sum = most[part.gpu];
      sum.uuid = part.uuid;
      ShareSum& before = running[part.gpu];
      sum.containers |= bit;
      sum.milli = std::max(sum.milli, before.milli + part.milli);
      sum.memory_mib = std::max(sum.memory_mib, before.memory_mib + part.memory_mib);
      if (container.ends_first) continue;
      before.milli += part.milli;
      before.memory_mib += part.memory_mib;
    }
  }
  std::vector<DeviceGrant> merged;
  for (const auto& [gpu, sum] : most) {
    DeviceGrant grant{.gpu = gpu, .uuid = sum.uuid};
    grant.containers = sum.containers == all ? 0 : sum.containers;
    const GpuShare share = AskedOf(grant, pod.shape);
    grant.milli = share.milli > 0 ? share.milli : sum.milli;
    grant.memory_mib = share.memory_mib > 0 ? share.memory_mib : sum.memory_mib;
    merged.push_back(std::move(grant));
  }
  return merged;
}

// Whether each container has a part of as many GPUs as it asks for.
bool DividesShares(const PodRequest& pod, const GpusByContainer& found) {
  return std::ranges::all_of(pod.containers, [&found](const ContainerAsk& container) {
    const auto own = found.find(container.name);
    return own != found.end() &&
           std::ssize(own->second) == std::get<GpuShare>(container.gpus).count;
  });
}

// A device that an init container used goes on to a container after it.
std::vector<MigGrant> MergeMig(const PodRequest& pod, const MigOfContainer& containers) {
  std::vector<MigGrant> merged, left;  // left: of merged, what may go on
  for (const ContainerAsk& container : pod.containers) {
    const auto entry = containers.find(container.name);
    if (entry == containers.end()) continue;
    std::vector<MigGrant> passed_on = left;
    for (const MigGrant& grant : entry->second) {
      if (const auto used = std::ranges::find(passed_on, grant); used != passed_on.end()) {
        passed_on.erase(used);
        if (!container.ends_first) left.erase(std::ranges::find(left, grant));
        continue;
      }
      merged.push_back(grant);
      if (container.ends_first) left.push_back(grant);
    }
  }
  std::ranges::sort(merged);
  return merged;
}

// The inverse of PlacesByContainer.
std::vector<int> MergePlaces(const PodRequest& pod, const PlacesOfContainer& containers) {
  std::vector<int> merged;
  std::size_t next = 0;
  for (const ContainerAsk& container : pod.containers) {
    const auto entry = containers.find(container.name);
    if (entry == containers.end()) continue;
    const std::vector<int>& own = entry->second;
    merged.resize(std::max(merged.size(), next + own.size()));
    std::ranges::copy(own, merged.begin() + static_cast<std::ptrdiff_t>(next));
    if (!container.ends_first) next += own.size();
  }
  return merged;
}

std::string WordsFor(const std::vector<int>& places) {
  return places.empty() ? "no replica" : Join(places, ", ", [](int gpu) {
    return "a replica of GPU " + std::to_string(gpu);
  });
}

std::string WordsFor(const std::vector<MigGrant>& grants) {
  if (grants.empty()) return "no MIG device";
  return Join(grants, ", ", [](const MigGrant& grant) { return NameOf(grant); });
}

std::string WordsFor(const std::vector<DeviceGrant>& grants) {
  std::string text;
  for (const DeviceGrant& grant : grants) {
    text += (text.empty() ? "GPU " : ", GPU ") + std::to_string(grant.gpu) + ": " +
            std::to_string(grant.milli) + " milli, " + std::to_string(grant.memory_mib) + " MiB";
  }
  return text.empty() ? "no GPU" : text;
}

// As the node's kubelet divides them.
std::vector<std::pair<std::string, std::vector<DeviceGrant>>> GrantsOn(const PodRequest& pod,
                                                                       const Placement& placement,
                                                                       const NodeSpec& node) {
  auto grants = GrantsByContainer(pod, placement);
  if (!KubeletLimits(node, pod.shape)) return grants;
  const auto sets = DivideGpus(node, pod.shape, GpusAmong(placement.grants, node.gpus.size()));
  if (!sets || sets->size() != grants.size()) return grants;
  for (std::size_t i = 0; i < sets->size(); ++i) {
    std::vector<DeviceGrant>& own = grants[i].second;
    own = placement.grants;
    std::erase_if(own, [&](const DeviceGrant& grant) {
      return grant.gpu < 0 || ((*sets)[i] & GpuBit(grant.gpu)) == 0;
    });
  }
  return grants;
}

// Whether each container has as many whole GPUs as it asks for, and those of another one only if
// that is an init container which has ended. A Topology Manager may have had them divided otherwise
// than GrantsByContainer does.
bool DividesWhole(const PodRequest& pod, const GpusByContainer& found) {
  std::set<int> held;
  std::size_t gpus = 0, taken = 0;
  for (const auto& [name, grants] : found) gpus += grants.size();
  for (const ContainerAsk& container : pod.containers) {
    const auto* const whole = std::get_if<WholeGpus>(&container.gpus);
    const auto own = found.find(container.name);
    if (whole == nullptr || own == found.end() || std::ssize(own->second) != whole->count) {
      return false;
    }
    taken += own->second.size();
    for (const DeviceGrant& grant : own->second) {
      if (held.contains(grant.gpu)) return false;
    }
    if (container.ends_first) continue;
    for (const DeviceGrant& grant : own->second) held.insert(grant.gpu);
  }
  return taken == gpus;
}

// Error: the first container that has something else than it would have been given.
template <class Given, class Found>
Status CheckSame(const Given& given, Found found) {
  Found expected;
  for (const auto& [name, grants] : given) expected[name] = grants;
  std::erase_if(found, [](const auto& entry) { return entry.second.empty(); });
  for (const auto* side : {&expected, &found}) {
    for (const auto& [name, grants] : Found(*side)) {
      const auto want = expected[name], got = found[name];
      if (want == got) continue;
      return Invalid("containers." + name + ": want " + WordsFor(want) + ", got " + WordsFor(got));
    }
  }
  return {};
}

using simdjson::ondemand::document;
using simdjson::ondemand::parser;

// Each returns whether there is nothing else in it. Of a key that is there twice the last one
// counts where it is a number or a text; of others there may be one.

bool ReadGpu(object fields, std::vector<DeviceGrant>& grants) {
  DeviceGrant grant{-1, 0, 0};
  for (auto field : fields) {
    const std::string_view key = field.unescaped_key();
    value content = field.value();
    if (key == "uuid") {
      grant.uuid = std::string_view(content.get_string());
      continue;
    }
    const std::int64_t number = content.get_int64();
    if (number < 0) return false;
    if (key == "index" && number < kMaxGpusPerNode) {
      grant.gpu = static_cast<int>(number);
    } else if (key == "milli" && number <= kMilliPerGpu) {
      grant.milli = static_cast<int>(number);
    } else if (key == "memory_mib" && number <= kMostGrantedMib) {
      grant.memory_mib = number;
    } else {
      return false;
    }
  }
  if (grant.gpu < 0) return false;
  if (std::ranges::find(grants, grant.gpu, &DeviceGrant::gpu) != grants.end()) return false;
  grants.push_back(grant);
  return true;
}

bool ReadContainer(object fields, std::vector<DeviceGrant>& grants) {
  bool known = false;
  for (auto field : fields) {
    const std::string_view key = field.unescaped_key();
    if (key != "gpus" || known) return false;
    known = true;
    for (auto gpu : field.value().get_array()) {
      if (!ReadGpu(gpu.get_object(), grants)) return false;
    }
  }
  return true;
}

bool ReadContainers(object list, GpusByContainer& containers) {
  for (auto field : list) {
    const std::string_view name = field.unescaped_key();
    const auto [container, is_new] = containers.try_emplace(std::string(name));
    if (!is_new || !ReadContainer(field.value().get_object(), container->second)) return false;
  }
  return true;
}

bool ReadAll(object fields, std::string_view node, GpusByContainer& containers) {
  std::int64_t version = 0;
  std::string_view named;
  bool known = false;
  for (auto field : fields) {
    const std::string_view key = field.unescaped_key();
    value content = field.value();
    if (key == "version") {
      version = content.get_int64();
    } else if (key == "node") {
      named = content.get_string();
    } else if (key != "containers" || known || !ReadContainers(content.get_object(), containers)) {
      return false;
    } else {
      known = true;
    }
  }
  return version == 1 && named == node;
}

}  // namespace

std::string EncodeDevices(const PodRequest& pod, const Placement& placement, const NodeSpec& node) {
  Json containers = Json::object();
  for (const auto& [name, grants] : GrantsOn(pod, placement, node)) {
    for (const DeviceGrant& grant : grants)
      containers[name]["gpus"].push_back(GpuJson(grant, node));
  }
  for (const auto& [name, grants] : MigByContainer(pod, placement)) {
    for (const MigGrant& grant : grants)
      containers[name]["mig"].push_back(MigDeviceJson(grant, node));
  }
  for (const auto& [name, gpus] : PlacesByContainer(pod, placement)) {
    for (const int gpu : gpus) containers[name]["places"].push_back(PlaceJson(gpu, node));
  }
  return JsonText(
      {{"version", 1}, {"node", placement.node}, {"containers", std::move(containers)}});
}

std::string VisibleDevices(const PodRequest& pod, const Placement& placement,
                           const NodeSpec& node) {
  if (!pod.shape.is_share()) return "";
  std::string uuids;
  for (const DeviceGrant& grant : placement.grants) {
    const std::string& uuid = node.UuidOf(grant.gpu);
    if (uuid.empty()) return "";
    uuids += (uuids.empty() ? "" : ",") + uuid;
  }
  return uuids;
}

Result<PodDevices> DecodeDevices(std::string_view text, const PodRequest& pod,
                                 std::string_view node) {
  BERTH_TRY(Containers containers, ReadContainers(text, node));
  if (pod.shape.may_divide() && !DividesShares(pod, containers.gpus)) {
    return Invalid("containers: want as many GPUs for each as it asks for");
  }
  Placement placement;
  placement.grants =
      pod.shape.is_share() ? MergeShare(pod, containers.gpus) : MergeWhole(containers.gpus);
  placement.mig = MergeMig(pod, containers.mig);
  placement.places_on = MergePlaces(pod, containers.places);
  // Only what comes apart the same way again has been put together right.
  if (!DividesWhole(pod, containers.gpus)) {
    BERTH_TRY_STATUS(CheckSame(GrantsByContainer(pod, placement), std::move(containers.gpus)));
  }
  BERTH_TRY_STATUS(CheckSame(MigByContainer(pod, placement), std::move(containers.mig)));
  BERTH_TRY_STATUS(CheckSame(PlacesByContainer(pod, placement), std::move(containers.places)));
  const MigSlices* const mig = pod.shape.mig();
  const int wanted = mig != nullptr ? mig->count() : pod.shape.gpu_count();
  const auto got =
      static_cast<int>(placement.grants.size() + placement.mig.size() + placement.places_on.size());
  if (got != wanted && !pod.shape.may_divide()) {
    return Invalid("containers: want " + std::to_string(wanted) +
                   (mig != nullptr ? " MIG devices, got " : " GPUs, got ") + std::to_string(got));
  }
  return DevicesOf(placement);
}

std::optional<GpusByContainer> ReadPlainDevices(std::string_view text, std::string_view node) {
  const PaddedText padded(text);
  GpusByContainer containers;
  try {
    parser json;
    document root = json.iterate(ViewOf(padded));
    const bool is_plain = ReadAll(root.get_object(), node, containers);
    const bool has_ended = root.current_location().error() == simdjson::OUT_OF_BOUNDS;
    if (is_plain && has_ended) return containers;
  } catch (const simdjson::simdjson_error&) {
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace berth::wire
