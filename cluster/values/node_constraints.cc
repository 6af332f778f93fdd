// SPDX-License-Identifier: Apache-2.0
#include "cluster/values/node_constraints.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/text.h"

namespace berth {
namespace {

bool HasPart(std::string_view model, std::string_view lower_part) {
  const auto same = [](char c, char lower) {
    return (c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) == lower;
  };
  return std::search(model.begin(), model.end(), lower_part.begin(), lower_part.end(), same) !=
         model.end();
}

bool AdmittedBy(std::span<const ModelRule> rules, std::string_view model) {
  bool wanted = false, found = false;
  for (const ModelRule& rule : rules) {
    const bool has = HasPart(model, rule.part);
    if (rule.refused && has) return false;
    wanted = wanted || !rule.refused;
    found = found || (!rule.refused && has);
  }
  return found || !wanted;
}

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

constexpr int kMostOfVersion = 999'999;
constexpr int kMinors = 1000;

// The labels of the parts of a version; "" = it has no such part.
struct VersionLabels {
  Versioned what;
  std::array<std::string_view, 3> parts;
};
constexpr std::array<VersionLabels, 5> kVersionLabels = {{
    {Versioned::kDriver,
     {"nvidia.com/cuda.driver-version.major", "nvidia.com/cuda.driver-version.minor",
      "nvidia.com/cuda.driver-version.revision"}},
    {Versioned::kDriver,
     {"nvidia.com/cuda.driver.major", "nvidia.com/cuda.driver.minor",
      "nvidia.com/cuda.driver.rev"}},
    {Versioned::kCuda,
     {"nvidia.com/cuda.runtime-version.major", "nvidia.com/cuda.runtime-version.minor", ""}},
    {Versioned::kCuda, {"nvidia.com/cuda.runtime.major", "nvidia.com/cuda.runtime.minor", ""}},
    {Versioned::kCapability, {"nvidia.com/gpu.compute.major", "nvidia.com/gpu.compute.minor", ""}},
}};

std::optional<int> PartOf(const Labels& labels, std::string_view key) {
  const std::string* const label = key.empty() ? nullptr : FindLabel(labels, key);
  if (label == nullptr) return std::nullopt;
  const auto number = ParseInt(*label, 0, kMostOfVersion);
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

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

Result<Version> ParseVersion(std::string_view text) {
  const std::string got(text.substr(0, 40));
  std::array<int, 3> parts{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t end = std::min(text.find('.'), text.size());
    const auto number = ParseInt(text.substr(0, end), 0, kMostOfVersion);
    if (!number) break;
    parts[i] = static_cast<int>(*number);
    if (end == text.size()) return Version{parts[0], parts[1], parts[2]};
    text.remove_prefix(end + 1);
  }
  return Invalid("want a version such as 550, 12.4 or 550.54.15, got \"" + got + "\"");
}

std::string TextOf(const Version& version) {
  std::string text = std::to_string(version.major) + "." + std::to_string(version.minor);
  if (version.revision > 0) text += "." + std::to_string(version.revision);
  return text;
}

int CapabilityNumber(const Version& version) {
  const int minor = version.minor + (version.revision > 0 ? 1 : 0);
  return std::min(version.major, kMinors - 1) * kMinors + std::min(minor, kMinors - 1);
}

std::string CapabilityText(int number) { return TextOf({number / kMinors, number % kMinors}); }

std::optional<Version> VersionOf(const Labels& labels, Versioned what) {
  for (const VersionLabels& row : kVersionLabels) {
    if (row.what != what) continue;
    const auto major = PartOf(labels, row.parts[0]);
    if (!major) continue;
    return Version{*major, PartOf(labels, row.parts[1]).value_or(0),
                   PartOf(labels, row.parts[2]).value_or(0)};
  }
  return std::nullopt;
}

bool VersionNeeds::any() const {
  return std::ranges::any_of(least, [](const auto& need) { return need.has_value(); });
}

std::optional<Versioned> VersionNeeds::Unmet(const Labels& labels) const {
  for (std::size_t i = 0; i < least.size(); ++i) {
    if (!least[i]) continue;
    const auto what = static_cast<Versioned>(i);
    const auto has = VersionOf(labels, what);
    if (!has || *has < *least[i]) return what;
  }
  return std::nullopt;
}

std::optional<TaintEffect> TaintEffectNamed(std::string_view word) {
  const auto found = std::ranges::find(kTaintEffectWords, word);
  if (found == kTaintEffectWords.end()) return std::nullopt;
  return static_cast<TaintEffect>(found - kTaintEffectWords.begin());
}

bool IsOfCondition(const Taint& taint) {
  return taint.key.starts_with("node.kubernetes.io/") || taint.key == "karpenter.sh/unregistered" ||
         taint.key == "node.cloudprovider.kubernetes.io/uninitialized" ||
         taint.key.ends_with("/agent-not-ready");
}

bool IsOfLeaving(const Taint& taint) {
  return taint.key.starts_with("karpenter.sh/disrupt") ||
         taint.key == "ToBeDeletedByClusterAutoscaler" ||
         taint.key == "DeletionCandidateOfClusterAutoscaler";
}

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

ModelRules::ModelRules(std::vector<ModelRule> rules) {
  std::ranges::sort(rules);
  rules.erase(std::unique(rules.begin(), rules.end()), rules.end());
  if (!rules.empty()) known_ = std::make_shared<const Known>(std::move(rules));
}

std::span<const ModelRule> ModelRules::rules() const {
  return known_ == nullptr ? std::span<const ModelRule>() : std::span(known_->rules);
}

bool ModelRules::Admit(std::string_view model) const {
  if (known_ == nullptr) return true;
  {
    const MutexLock lock(known_->mutex);
    const auto verdict = known_->verdicts.find(model);
    if (verdict != known_->verdicts.end()) return verdict->second;
  }
  const bool admitted = AdmittedBy(known_->rules, model);
  const MutexLock lock(known_->mutex);
  known_->compared += known_->rules.size();
  if (known_->verdicts.size() < kMostModels) known_->verdicts.emplace(model, admitted);
  return admitted;
}

std::uint64_t ModelRules::compared() const {
  if (known_ == nullptr) return 0;
  const MutexLock lock(known_->mutex);
  return known_->compared;
}

std::strong_ordering operator<=>(const ModelRules& a, const ModelRules& b) {
  if (a.known_ == b.known_) return std::strong_ordering::equal;
  const auto x = a.rules(), y = b.rules();
  return std::lexicographical_compare_three_way(x.begin(), x.end(), y.begin(), y.end());
}

}  // namespace berth
