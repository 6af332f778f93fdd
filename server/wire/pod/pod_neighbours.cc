// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/pod_neighbours.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace berth::wire {
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
