// SPDX-License-Identifier: Apache-2.0
#include "topology/domains/topology_levels.h"

#include <algorithm>
#include <set>

namespace berth {
namespace {

constexpr char kRegion[] = "topology.kubernetes.io/region";
constexpr char kZone[] = "topology.kubernetes.io/zone";
// GPU Feature Discovery: <ClusterUUID>.<CliqueId>, only on multi-node NVLink.
constexpr char kClique[] = "nvidia.com/gpu.clique";

std::vector<TopologyPreset> MakePresets() {
  return {
      {"coreweave",
       {{"fabric", {"ib.coreweave.cloud/fabric"}},
        {"superpod", {"ib.coreweave.cloud/superpod"}},
        {"leafgroup", {"ib.coreweave.cloud/leafgroup"}},
        {"rack", {"node.coreweave.cloud/rack"}}}},
      // Layer 1 is the spine. An UltraServer is one NVLink domain.
      {"eks",
       {{"layer-1", {"topology.k8s.aws/network-node-layer-1"}},
        {"layer-2", {"topology.k8s.aws/network-node-layer-2"}},
        {"layer-3", {"topology.k8s.aws/network-node-layer-3"}},
        {"ultraserver",
         {"topology.k8s.aws/ultraserver-id", "topology.k8s.aws/capacity-block-id"}}}},
      {"gke",
       {{"block", {"cloud.google.com/gce-topology-block"}},
        {"subblock", {"cloud.google.com/gce-topology-subblock"}},
        {"host", {"cloud.google.com/gce-topology-host"}}}},
      {"nvlink-clique", {{"nvlink-clique", {kClique}}}},
      {"oci",
       {{"network-block", {"oci.oraclecloud.com/host.network_block_id"}},
        {"rack", {"oci.oraclecloud.com/host.rack_id"}}}},
      // NVIDIA topograph names the switch tiers from the node outward. Its keys have changed twice:
      // 2026 on (docs/reference/node-labels.md of NVIDIA/topograph), the release before it, and the
      // first ones (docs/k8s.md), in which block and datacenter were also called leaf and core.
      {"topograph-1",
       {{"core", {"network.topology.nvidia.com/core", "network.topology.nvidia.com/datacenter"}},
        {"spine", {"network.topology.nvidia.com/spine"}},
        {"leaf", {"network.topology.nvidia.com/leaf", "network.topology.nvidia.com/block"}},
        {"nvlink-domain", {"network.topology.nvidia.com/accelerator"}}}},
      {"topograph-2",
       {{"core", {"network.topology.nvidia.com/tier-2"}},
        {"spine", {"network.topology.nvidia.com/tier-1"}},
        {"leaf", {"network.topology.nvidia.com/tier-0"}},
        {"nvlink-domain", {"xclr.topology.nvidia.com/domain"}}}},
      {"topograph-3",
       {{"core", {"fabric.topograph.run/tier-2"}},
        {"spine", {"fabric.topograph.run/tier-1"}},
        {"leaf", {"fabric.topograph.run/tier-0"}},
        {"nvlink-domain", {"accelerator.topograph.run/domain"}},
        {"nvlink-sub-domain", {"accelerator.topograph.run/sub-domain"}}}},
      {"zone-region", {{"region", {kRegion}}, {"zone", {kZone}}}},
  };
}

// Tiers are counted from the node: the narrowest one that shares a switch is "leaf", whether a
// cloud calls it a rack or a sub-block. Topograph's keys take precedence, newest first: a cluster
// that runs it beside a cloud's own labels runs it for its labels.
TopologyLevels MakeDefault() {
  return {
      {"region", {kRegion}},
      {"zone", {kZone}},
      {"core",
       {"fabric.topograph.run/tier-2", "network.topology.nvidia.com/tier-2",
        "network.topology.nvidia.com/core", "network.topology.nvidia.com/datacenter",
        "topology.k8s.aws/network-node-layer-1", "ib.coreweave.cloud/fabric"}},
      {"spine",
       {"fabric.topograph.run/tier-1", "network.topology.nvidia.com/tier-1",
        "network.topology.nvidia.com/spine", "topology.k8s.aws/network-node-layer-2",
        "cloud.google.com/gce-topology-block", "oci.oraclecloud.com/host.network_block_id",
        "ib.coreweave.cloud/superpod"}},
      {"leaf",
       {"fabric.topograph.run/tier-0", "network.topology.nvidia.com/tier-0",
        "network.topology.nvidia.com/leaf", "network.topology.nvidia.com/block",
        "topology.k8s.aws/network-node-layer-3", "cloud.google.com/gce-topology-subblock",
        "oci.oraclecloud.com/host.rack_id", "ib.coreweave.cloud/leafgroup"}},
      {"nvlink-domain",
       {"accelerator.topograph.run/domain", "xclr.topology.nvidia.com/domain",
        "network.topology.nvidia.com/accelerator", "topology.k8s.aws/ultraserver-id",
        "node.coreweave.cloud/rack"}},
      {"nvlink-clique", {kClique, "accelerator.topograph.run/sub-domain"}},
  };
}

}  // namespace

std::span<const TopologyPreset> TopologyPresets() {
  static const std::vector<TopologyPreset> presets = MakePresets();
  return presets;
}

const TopologyPreset* FindTopologyPreset(std::string_view name) {
  const auto presets = TopologyPresets();
  const auto found = std::ranges::find(presets, name, &TopologyPreset::name);
  return found == presets.end() ? nullptr : &*found;
}

const TopologyLevels& DefaultTopologyLevels() {
  static const TopologyLevels levels = MakeDefault();
  return levels;
}

std::optional<std::size_t> FindTopologyLevel(const TopologyLevels& levels, std::string_view text) {
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const std::vector<std::string>& labels = levels[i].labels;
    if (levels[i].name == text || std::ranges::find(labels, text) != labels.end()) return i;
  }
  return std::nullopt;
}

Status Validate(const TopologyLevels& levels) {
  if (levels.size() > kMaxTopologyLevels) {
    return Invalid("want at most " + std::to_string(kMaxTopologyLevels) + " levels, got " +
                   std::to_string(levels.size()));
  }
  std::set<std::string_view> names, labels;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const TopologyLevel& level = levels[i];
    const std::string place = "[" + std::to_string(i) + "]";
    if (level.name.empty()) return Invalid(place + ".name: want a name, got \"\"");
    if (!names.insert(level.name).second) {
      return Invalid(place + ".name: \"" + level.name + "\" is there twice");
    }
    if (level.labels.empty()) return Invalid(place + ".labels: want a node label key, got none");
    for (const std::string& label : level.labels) {
      if (label.empty()) return Invalid(place + ".labels: want node label keys, got \"\"");
      if (!labels.insert(label).second) {
        return Invalid(place + ".labels: \"" + label + "\" is there twice");
      }
    }
  }
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const std::vector<std::string>& own = levels[i].labels;
    if (!labels.contains(levels[i].name) || std::ranges::find(own, levels[i].name) != own.end()) {
      continue;
    }
    return Invalid("[" + std::to_string(i) + "].name: \"" + levels[i].name +
                   "\" is a label of another level");
  }
  return {};
}

}  // namespace berth
