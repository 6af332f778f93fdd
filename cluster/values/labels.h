// SPDX-License-Identifier: Apache-2.0
//
// Labels of nodes and pods, and selectors for them, with Kubernetes' meaning (k8s.io/apimachinery
// pkg/labels, k8s.io/component-helpers scheduling/corev1/nodeaffinity).
#pragma once

#include <compare>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace berth {

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

}  // namespace berth
