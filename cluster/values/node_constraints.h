// SPDX-License-Identifier: Apache-2.0
//
// NodeConstraints: which nodes a pod may use, apart from its resources - node selector, required
// node affinity, tolerations - and the taints of nodes. Kubernetes' rules (k8s.io/component-helpers
// scheduling/corev1).
#pragma once

#include <array>
#include <compare>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/values/labels.h"

namespace berth {

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
// (node.kubernetes.io/not-ready).
bool IsOfCondition(const Taint& taint);

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

}  // namespace berth
