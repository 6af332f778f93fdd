// SPDX-License-Identifier: Apache-2.0
//
// NodeWishes: which sort of node a pod rather has, for what it does there - a value, of the pod's
// workload class (config.h, WorkloadClass). Sorts of nodes are traits, by name: "rdma", "spot".
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

// Of nodes as Berth finds them (server/wire/node/node_traits.h says by what); others are
// configured.
inline constexpr std::string_view kTraitRdma = "rdma", kTraitNvlink = "nvlink",
                                  kTraitNvswitch = "nvswitch", kTraitNvme = "nvme",
                                  kTraitSpot = "spot", kTraitLeaving = "leaving", kTraitMig = "mig",
                                  kTraitShared = "shared";
inline constexpr std::array kBuiltinTraits = {kTraitRdma, kTraitNvlink, kTraitNvswitch,
                                              kTraitNvme, kTraitSpot,   kTraitLeaving,
                                              kTraitMig,  kTraitShared};
inline constexpr std::string_view kFamilyPrefix = "family=";  // before that of a machine type

inline bool IsFamily(std::string_view trait) {
  return trait.starts_with(kFamilyPrefix) && trait.size() > kFamilyPrefix.size();
}

// The one wish that is not about a trait: it is for every unit of money that a GPU of the node
// costs in an hour (NodeSpec::gpu_price).
inline constexpr std::string_view kPriceWish = "price";

struct TraitWish {
  std::string trait;  // or kPriceWish
  // Percent of the GPUs that the pod takes: so much of them may rather stay idle for good than that
  // it goes to a node without the trait or, where that is below 0, to one with it.
  int weight = 0;
  friend auto operator<=>(const TraitWish&, const TraitWish&) = default;
};

struct NodeWishes {
  std::vector<std::string> required;   // sorted: it takes no node that lacks one
  std::vector<std::string> forbidden;  // sorted: it takes no node that has one
  std::vector<TraitWish> wishes;       // sorted, each trait once
  std::string profile = {};            // by which nodes are compared for it; empty: as for all pods

  [[nodiscard]] bool empty() const {
    return required.empty() && forbidden.empty() && wishes.empty() && profile.empty();
  }
  friend auto operator<=>(const NodeWishes&, const NodeWishes&) = default;
};

// traits: of a node (NodeSpec::traits).
inline bool HasTrait(std::span<const std::string> traits, std::string_view trait) {
  return std::ranges::find(traits, trait) != traits.end();
}

}  // namespace berth
