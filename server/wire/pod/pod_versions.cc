// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/pod_versions.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace berth::wire {
namespace {

constexpr std::array<std::pair<std::string_view, Versioned>, kVersionedCount> kVersionKeys = {
    {{"berth.dev/min-driver", Versioned::kDriver},
     {"berth.dev/min-cuda", Versioned::kCuda},
     {"berth.dev/min-compute-capability", Versioned::kCapability}}};

}  // namespace

bool IsVersionKey(std::string_view key) {
  return std::ranges::any_of(kVersionKeys, [key](const auto& row) { return row.first == key; });
}

Status ReadVersionNeeds(PodParts& parts) {
  for (const auto& [key, what] : kVersionKeys) {
    const auto said = parts.annotations.find(key);
    if (said == parts.annotations.end()) continue;
    auto version = ParseVersion(said->second);
    if (!version) {
      return tl::unexpected(std::move(version).error().Within("annotation " + std::string(key)));
    }
    parts.constraints.versions.least[static_cast<std::size_t>(what)] = *version;
  }
  return {};
}

}  // namespace berth::wire
