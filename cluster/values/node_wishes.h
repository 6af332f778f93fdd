// SPDX-License-Identifier: Apache-2.0
//
// NodeWishes: which sort of node a pod rather has, for what it does there - a value, of the pod's
// workload class (config.h, WorkloadClass). Sorts of nodes are traits, by name: "rdma", "spot".
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"

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
inline constexpr std::string_view kImagePrefix = "image=";    // before the version of its image

// Whether it is one of the traits that have a value.
inline bool HasValue(std::string_view trait) {
  return (trait.starts_with(kFamilyPrefix) && trait.size() > kFamilyPrefix.size()) ||
         (trait.starts_with(kImagePrefix) && trait.size() > kImagePrefix.size());
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

// ModelRules: parts of the names of GPU models that a pod accepts, or does not. Clusters have a
// dozen models and thousands of nodes, so the verdict on a model is found once and remembered.
// A part of the name of a GPU model, whatever the case: models that have it are accepted, or are
// not.
struct ModelRule {
  bool refused = false;
  std::string part;  // lower case, not empty
  friend auto operator<=>(const ModelRule&, const ModelRule&) = default;
};

// A value; copies share what they remember. Any thread may ask.
class ModelRules {
 public:
  ModelRules() = default;
  // In any order, also several times the same.
  explicit ModelRules(std::vector<ModelRule> rules);

  [[nodiscard]] bool empty() const { return known_ == nullptr; }
  void clear() { known_.reset(); }
  // Sorted, unique.
  [[nodiscard]] std::span<const ModelRule> rules() const;

  // Whether models of that name are accepted: they have any of the parts that are not refused, if
  // there are such, and none of the others.
  [[nodiscard]] bool Admit(std::string_view model) const;

  // How often a part was compared with a model, by this one and its copies.
  [[nodiscard]] std::uint64_t compared() const;

  friend bool operator==(const ModelRules& a, const ModelRules& b) { return (a <=> b) == 0; }
  friend std::strong_ordering operator<=>(const ModelRules& a, const ModelRules& b);

 private:
  static constexpr std::size_t kMostModels = 1000;  // that are remembered

  struct Known {
    explicit Known(std::vector<ModelRule> all) : rules(std::move(all)) {}
    const std::vector<ModelRule> rules;
    mutable Mutex mutex;
    mutable std::map<std::string, bool, std::less<>> verdicts BERTH_GUARDED_BY(mutex);
    mutable std::uint64_t compared BERTH_GUARDED_BY(mutex) = 0;
  };
  std::shared_ptr<const Known> known_;  // nullptr: all models are accepted
};

}  // namespace berth
