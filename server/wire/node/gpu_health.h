// SPDX-License-Identifier: Apache-2.0
//
// The annotation berth.dev/gpu-health of a Node: the GPUs that the device plugin calls unhealthy,
// by its IDs, joined by commas. The node's agent writes it.
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

// Closes these GPUs in a node that has its GPUs and their UUIDs. IDs of MIG devices are passed
// over, and all of them where the node does not say its UUIDs. Returns what could not be read, with
// the key; the rest counts. Empty = nothing.
std::string CloseUnwell(std::string_view ids, NodeSpec& spec);

}  // namespace berth::wire
