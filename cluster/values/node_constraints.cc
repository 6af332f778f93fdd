// SPDX-License-Identifier: Apache-2.0
#include "cluster/values/node_constraints.h"

#include <algorithm>

#include "base/text.h"

namespace berth {
namespace {

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
