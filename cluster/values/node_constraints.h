// SPDX-License-Identifier: Apache-2.0
//
// NodeConstraints: which nodes a pod may use, apart from its resources - node selector, required
// node affinity, tolerations - and the taints of nodes. Kubernetes' rules (k8s.io/component-helpers
// scheduling/corev1).
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"

namespace berth {

// Labels of nodes and pods, and selectors for them, with Kubernetes' meaning (k8s.io/apimachinery
// pkg/labels, k8s.io/component-helpers scheduling/corev1/nodeaffinity).

using Labels = std::vector<std::pair<std::string, std::string>>;  // sorted by key, each key once

// nullptr where there is no such label. Requires: labels sorted by key.
const std::string* FindLabel(const Labels& labels, std::string_view key);
// The value of the label; empty where there is no such label.
std::string_view LabelText(const Labels& labels, std::string_view key);

enum class LabelOperator { kIn, kNotIn, kExists, kDoesNotExist, kGreater, kLess };

// One condition. kNotIn also holds where the label is not there; kGreater and kLess compare whole
// numbers with the one value, and hold for nothing that is not a number.
struct LabelRequirement {
  std::string key;
  LabelOperator op = LabelOperator::kIn;
  std::vector<std::string> values;
  friend auto operator<=>(const LabelRequirement&, const LabelRequirement&) = default;
};

// All of them must hold; an empty selector selects everything.
using LabelSelector = std::vector<LabelRequirement>;

// Each of the texts is KEY=VALUE, KEY!=VALUE, KEY or !KEY, as for kubectl -l. Error:
// kInvalidArgument "[I]: want ...".
Result<LabelSelector> ParseSelector(std::span<const std::string> texts);

bool Holds(const LabelRequirement& requirement, const Labels& labels);
bool Selects(const LabelSelector& selector, const Labels& labels);

// VersionNeeds: what a pod needs of the driver and of the GPUs of its node, at least. Nodes say
// theirs in the labels of GPU Feature Discovery:
//
//   driver       nvidia.com/cuda.driver-version.major .minor .revision
//   CUDA         nvidia.com/cuda.runtime-version.major .minor: the newest that the driver runs
//   capability   nvidia.com/gpu.compute.major .minor, of the GPUs
//
// or in the older nvidia.com/cuda.driver.major .minor .rev and nvidia.com/cuda.runtime.major .minor
// (NVIDIA/k8s-device-plugin v0.17, docs/gpu-feature-discovery). A node that does not say a version
// is none that is known to have it.
struct Version {
  int major = 0, minor = 0, revision = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};

// "550", "550.54" or "550.54.15". Error: kInvalidArgument "want ..., got TEXT".
Result<Version> ParseVersion(std::string_view text);
std::string TextOf(const Version& version);  // without a revision of 0

// A compute capability as a number, in the same order: 8006 for 8.6. A revision is rounded up.
inline constexpr int kMostCapability = 999'999;
int CapabilityNumber(const Version& version);
std::string CapabilityText(int number);

enum class Versioned { kDriver, kCuda, kCapability };
inline constexpr std::size_t kVersionedCount = 3;

// nullopt: the node does not say it, or not as a number.
std::optional<Version> VersionOf(const Labels& labels, Versioned what);

struct VersionNeeds {
  std::array<std::optional<Version>, kVersionedCount> least;  // by Versioned
  [[nodiscard]] bool any() const;
  // The first need that the node does not meet.
  [[nodiscard]] std::optional<Versioned> Unmet(const Labels& labels) const;
  friend bool operator==(const VersionNeeds&, const VersionNeeds&) = default;
};

enum class TaintEffect { kNoSchedule, kNoExecute, kPreferNoSchedule };
inline constexpr std::array<std::string_view, 3> kTaintEffectWords = {"NoSchedule", "NoExecute",
                                                                      "PreferNoSchedule"};

// As which spec.unschedulable of a node stands among its taints.
inline constexpr std::string_view kCordonTaint = "node.kubernetes.io/unschedulable";

struct Taint {
  std::string key;
  std::string value;
  TaintEffect effect = TaintEffect::kNoSchedule;
  friend bool operator==(const Taint&, const Taint&) = default;
};

// Nothing where the word is no effect.
std::optional<TaintEffect> TaintEffectNamed(std::string_view word);

// Whether Kubernetes' controllers put the taint there for a condition of the node
// (node.kubernetes.io/not-ready), or those of clouds, of Karpenter and of network and storage
// agents (node.cilium.io/agent-not-ready) until the node has begun.
bool IsOfCondition(const Taint& taint);
// Whether an autoscaler put it there, to take the node away.
bool IsOfLeaving(const Taint& taint);

enum class TolerationOperator { kEqual, kExists, kGreater, kLess };

struct Toleration {
  std::string key;  // empty = every key
  TolerationOperator op = TolerationOperator::kEqual;
  std::string value;
  std::optional<TaintEffect> effect;  // empty = every effect
  friend bool operator==(const Toleration&, const Toleration&) = default;
};

// One alternative of a required node affinity; one without any condition selects nothing.
struct NodeSelectorTerm {
  LabelSelector labels;  // matchExpressions
  LabelSelector fields;  // matchFields; the only field is metadata.name
  friend bool operator==(const NodeSelectorTerm&, const NodeSelectorTerm&) = default;
};

struct NodeConstraints {
  LabelSelector selector;                               // spec.nodeSelector
  std::optional<std::vector<NodeSelectorTerm>> either;  // required affinity: any one of these
  std::vector<Toleration> tolerations;
  VersionNeeds versions = {};  // of what the pod asks in Berth's words

  // Whether the labels of a node matter.
  [[nodiscard]] bool selects() const { return !selector.empty() || either.has_value(); }
  friend bool operator==(const NodeConstraints&, const NodeConstraints&) = default;
};

bool Tolerates(std::span<const Toleration> tolerations, const Taint& taint);

// Whether selector and affinity accept the node.
bool SelectsNode(const NodeConstraints& constraints, std::string_view name, const Labels& labels);

// NodeWishes: which sort of node a pod rather has, for what it does there - a value, of the pod's
// workload class (config.h, WorkloadClass). Sorts of nodes are traits, by name: "rdma", "spot".

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
