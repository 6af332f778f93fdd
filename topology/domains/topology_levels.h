// SPDX-License-Identifier: Apache-2.0
//
// TopologyLevels: the levels in which the nodes of a cluster are arranged, from wide to narrow -
// region, zone, switch, NVLink domain - and the node labels that identify a node's domain at each
// level.
//
// Label keys differ between clouds and tools and change over the years, so they are settings with
// presets and not constants. A level may have several keys; a node carries one of them; then the
// same level name works in every cluster.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth {

struct TopologyLevel {
  std::string name;                 // what pods call it: "leaf"
  std::vector<std::string> labels;  // node label keys; the first that a node has is its domain
  friend bool operator==(const TopologyLevel&, const TopologyLevel&) = default;
};

// From wide to narrow.
using TopologyLevels = std::vector<TopologyLevel>;

constexpr std::size_t kMaxTopologyLevels = 16;

struct TopologyPreset {
  std::string name;
  TopologyLevels levels;
};

// The labels of clouds and tools, by name; where each comes from is in topology_levels.cc.
std::span<const TopologyPreset> TopologyPresets();
// nullptr where there is none of that name.
const TopologyPreset* FindTopologyPreset(std::string_view name);

// The presets merged into one list that suits every cluster: region, zone, core, spine, leaf,
// nvlink-domain, nvlink-clique. A level whose labels no node has stays empty and costs nothing.
const TopologyLevels& DefaultTopologyLevels();

// The level of that name, or the one identified by that label key.
std::optional<std::size_t> FindTopologyLevel(const TopologyLevels& levels, std::string_view text);

// Error: kInvalidArgument "[2].labels: ..." for a level without a name or label, a name or label
// that is there twice, a name that is the label of another level; or for more levels than
// kMaxTopologyLevels.
Status Validate(const TopologyLevels& levels);

}  // namespace berth
