// SPDX-License-Identifier: Apache-2.0
//
// A pod that asks for MIG devices as HAMi's users do:
//
//   annotation nvidia.com/vgpu-mode: mig
//   resources  nvidia.com/gpu: N with nvidia.com/gpumem: M, which are N devices, each of any
//              profile that has at least M MiB
//
// Of another mode, or without one, these names say nothing to Berth. nvidia.com/gpucores does not
// choose a profile, with HAMi neither. What else HAMi's users can say of the devices is refused
// rather than passed over. (HAMi at c447cab, pkg/device/nvidia/device.go.)
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "server/wire/pod_rules.h"

namespace berth::wire {

inline constexpr std::string_view kHamiMemoryResource = "nvidia.com/gpumem";
inline constexpr std::string_view kHamiMemoryPercentResource = "nvidia.com/gpumem-percentage";

// Whether an annotation is one of those by which HAMi's users choose devices.
bool IsHamiAskKey(std::string_view key);

// The one need of all the devices; nothing where the mode is not mig, or the pod asks for no GPUs.
// Error: kInvalidArgument with annotation or resource.
Result<std::optional<MigWant>> ReadHamiAsk(const PodParts& parts);

}  // namespace berth::wire
