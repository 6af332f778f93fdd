// SPDX-License-Identifier: Apache-2.0
#include "cluster/labels.h"

#include <algorithm>
#include <limits>

#include "base/number.h"

namespace berth {
namespace {

constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
constexpr auto kMost = std::numeric_limits<std::int64_t>::max();

bool ComparesWith(const LabelRequirement& requirement, const std::string& label) {
  if (requirement.values.size() != 1) return false;
  const auto bound = ParseInt(requirement.values.front(), kLeast, kMost);
  const auto number = ParseInt(label, kLeast, kMost);
  if (!bound || !number) return false;
  return requirement.op == LabelOperator::kGreater ? *number > *bound : *number < *bound;
}

}  // namespace

const std::string* FindLabel(const Labels& labels, std::string_view key) {
  const auto found = std::ranges::lower_bound(
      labels, key, {}, [](const auto& label) { return std::string_view(label.first); });
  return found != labels.end() && found->first == key ? &found->second : nullptr;
}

bool Holds(const LabelRequirement& requirement, const Labels& labels) {
  const std::string* const label = FindLabel(labels, requirement.key);
  // The values of kIn and kNotIn are sorted: a pod may list as many as its cluster has nodes.
  const auto listed = [&] { return std::ranges::binary_search(requirement.values, *label); };
  switch (requirement.op) {
    case LabelOperator::kIn:
      return label != nullptr && listed();
    case LabelOperator::kNotIn:
      return label == nullptr || !listed();
    case LabelOperator::kExists:
      return label != nullptr;
    case LabelOperator::kDoesNotExist:
      return label == nullptr;
    case LabelOperator::kGreater:
    case LabelOperator::kLess:
      return label != nullptr && ComparesWith(requirement, *label);
  }
  return false;
}

bool Selects(const LabelSelector& selector, const Labels& labels) {
  return std::ranges::all_of(selector, [&labels](const LabelRequirement& requirement) {
    return Holds(requirement, labels);
  });
}

}  // namespace berth
