// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/pod_spread.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace berth::wire {

namespace {

constexpr std::string_view kSpreadKey = "berth.dev/spread";
constexpr std::string_view kSpreadByKey = "berth.dev/spread-by";

// The value is kept with every pod, so a longer one is cut and followed by its hash.
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

namespace {

constexpr std::string_view kNearKey = "berth.dev/near";
constexpr std::string_view kFarKey = "berth.dev/far";
constexpr std::size_t kMostLabels = 16;  // pods of every node are compared with each

Status ReadSelector(const PodParts& parts, std::string_view key, LabelSelector& selector) {
  const auto said = parts.annotations.find(key);
  if (said == parts.annotations.end()) return {};
  const std::string place = "annotation " + std::string(key) + ": ";
  const std::vector<std::string_view> words = PartsOf(said->second, ',');
  if (words.empty() || words.size() > kMostLabels) {
    return Invalid(place + "want 1.." + std::to_string(kMostLabels) +
                   " labels of pods, such as app=prefill, got " + std::to_string(words.size()));
  }
  auto read = ParseSelector(std::vector<std::string>(words.begin(), words.end()));
  if (!read) return Invalid(place + read.error().message);
  selector = *std::move(read);
  std::ranges::sort(selector);  // one order of what means the same
  return {};
}

}  // namespace

bool IsNeighbourKey(std::string_view key) { return key == kNearKey || key == kFarKey; }

Status ReadNeighbours(const PodParts& parts, RequestShape& shape) {
  Neighbours neighbours;
  BERTH_TRY_STATUS(ReadSelector(parts, kNearKey, neighbours.near));
  BERTH_TRY_STATUS(ReadSelector(parts, kFarKey, neighbours.far));
  const bool has_devices = shape.wants_gpu() || !parts.claims.empty();
  if (!has_devices || neighbours.empty()) return {};
  neighbours.namespace_name = parts.id.namespace_name;
  shape.neighbours = std::move(neighbours);
  return {};
}

}  // namespace berth::wire
