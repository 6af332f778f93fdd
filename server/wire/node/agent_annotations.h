// SPDX-License-Identifier: Apache-2.0
//
// What the agent of a node, berth-node, says in annotations of its Node of GPUs that differ, also
// of those that are partitioned, and of who gives containers their GPUs:
//
//   berth.dev/gpu-models: [{"uuid": "GPU-...", "model": "RTX-4090", "memory_mib": 24564,
//                           "compute_capability": "8.9"}]
//   berth.dev/carries-out: example.com/gpu,example.com/gpu-part
//   berth.dev/kubelet: {"topologyManagerPolicy":"restricted","topologyManagerScope":"pod"}
//
// The first one takes precedence over labels, which are of one product, the machine type and the
// catalogue. The register of an agent that hands the GPUs out takes precedence over it: it may
// scale memory. Of a resource in the second one, containers get the devices that Berth chose. The
// third one is the kubelet's configuration; fields that are not named here are ignored, and all may
// be left out. "numa":"lifted" says that the kubelet does not know the NUMA nodes of the GPUs, so
// that its policy limits nothing. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/node/node.h"
#include "cluster/node/topology_manager.h"

namespace berth::wire {

inline constexpr std::string_view kGpuModelsKey = "berth.dev/gpu-models";
inline constexpr std::size_t kMostGpuModelsBytes = std::size_t{32} << 10;

struct GpuKind {
  std::string uuid;
  std::string model;            // as GPU Feature Discovery writes it
  std::int64_t memory_mib = 0;  // of the whole GPU
  int capability = 0;           // CapabilityNumber; 0 = not known
};

// At most kMaxGpusPerNode. Error: kInvalidArgument with the place.
Result<std::vector<GpuKind>> ParseGpuKinds(std::string_view text);
std::string GpuKindsText(const std::vector<GpuKind>& kinds);

// What the register of an agent has said of the node's GPUs.
struct Registered {
  bool memory = false, models = false;
};

// Gives the node's GPUs the rest of it. A replica, which may be of any GPU, has its part of the
// least memory. Returns why nothing was taken, with the key; empty: it was.
std::string TakeKinds(const std::vector<GpuKind>& kinds, const Registered& said, NodeSpec& spec);

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
