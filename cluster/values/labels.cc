// SPDX-License-Identifier: Apache-2.0
#include "cluster/values/labels.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/text.h"

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

std::optional<LabelRequirement> ParseRequirement(std::string_view text) {
  const bool lacks = text.starts_with('!');
  if (lacks) text.remove_prefix(1);
  const std::size_t equals = text.find('=');
  std::string_view key = text.substr(0, equals);
  const bool unequal = equals != std::string_view::npos && key.ends_with('!');
  if (unequal) key.remove_suffix(1);
  if (key.empty() || key.find_first_of("!, ()") != std::string_view::npos) return std::nullopt;
  if (equals == std::string_view::npos) {
    const auto op = lacks ? LabelOperator::kDoesNotExist : LabelOperator::kExists;
    return LabelRequirement{std::string(key), op, {}};
  }
  const std::string_view value = text.substr(equals + 1);
  if (lacks || value.find_first_of("=, ()") != std::string_view::npos) return std::nullopt;
  const auto op = unequal ? LabelOperator::kNotIn : LabelOperator::kIn;
  return LabelRequirement{std::string(key), op, {std::string(value)}};
}

}  // namespace

Result<LabelSelector> ParseSelector(std::span<const std::string> texts) {
  LabelSelector selector;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto requirement = ParseRequirement(texts[i]);
    if (!requirement) {
      return Invalid("[" + std::to_string(i) +
                     "]: want KEY=VALUE, KEY!=VALUE, KEY or !KEY, got \"" + texts[i] + "\"");
    }
    selector.push_back(*std::move(requirement));
  }
  return selector;
}

const std::string* FindLabel(const Labels& labels, std::string_view key) {
  const auto found = std::ranges::lower_bound(
      labels, key, {}, [](const auto& label) { return std::string_view(label.first); });
  return found != labels.end() && found->first == key ? &found->second : nullptr;
}

std::string_view LabelText(const Labels& labels, std::string_view key) {
  const std::string* const value = FindLabel(labels, key);
  return value == nullptr ? std::string_view() : *value;
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
