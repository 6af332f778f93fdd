// SPDX-License-Identifier: Apache-2.0
//
// The annotation berth.dev/gpu-models of a Node whose GPUs differ: what each of them is, also of
// those that are partitioned. The node's agent writes it:
//
//   [{"uuid": "GPU-...", "model": "RTX-4090", "memory_mib": 24564, "compute_capability": "8.9"}]
//
// It takes precedence over labels, which are of one product, the machine type and the catalogue.
// The register of an agent that hands the GPUs out takes precedence over it: it may scale memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/node/node.h"

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

}  // namespace berth::wire
