// SPDX-License-Identifier: Apache-2.0
#include "node/publish/wanted.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "node/kubelet/plugin_names.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/node/gpu_health.h"
#include "server/wire/node/kubelet_annotation.h"
#include "server/wire/node/mig_json.h"
#include "server/wire/node/topology_json.h"
#include "topology/mig/mig_profile.h"

namespace berth::node {
namespace {

using wire::Json;

constexpr std::array<std::string_view, 3> kFactKeys = {
    wire::kGpuUuidsKey, wire::kTopologyAnnotation, wire::kMigAnnotation};

// nullopt for "": the annotation is not there.
std::optional<std::string> Unless(std::string text) {
  if (text.empty()) return std::nullopt;
  return text;
}

std::string UnhealthyDevices(const WhatIsSaid& says) {
  std::set<std::string> all;
  for (const auto& [resource, ids] : says.unhealthy) all.insert(ids.begin(), ids.end());
  while (all.size() > kMostUnhealthy) all.erase(std::prev(all.end()));
  return Join(all, ",");
}

// Where the agent carries Berth's choice out, Berth picks the device; otherwise the plugin does.
std::string WithAllocator(const std::string& mig, const std::set<std::string>& carries) {
  const bool carried = std::ranges::any_of(
      carries, [](const std::string& name) { return name.starts_with(kMigResourcePrefix); });
  Json json = Json::parse(mig, nullptr, false);
  if (!carried || !json.is_object()) return mig;
  json["allocator"] = "berth";
  return wire::JsonText(json);
}

}  // namespace

bool WhatIsSaid::SetUnhealthy(const std::string& resource, std::set<std::string> ids) {
  std::set<std::string> devices;
  for (const std::string& id : ids) {
    const std::string device(WithoutReplica(id));
    if (device.empty() || device.size() > kMostIdBytes) continue;
    if (devices.size() == kMostUnhealthy) break;
    devices.insert(device);
  }
  std::set<std::string>& said = unhealthy[resource];
  if (said == devices) return false;
  said = std::move(devices);
  return true;
}

WantedAnnotations Wanted(const WhatIsSaid& says, bool mig_single) {
  WantedAnnotations wanted;
  std::vector<std::string> carries(says.carries.begin(), says.carries.end());
  carries.resize(std::min(carries.size(), kMostCarried));
  wanted[std::string(wire::kCarriesOutKey)] = Unless(Join(carries, ","));
  wanted[std::string(wire::kGpuHealthKey)] = Unless(UnhealthyDevices(says));
  if (!says.kubelet.empty()) wanted[std::string(wire::kKubeletKey)] = says.kubelet;
  // A driver that is away for a moment has no GPUs: what was published stays.
  if (says.facts->gpus.empty() && says.facts->mig.empty()) return wanted;
  for (const std::string_view key : kFactKeys) {
    const auto found = says.facts->annotations.find(std::string(key));
    std::string text = found == says.facts->annotations.end() ? "" : found->second;
    if (key == wire::kMigAnnotation && !text.empty()) {
      text = mig_single ? "" : WithAllocator(text, says.carries);
    }
    // Where something could not be found out, what was published before stays too.
    if (text.empty() && !says.facts->problems.empty()) continue;
    wanted[std::string(key)] = Unless(std::move(text));
  }
  return wanted;
}

}  // namespace berth::node
