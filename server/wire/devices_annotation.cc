// SPDX-License-Identifier: Apache-2.0
#include "server/wire/devices_annotation.h"

#include <algorithm>
#include <map>
#include <utility>

#include "server/wire/fields.h"
#include "server/wire/json_text.h"

namespace berth::wire {
namespace {

using ByContainer = std::map<std::string, std::vector<DeviceGrant>>;

// As in GrantsByContainer: consecutive containers add up, and an init container that ends first
// only counts as far as it needs more.
struct ShareSum {
  int milli = 0;
  std::int64_t memory_mib = 0;
};

void AppendGpu(std::string& out, const DeviceGrant& grant, const NodeSpec& node) {
  out += "{\"index\":";
  AppendNumber(out, grant.gpu);
  const std::string& uuid = node.gpus[static_cast<std::size_t>(grant.gpu)].uuid;
  if (!uuid.empty()) {
    out += ",\"uuid\":";
    AppendString(out, uuid);
  }
  out += ",\"milli\":";
  AppendNumber(out, grant.milli);
  out += ",\"memory_mib\":";
  AppendNumber(out, grant.memory_mib);
  out += "},";
}

Status ReadGpu(const Json& json, const std::string& path, std::vector<DeviceGrant>& grants) {
  constexpr std::int64_t kMostMemoryMib = std::int64_t{1} << 40;
  Fields fields(json, path);
  DeviceGrant grant{-1, 0, 0};
  std::string uuid;
  fields.Int("index", 0, kMaxGpusPerNode - 1, grant.gpu);
  fields.Text("uuid", uuid);
  fields.Int("milli", 0, kMilliPerGpu, grant.milli);
  fields.Integer("memory_mib", 0, kMostMemoryMib, grant.memory_mib);
  BERTH_TRY_STATUS(fields.Finish());
  if (grant.gpu < 0) return Invalid(path + ".index: want the index of a GPU, got none");
  if (std::ranges::find(grants, grant.gpu, &DeviceGrant::gpu) != grants.end()) {
    return Invalid(path + ".index: GPU " + std::to_string(grant.gpu) + " is there twice");
  }
  grants.push_back(grant);
  return {};
}

Result<ByContainer> ReadContainers(std::string_view text, std::string_view node) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Invalid("want JSON, got something else");
  if (!json.is_object()) return Invalid(std::string("want an object, got ") + json.type_name());
  ByContainer containers;
  int version = 0;
  std::string named;
  Fields fields(json, "");
  fields.Int("version", 1, 1, version);
  fields.Text("node", named);
  fields.Object("containers", [&](const Json& list, const std::string& path) -> Status {
    for (const auto& [name, devices] : list.items()) {
      Fields of_container(devices, path + "." + name);
      std::vector<DeviceGrant>& grants = containers[name];
      of_container.List("gpus", [&grants](const Json& gpu, const std::string& place) {
        return ReadGpu(gpu, place, grants);
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

std::vector<DeviceGrant> MergeWhole(const ByContainer& containers) {
  std::map<int, DeviceGrant> by_gpu;
  for (const auto& [name, grants] : containers) {
    for (const DeviceGrant& grant : grants) by_gpu.emplace(grant.gpu, grant);
  }
  std::vector<DeviceGrant> merged;
  for (const auto& [gpu, grant] : by_gpu) merged.push_back(grant);
  return merged;
}

std::vector<DeviceGrant> MergeShare(const PodRequest& pod, const GpuShare& share,
                                    const ByContainer& containers) {
  DeviceGrant merged{-1, 0, 0};
  ShareSum running;
  for (const ContainerAsk& container : pod.containers) {
    const auto entry = containers.find(container.name);
    if (entry == containers.end() || entry->second.empty()) continue;
    const DeviceGrant& part = entry->second.front();
    merged.gpu = part.gpu;
    merged.milli = std::max(merged.milli, running.milli + part.milli);
    merged.memory_mib = std::max(merged.memory_mib, running.memory_mib + part.memory_mib);
    if (container.ends_first) continue;
    running.milli += part.milli;
    running.memory_mib += part.memory_mib;
  }
  if (merged.gpu < 0) return {};
  if (share.milli > 0) merged.milli = share.milli;
  if (share.memory_mib > 0) merged.memory_mib = share.memory_mib;
  return {merged};
}

std::string TextOf(const std::vector<DeviceGrant>& grants) {
  std::string text;
  for (const DeviceGrant& grant : grants) {
    text += (text.empty() ? "GPU " : ", GPU ") + std::to_string(grant.gpu) + ": " +
            std::to_string(grant.milli) + " milli, " + std::to_string(grant.memory_mib) + " MiB";
  }
  return text.empty() ? "no GPU" : text;
}

}  // namespace

std::string EncodeDevices(const PodRequest& pod, const Placement& placement, const NodeSpec& node) {
  std::string out = "{\"version\":1,\"node\":";
  AppendString(out, placement.node);
  out += ",\"containers\":{";
  for (const auto& [name, grants] : GrantsByContainer(pod, placement)) {
    AppendString(out, name);
    out += ":{\"gpus\":[";
    for (const DeviceGrant& grant : grants) AppendGpu(out, grant, node);
    out.back() = ']';
    out += "},";
  }
  if (out.back() == ',') out.pop_back();
  return out += "}}";
}

Result<std::vector<DeviceGrant>> DecodeDevices(std::string_view text, const PodRequest& pod,
                                               std::string_view node) {
  BERTH_TRY(ByContainer containers, ReadContainers(text, node));
  const auto* share = std::get_if<GpuShare>(&pod.shape.gpus);
  Placement placement;
  placement.grants =
      share != nullptr ? MergeShare(pod, *share, containers) : MergeWhole(containers);
  // Only what comes apart the same way again has been put together right.
  ByContainer expected;
  for (auto& [name, grants] : GrantsByContainer(pod, placement)) expected[name] = std::move(grants);
  std::erase_if(containers, [](const auto& entry) { return entry.second.empty(); });
  for (const auto* side : {&expected, &containers}) {
    for (const auto& [name, grants] : *side) {
      const std::vector<DeviceGrant> want = expected[name], got = containers[name];
      if (want == got) continue;
      return Invalid("containers." + name + ": want " + TextOf(want) + ", got " + TextOf(got));
    }
  }
  if (static_cast<int>(placement.grants.size()) != pod.shape.gpu_count()) {
    return Invalid("containers: want " + std::to_string(pod.shape.gpu_count()) + " GPUs, got " +
                   std::to_string(placement.grants.size()));
  }
  return std::move(placement.grants);
}

}  // namespace berth::wire
