// SPDX-License-Identifier: Apache-2.0
#include "topology/domains/domain_tree.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "base/check.h"

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

// So many units (packs of pods, or pods) for a vertex.
struct Part {
  TopologyDomain vertex;
  std::int64_t units;
};

class Chooser {
 public:
  Chooser(const DomainTree& tree, std::span<const int> room, const DomainWish& wish)
      : tree_(tree),
        wish_(wish),
        slice_level_(wish.slice_level.value_or(tree.levels())),
        pods_(tree.SumUp(room)),
        packs_(tree.size(), 0) {
    const auto [first, last] = tree.Level(slice_level_);
    for (TopologyDomain vertex = first; vertex < last; ++vertex) {
      // A vertex without a value at the level of the slices holds no slice.
      if (tree.named(vertex)) packs_[vertex] = pods_[vertex] / wish.slice_size;
    }
    for (TopologyDomain vertex = last - 1; vertex > 0; --vertex) {
      packs_[tree.parent(vertex)] += packs_[vertex];
    }
  }

  std::optional<DomainChoice> Choose() const {
    const std::int64_t packs = wish_.pods / wish_.slice_size;
    if (packs_[DomainTree::kCluster] < packs) return std::nullopt;
    if (wish_.mode == DomainMode::kUnconstrained) {
      const auto [first, last] = tree_.Level(slice_level_);
      std::vector<TopologyDomain> all;
      for (TopologyDomain vertex = first; vertex < last; ++vertex) all.push_back(vertex);
      return Descend(DomainTree::kCluster, Take(std::move(all), packs_, packs), slice_level_);
    }
    std::size_t level = wish_.level + 1;
    while (level-- > 0) {
      if (const auto domain = Smallest(level, packs)) {
        return Descend(*domain, {{*domain, packs}}, level);
      }
      if (wish_.mode == DomainMode::kRequired) return std::nullopt;
    }
    return Descend(DomainTree::kCluster, Within({{DomainTree::kCluster, packs}}, 0), 0);
  }

 private:
  // The named domain of the level that holds so many with the least room.
  [[nodiscard]] std::optional<TopologyDomain> Smallest(std::size_t level,
                                                       std::int64_t packs) const {
    std::optional<TopologyDomain> best;
    const auto [first, last] = tree_.Level(level);
    for (TopologyDomain domain = first; domain < last; ++domain) {
      if (!tree_.named(domain) || packs_[domain] < packs) continue;
      if (!best || Room(domain) < Room(*best)) best = domain;
    }
    return best;
  }
  [[nodiscard]] std::tuple<std::int64_t, std::int64_t> Room(TopologyDomain vertex) const {
    return {packs_[vertex], pods_[vertex]};
  }

  // From parts of a level down to the nodes.
  [[nodiscard]] DomainChoice Descend(TopologyDomain domain, std::vector<Part> parts,
                                     std::size_t level) const {
    for (; level < slice_level_; ++level) parts = Within(parts, level + 1);
    for (Part& part : parts) part.units *= wish_.slice_size;
    for (; level < tree_.levels(); ++level) parts = WithinEach(parts, level + 1);
    DomainChoice choice{domain, std::vector<std::int64_t>(tree_.nodes(), 0)};
    for (const Part& part : parts) choice.pods[part.vertex - tree_.NodeVertex(0)] = part.units;
    return choice;
  }

  // Above the slices: packs go to the best-fitting domains below any of the parts.
  [[nodiscard]] std::vector<Part> Within(const std::vector<Part>& parts, std::size_t level) const {
    std::vector<char> chosen(tree_.size(), 0);
    std::int64_t units = 0;
    for (const Part& part : parts) {
      chosen[part.vertex] = 1;
      units += part.units;
    }
    std::vector<TopologyDomain> below;
    const auto [first, last] = tree_.Level(level);
    for (TopologyDomain vertex = first; vertex < last; ++vertex) {
      if (chosen[tree_.parent(vertex)] != 0) below.push_back(vertex);
    }
    return Take(std::move(below), packs_, units);
  }

  // Below: every part keeps its pods, so that no pack is split.
  [[nodiscard]] std::vector<Part> WithinEach(const std::vector<Part>& parts,
                                             std::size_t level) const {
    std::vector<std::vector<TopologyDomain>> below(parts.size());
    std::vector<std::size_t> part_of(tree_.size(), parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) part_of[parts[i].vertex] = i;
    const auto [first, last] = tree_.Level(level);
    for (TopologyDomain vertex = first; vertex < last; ++vertex) {
      const std::size_t part = part_of[tree_.parent(vertex)];
      if (part < parts.size()) below[part].push_back(vertex);
    }
    std::vector<Part> result;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::vector<Part> taken = Take(std::move(below[i]), pods_, parts[i].units);
      result.insert(result.end(), taken.begin(), taken.end());
    }
    return result;
  }

  // Divides units among vertices of one level by the rule of the mode. Requires: they have room.
  [[nodiscard]] std::vector<Part> Take(std::vector<TopologyDomain> vertices,
                                       const std::vector<std::int64_t>& room,
                                       std::int64_t units) const {
    const bool largest_first = wish_.mode != DomainMode::kUnconstrained;
    // Nodes without a value come last: they share a vertex but no domain.
    const auto key = [&](TopologyDomain vertex) {
      return std::tuple(!tree_.named(vertex), largest_first ? -room[vertex] : room[vertex],
                        pods_[vertex]);
    };
    std::ranges::stable_sort(vertices, {}, key);
    std::vector<Part> parts;
    for (std::size_t i = 0; units > 0; ++i) {
      BERTH_CHECK(i < vertices.size());
      TopologyDomain vertex = vertices[i];
      if (room[vertex] == 0) continue;
      if (largest_first && room[vertex] >= units) {
        vertex = TightestOf(std::span(vertices).subspan(i), room, units);
      }
      parts.push_back({vertex, std::min(room[vertex], units)});
      units -= parts.back().units;
    }
    return parts;
  }

  // Of those that hold all the units. Requires: the first does.
  [[nodiscard]] TopologyDomain TightestOf(std::span<const TopologyDomain> vertices,
                                          const std::vector<std::int64_t>& room,
                                          std::int64_t units) const {
    const auto key = [&](TopologyDomain vertex) {
      return std::tuple(!tree_.named(vertex), room[vertex], pods_[vertex]);
    };
    TopologyDomain best = vertices.front();
    for (const TopologyDomain vertex : vertices) {
      if (room[vertex] >= units && key(vertex) < key(best)) best = vertex;
    }
    return best;
  }

  const DomainTree& tree_;
  const DomainWish& wish_;
  const std::size_t slice_level_;
  const std::vector<std::int64_t> pods_;  // per vertex: that fit
  std::vector<std::int64_t> packs_;       // the same, down to the level of the slices
};

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

DomainTree::DomainTree(std::size_t nodes, std::size_t levels,
                       std::span<const std::string_view> values)
    : nodes_(nodes), levels_(levels), parents_{kCluster}, named_{1}, paths_(nodes * levels) {
  BERTH_CHECK(values.size() == nodes * levels);
  const auto row = [&](std::size_t node) { return values.subspan(node * levels, levels); };
  std::vector<std::size_t> sorted(nodes);
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::ranges::sort(sorted, [&](std::size_t a, std::size_t b) {
    const auto order = std::lexicographical_compare_three_way(row(a).begin(), row(a).end(),
                                                              row(b).begin(), row(b).end());
    return order != 0 ? order < 0 : a < b;
  });
  for (std::size_t level = 0; level < levels; ++level) {
    first_.push_back(static_cast<TopologyDomain>(parents_.size()));
    for (std::size_t i = 0; i < nodes; ++i) {
      const std::size_t node = sorted[i];
      const TopologyDomain parent = level == 0 ? kCluster : DomainOf(node, level - 1);
      // The nodes of one domain follow each other.
      const bool begins =
          i == 0 || parents_.back() != parent || row(sorted[i - 1])[level] != row(node)[level];
      if (begins) {
        parents_.push_back(parent);
        named_.push_back(row(node)[level].empty() ? 0 : 1);
      }
      paths_[node * levels + level] = static_cast<TopologyDomain>(parents_.size() - 1);
    }
  }
  first_.push_back(static_cast<TopologyDomain>(parents_.size()));
  for (std::size_t node = 0; node < nodes; ++node) {
    parents_.push_back(levels == 0 ? kCluster : DomainOf(node, levels - 1));
    named_.push_back(1);
  }
  first_.push_back(static_cast<TopologyDomain>(parents_.size()));
}

std::size_t DomainTree::CountNamed(std::size_t level) const {
  const auto [first, last] = Level(level);
  return static_cast<std::size_t>(
      std::count(named_.begin() + first, named_.begin() + last, char{1}));
}

template <class Sum, class Amount>
std::vector<Sum> DomainTree::SumsOf(std::span<const Amount> amounts) const {
  BERTH_CHECK(amounts.size() == nodes_);
  std::vector<Sum> sums(size(), 0);
  std::ranges::copy(amounts, sums.begin() + NodeVertex(0));
  for (std::size_t i = size() - 1; i > 0; --i) sums[parents_[i]] += sums[i];
  return sums;
}

std::vector<std::int64_t> DomainTree::SumUp(std::span<const int> amounts) const {
  return SumsOf<std::int64_t>(amounts);
}

std::vector<double> DomainTree::SumUp(std::span<const double> amounts) const {
  return SumsOf<double>(amounts);
}

std::optional<DomainChoice> ChooseDomains(const DomainTree& tree, std::span<const int> room,
                                          const DomainWish& wish) {
  BERTH_CHECK(wish.pods > 0 && wish.slice_size > 0 && wish.pods % wish.slice_size == 0);
  BERTH_CHECK(wish.mode == DomainMode::kUnconstrained || wish.level < tree.levels());
  const std::size_t slice_level = wish.slice_level.value_or(tree.levels());
  BERTH_CHECK(slice_level <= tree.levels());
  BERTH_CHECK(wish.mode == DomainMode::kUnconstrained || wish.level <= slice_level);
  return Chooser(tree, room, wish).Choose();
}

}  // namespace berth
