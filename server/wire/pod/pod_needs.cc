// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/pod_needs.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/number.h"

namespace berth::wire {

namespace {

constexpr std::string_view kIsolationKey = "berth.dev/isolation";
constexpr std::string_view kMinMemoryKey = "berth.dev/min-gpu-memory-gib";
constexpr std::int64_t kMostGib = 100'000;  // beyond any GPU
constexpr std::int64_t kGpuMibPerGib = 1024;

constexpr std::array<std::pair<std::string_view, Isolation>, 3> kIsolationWords = {
    {{"hardware", Isolation::kHardware},
     {"memory", Isolation::kMemory},
     {"none", Isolation::kNone}}};

}  // namespace

bool IsGpuNeedKey(std::string_view key) { return key == kIsolationKey || key == kMinMemoryKey; }

Status ReadGpuNeed(std::string_view key, std::string_view value, RequestShape& shape) {
  if (key == kMinMemoryKey) {
    BERTH_TRY(const std::int64_t gib, ParseInt(value, 1, kMostGib));
    shape.min_gpu_memory_mib = gib * kGpuMibPerGib;
    return {};
  }
  const auto word =
      std::ranges::find(kIsolationWords, value, [](const auto& entry) { return entry.first; });
  if (word == kIsolationWords.end()) {
    return Invalid("want one of hardware, memory, none, got \"" + std::string(value.substr(0, 40)) +
                   "\"");
  }
  shape.isolation = word->second;
  return {};
}

Status CheckGpuNeeds(const RequestShape& shape) {
  if (shape.min_gpu_memory_mib > 0 && !std::holds_alternative<WholeGpus>(shape.gpus)) {
    return Invalid("annotation " + std::string(kMinMemoryKey) +
                   ": want a pod that also asks for whole GPUs (nvidia.com/gpu); shares and MIG "
                   "profiles state their memory themselves");
  }
  if (shape.isolation == Isolation::kHardware && shape.is_share()) {
    return Invalid("annotation " + std::string(kIsolationKey) +
                   ": want memory or none for a share of a GPU, got \"hardware\"");
  }
  return {};
}

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
