// SPDX-License-Identifier: Apache-2.0
//
// NodeConstraints: which nodes a pod may use, apart from its resources - node selector, required
// node affinity, tolerations - and the taints of nodes. Kubernetes' rules (k8s.io/component-helpers
// scheduling/corev1).
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/values/labels.h"
#include "cluster/values/version_needs.h"

namespace berth {

enum class TaintEffect { kNoSchedule, kNoExecute, kPreferNoSchedule };
inline constexpr std::array<std::string_view, 3> kTaintEffectWords = {"NoSchedule", "NoExecute",
                                                                      "PreferNoSchedule"};

// spec.unschedulable of a node stands here as the taint node.kubernetes.io/unschedulable.
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
