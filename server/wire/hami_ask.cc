// SPDX-License-Identifier: Apache-2.0
#include "server/wire/hami_ask.h"

#include <algorithm>
#include <array>
#include <string>

namespace berth::wire {
namespace {

constexpr std::string_view kModeKey = "nvidia.com/vgpu-mode";
// Which GPU, or which profile: Berth does not read them.
constexpr std::array<std::string_view, 6> kChoiceKeys = {
    "nvidia.com/use-gputype",   "nvidia.com/nouse-gputype", "nvidia.com/use-gpuuuid",
    "nvidia.com/nouse-gpuuuid", "nvidia.com/numa-bind",     "nvidia.com/mig-profile-preference"};

Status WantsMemory(const ContainerSpec& container) {
  if (container.ask.hami_memory_percent) {
    return Invalid("container " + container.name + ": want " + std::string(kHamiMemoryResource) +
                   " with vgpu-mode mig, got " + std::string(kHamiMemoryPercentResource) +
                   ", of which it depends on the GPU how much that is");
  }
  if (container.ask.hami_memory_mib > 0) return {};
  return Invalid("container " + container.name + ": want " + std::string(kHamiMemoryResource) +
                 " beside nvidia.com/gpu with vgpu-mode mig, got none");
}

}  // namespace

bool IsHamiAskKey(std::string_view key) {
  return key == kModeKey || std::ranges::find(kChoiceKeys, key) != kChoiceKeys.end();
}

Result<std::optional<MigWant>> ReadHamiAsk(const PodParts& parts) {
  const auto mode = parts.annotations.find(kModeKey);
  if (mode == parts.annotations.end() || mode->second != "mig") return std::nullopt;
  std::optional<MigWant> need;
  for (const ContainerSpec& container : parts.containers) {
    if (container.ask.gpus == 0) continue;
    BERTH_TRY_STATUS(WantsMemory(container));
    const std::int64_t memory_mib = container.ask.hami_memory_mib;
    if (need && need->min_memory_mib != memory_mib) {
      return Invalid("container " + container.name + ": want as much " +
                     std::string(kHamiMemoryResource) + " as in the containers before it (" +
                     std::to_string(need->min_memory_mib) + "), got " + std::to_string(memory_mib));
    }
    need = MigWant{std::nullopt, false, 0, memory_mib, 1};
  }
  for (const std::string_view key : kChoiceKeys) {
    if (need && parts.annotations.contains(key)) {
      return Invalid("annotation " + std::string(key) +
                     ": not understood for MIG devices; leave it to a node selector or affinity");
    }
  }
  return need;
}

}  // namespace berth::wire
