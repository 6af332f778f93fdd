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

// Of a pod that is of no mode, or of another one than mig.
Status RefuseOthers(const PodParts& parts) {
  bool wants_gpus = false;
  for (const ContainerSpec& container : parts.containers) {
    wants_gpus = wants_gpus || container.ask.gpus > 0;
    if (container.ask.hami_share.empty()) continue;
    return Invalid("container " + container.name + ": " + std::string(container.ask.hami_share) +
                   " asks for a share of a GPU, which HAMi's scheduler gives; want the annotation "
                   "nvidia.com/vgpu-mode: mig, or berth.dev/gpu-milli or berth.dev/gpu-memory-mib "
                   "in place of nvidia.com/gpu");
  }
  if (!wants_gpus) return {};
  const auto mode = parts.annotations.find(kModeKey);
  if (mode != parts.annotations.end() && !mode->second.empty()) {
    return Invalid("annotation " + std::string(kModeKey) + ": want mig, got \"" +
                   mode->second.substr(0, 40) + "\", which HAMi's scheduler gives");
  }
  for (const std::string_view key : kChoiceKeys) {
    const auto choice = parts.annotations.find(key);
    if (choice == parts.annotations.end() || choice->second == "false") continue;
    return Invalid("annotation " + std::string(key) +
                   ": not understood; want berth.dev/gpu-model, berth.dev/numa, a node selector or "
                   "affinity");
  }
  return {};
}

}  // namespace

bool IsHamiResource(std::string_view resource) {
  return resource == kHamiMemoryResource || resource == kHamiMemoryPercentResource ||
         resource == kHamiCoresResource;
}

std::string_view HamiShareResource(std::string_view resource, std::int64_t amount) {
  if (amount <= 0) return "";
  if (resource == kHamiMemoryResource) return kHamiMemoryResource;
  if (amount >= 100) return "";
  return resource == kHamiCoresResource ? kHamiCoresResource : kHamiMemoryPercentResource;
}

bool IsHamiAskKey(std::string_view key) {
  return key == kModeKey || std::ranges::find(kChoiceKeys, key) != kChoiceKeys.end();
}

Result<std::optional<MigWant>> ReadHamiAsk(const PodParts& parts) {
  const auto mode = parts.annotations.find(kModeKey);
  if (mode == parts.annotations.end() || mode->second != "mig") {
    BERTH_TRY_STATUS(RefuseOthers(parts));
    return std::nullopt;
  }
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
