// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/topology_manager.h"

#include <algorithm>
#include <array>
#include <bit>

namespace berth {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"none", "best-effort", "restricted",
                                                    "single-numa-node"};

// The GPUs of the NUMA nodes of a set of them.
GpuMask GpusOf(std::span<const GpuMask> numa_nodes, std::uint32_t set) {
  GpuMask gpus = 0;
  for (; set != 0; set &= set - 1) {
    gpus |= numa_nodes[static_cast<std::size_t>(std::countr_zero(set))];
  }
  return gpus;
}

// The next larger number with as many bits (Knuth, TAOCP 4A, 7.1.3).
std::uint32_t NextOfSize(std::uint32_t set) {
  const std::uint32_t low = set & (~set + 1), carried = set + low;
  return carried | ((carried ^ set) / low >> 2);
}

}  // namespace

TopologyManager::Offer TopologyManager::OfferTo(std::span<const GpuMask> numa_nodes, GpuMask free,
                                                GpuMask reused, int count) const {
  const std::uint32_t sets = std::uint32_t{1} << numa_nodes.size();
  const int most =
      policy == TopologyPolicy::kSingleNumaNode ? 1 : static_cast<int>(numa_nodes.size());
  for (int size = 1; size <= most; ++size) {
    bool holds_empty = false;  // whether so many NUMA nodes have that many GPUs, free or not
    for (std::uint32_t set = (std::uint32_t{1} << size) - 1; set < sets; set = NextOfSize(set)) {
      const GpuMask gpus = GpusOf(numa_nodes, set);
      holds_empty = holds_empty || std::popcount(gpus) >= count;
      if ((reused & ~gpus) != 0) continue;
      if (std::popcount(gpus & (free | reused)) >= count) return {true, gpus & free};
    }
    if (holds_empty && policy == TopologyPolicy::kRestricted) return {};
  }
  return {};
}

std::string_view NameOf(TopologyPolicy policy) { return kNames[static_cast<std::size_t>(policy)]; }

std::optional<TopologyPolicy> ParseTopologyPolicy(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<TopologyPolicy>(found - kNames.begin());
}

const GpusByName* FindByName(std::span<const GpusByName> names, std::string_view resource) {
  const auto found =
      resource.empty() ? names.begin() : std::ranges::find(names, resource, &GpusByName::resource);
  return found == names.end() ? nullptr : &*found;
}

GpuMask GpusOf(const GpusByName& name) {
  GpuMask gpus = 0;
  for (const int gpu : name.order) gpus |= GpuBit(gpu);
  return gpus;
}

GpuMask FirstFree(const GpusByName& name, GpuMask free, int count) {
  GpuMask taken = 0;
  for (const int gpu : name.order) {
    if (count == 0) break;
    if ((free & GpuBit(gpu)) == 0) continue;
    taken |= GpuBit(gpu);
    --count;
  }
  return count == 0 ? taken : 0;
}

}  // namespace berth
