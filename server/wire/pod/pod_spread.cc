// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/pod_spread.h"

#include <functional>
#include <string>
#include <utility>

namespace berth::wire {
namespace {

constexpr std::string_view kSpreadKey = "berth.dev/spread";
constexpr std::string_view kSpreadByKey = "berth.dev/spread-by";

// Every pod keeps it: a longer text is replaced by its hash.
std::string Shortened(std::string text) {
  constexpr std::size_t kMostBytes = 1024;
  if (text.size() <= kMostBytes) return text;
  const std::string hash = std::to_string(std::hash<std::string>()(text));
  text.resize(kMostBytes);
  return text + "#" + hash;
}

// Texts of the three kinds never meet: a UID has no "=", and a label begins with "label ".
std::string WorkloadOf(const PodParts& parts) {
  std::string workload = parts.id.namespace_name + "/";
  if (!parts.controller.empty()) return workload + parts.controller;
  for (const auto& [key, value] : parts.labels) workload += key + "=" + value + ",";
  return Shortened(std::move(workload));
}

Status ReadSpreadBy(const PodParts& parts, const std::string& label, RequestShape& shape) {
  const std::string place = "annotation " + std::string(kSpreadByKey) + ": ";
  if (!shape.wants_gpu()) return {};
  if (shape.spread == Spread::kNone) {
    return Invalid(place + "want " + std::string(kSpreadKey) + " (card or node) beside it");
  }
  const std::string* const value = FindLabel(parts.labels, label);
  if (value == nullptr) {
    return Invalid(place + "want a label that the pod has, got \"" + label.substr(0, 80) + "\"");
  }
  shape.workload = Shortened(parts.id.namespace_name + "/label " + label + "=" + *value);
  return {};
}

}  // namespace

bool IsSpreadKey(std::string_view key) { return key == kSpreadKey || key == kSpreadByKey; }

Status ReadSpread(const PodParts& parts, RequestShape& shape) {
  if (const auto said = parts.annotations.find(kSpreadKey); said != parts.annotations.end()) {
    if (said->second != "card" && said->second != "node") {
      return Invalid("annotation " + std::string(kSpreadKey) + ": want one of card, node, got \"" +
                     said->second.substr(0, 40) + "\"");
    }
    SpreadByController(parts, said->second == "card" ? Spread::kCard : Spread::kNode, shape);
  }
  const auto by = parts.annotations.find(kSpreadByKey);
  return by == parts.annotations.end() ? Status() : ReadSpreadBy(parts, by->second, shape);
}

void SpreadByController(const PodParts& parts, Spread spread, RequestShape& shape) {
  if (!shape.wants_gpu()) return;
  shape.spread = spread;
  shape.workload = WorkloadOf(parts);
}

}  // namespace berth::wire
