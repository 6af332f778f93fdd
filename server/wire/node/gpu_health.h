// SPDX-License-Identifier: Apache-2.0
//
// The annotation berth.dev/gpu-health of a Node: the GPUs and MIG devices that the device plugin
// calls unhealthy, by its IDs, joined by commas. The node's agent writes it.
//
// The kubelet takes the same GPUs from what is allocatable, sooner or later. So each is closed by
// its name, and is one less of the GPUs that are missing without one (NodeSpec::missing).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cluster/node/node.h"

namespace berth::wire {

// The UUIDs of the node's GPUs by index, joined by commas.
inline constexpr std::string_view kGpuUuidsKey = "berth.dev/gpu-uuids";
inline constexpr std::string_view kGpuHealthKey = "berth.dev/gpu-health";
inline constexpr std::size_t kMostUnwellIds = 256;  // of one node, those of MIG devices among them

// Closes these GPUs and MIG devices in a node that says their names (CloseNamed); others are passed
// over. Returns what could not be read, with the key; the rest counts. Empty = nothing.
std::string CloseUnwell(std::string_view ids, NodeSpec& spec);

}  // namespace berth::wire
