// SPDX-License-Identifier: Apache-2.0
//
// A pod that asks for MIG devices as HAMi's users do:
//
//   annotation nvidia.com/vgpu-mode: mig
//   resources  nvidia.com/gpu: N with nvidia.com/gpumem: M, which are N devices, each of any
//              profile that has at least M MiB
//
// nvidia.com/gpucores does not choose a profile, with HAMi neither. What else HAMi's users can say
// is refused rather than passed over: which GPU it is to be, other modes, and without a mode a part
// of a GPU (nvidia.com/gpumem; nvidia.com/gpumem-percentage and nvidia.com/gpucores below 100),
// which is HAMi's scheduler's to give. (HAMi at c447cab, pkg/device/nvidia/device.go.)
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "server/wire/pod_parts.h"

namespace berth::dialects {

inline constexpr std::string_view kHamiMemoryResource = "nvidia.com/gpumem";
inline constexpr std::string_view kHamiMemoryPercentResource = "nvidia.com/gpumem-percentage";
inline constexpr std::string_view kHamiCoresResource = "nvidia.com/gpucores";

inline constexpr std::array kHamiResources = {kHamiMemoryResource, kHamiMemoryPercentResource,
                                              kHamiCoresResource};

// The annotations by which HAMi's users choose devices: the mode first.
inline constexpr std::array<std::string_view, 7> kHamiAskKeys = {
    "nvidia.com/vgpu-mode",
    "nvidia.com/use-gputype",
    "nvidia.com/nouse-gputype",
    "nvidia.com/use-gpuuuid",
    "nvidia.com/nouse-gpuuuid",
    "nvidia.com/numa-bind",
    "nvidia.com/mig-profile-preference"};

// Requires: one of kHamiResources.
void AddHamiAsk(std::string_view resource, std::int64_t amount, wire::ResourceAsk& ask);

// The one need of all the devices; nothing where the pod says nothing in HAMi's words, or asks for
// no GPUs. Error: kInvalidArgument with annotation or resource.
Result<std::optional<MigWant>> ReadHamiAsk(const wire::PodParts& parts);

}  // namespace berth::dialects
