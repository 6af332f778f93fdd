// SPDX-License-Identifier: Apache-2.0
#include "cluster/values/node_constraints.h"

#include <algorithm>

namespace berth {
namespace {

bool ValueTolerated(const Toleration& toleration, const std::string& value) {
  switch (toleration.op) {
    case TolerationOperator::kEqual:
      return toleration.value == value;
    case TolerationOperator::kExists:
      return true;
    case TolerationOperator::kGreater:
      return Holds({"value", LabelOperator::kGreater, {toleration.value}}, {{"value", value}});
    case TolerationOperator::kLess:
      return Holds({"value", LabelOperator::kLess, {toleration.value}}, {{"value", value}});
  }
  return false;
}

}  // namespace

std::optional<TaintEffect> TaintEffectNamed(std::string_view word) {
  const auto found = std::ranges::find(kTaintEffectWords, word);
  if (found == kTaintEffectWords.end()) return std::nullopt;
  return static_cast<TaintEffect>(found - kTaintEffectWords.begin());
}

bool IsOfCondition(const Taint& taint) { return taint.key.starts_with("node.kubernetes.io/"); }

bool Tolerates(std::span<const Toleration> tolerations, const Taint& taint) {
  return std::ranges::any_of(tolerations, [&taint](const Toleration& toleration) {
    return (!toleration.effect || *toleration.effect == taint.effect) &&
           (toleration.key.empty() || toleration.key == taint.key) &&
           ValueTolerated(toleration, taint.value);
  });
}

bool SelectsNode(const NodeConstraints& constraints, std::string_view name, const Labels& labels) {
  if (!Selects(constraints.selector, labels)) return false;
  if (!constraints.either) return true;
  return std::ranges::any_of(*constraints.either, [&](const NodeSelectorTerm& term) {
    if (term.labels.empty() && term.fields.empty()) return false;
    return Selects(term.labels, labels) &&
           (term.fields.empty() || Selects(term.fields, {{"metadata.name", std::string(name)}}));
  });
}

}  // namespace berth
