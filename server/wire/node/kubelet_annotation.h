// SPDX-License-Identifier: Apache-2.0
//
// What the agent of a node, berth-node, says in annotations of its Node about who gives containers
// their GPUs:
//
//   berth.dev/carries-out: example.com/gpu,example.com/gpu-part
//   berth.dev/kubelet: {"topologyManagerPolicy":"restricted","topologyManagerScope":"pod"}
//
// Of a resource in the first one, containers get the devices that Berth chose. The second one is
// the kubelet's configuration; fields that are not named here are ignored, and all may be left out.
// "numa":"lifted" says that the kubelet does not know the NUMA nodes of the GPUs, so that its
// policy limits nothing. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/node/topology_manager.h"

namespace berth::wire {

inline constexpr std::string_view kCarriesOutKey = "berth.dev/carries-out";
inline constexpr std::string_view kKubeletKey = "berth.dev/kubelet";

inline constexpr std::size_t kMostCarriedOut = 64;             // resources of one node
inline constexpr std::size_t kLongestResource = 253 + 1 + 63;  // "domain/name"
inline constexpr std::size_t kMostKubeletBytes = 4096;

// The names of the resources; none of "". Error: kInvalidArgument with what was wanted, beyond the
// bounds above.
Result<std::vector<std::string>> ParseCarriesOut(std::string_view text);

// Error: kInvalidArgument naming the field, also for a policy or scope that is not known.
Result<TopologyManager> ParseKubelet(std::string_view text);

}  // namespace berth::wire
