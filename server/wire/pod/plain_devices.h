// SPDX-License-Identifier: Apache-2.0
//
// The annotation berth.dev/devices as almost every pod has it: GPUs and shares of them, and nothing
// that is wrong. devices_annotation.cc reads all that there may be, and says what is wrong; that
// takes five times as long, which is felt where a cluster's pods are listed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/values/placement.h"

namespace berth::wire {

using GpusByContainer = std::map<std::string, std::vector<DeviceGrant>>;

inline constexpr std::int64_t kMostGrantedMib = std::int64_t{1} << 40;

// By container, what the text gives to a pod on that node. nullopt: there is more in the text, or
// something is wrong with it.
std::optional<GpusByContainer> ReadPlainDevices(std::string_view text, std::string_view node);

}  // namespace berth::wire
