// SPDX-License-Identifier: Apache-2.0
//
// The MIG devices of a node, from the best of what the node has:
//
//   1. annotation berth.dev/mig (mig_json.h)
//   2. HAMi's register (hami_mig.h), where it has GPUs in mode mig
//   3. allocatable nvidia.com/mig-PROFILE: how many there are on the node. The product is that of
//      the label; the instances are laid out over as many GPUs as nvidia.com/gpu.count says beside
//      the whole ones (else as few as hold them), the largest first, each onto the GPU with the
//      most free units, where the driver would put it. A product that is not known, or that cannot
//      be cut so: each device is on a GPU of its own.
//
// Beside that: strategy single (the product label ends in -MIG-PROFILE, and nvidia.com/gpu counts
// devices), devices with several users (.shared, or nvidia.com/mig-PROFILE.replicas above 1), and
// what is wrong (nvidia.com/mig.config.state; -MIG-INVALID; more devices allocatable than the
// labels nvidia.com/mig-PROFILE.count and nvidia.com/gpu.count know of). Labels as GPU Feature
// Discovery and mig-manager write them. What cannot be read is told and passed over.
//
// Static devices of a node of AKS (label kubernetes.azure.com/agentpool) are fixed: the pool got
// its profile when it was created. Where NVIDIA's MIG manager runs (nvidia.com/mig.config.state),
// it cuts the GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/labels.h"
#include "cluster/mig_library.h"
#include "cluster/mig_spec.h"

namespace berth::wire {

struct MigFacts {
  const Labels& labels;
  std::string_view product;           // of the label
  std::int64_t gpus = 0;              // whole GPUs
  std::int64_t places = 0;            // on GPUs with several users (node_gpus.h)
  std::int64_t gpu_memory_mib = 0;    // of each; 0 = not known
  std::vector<MigStock> allocatable;  // devices by name
  std::string_view annotation;        // empty = not there
  std::optional<MigSpec> hami = {};   // of its register
};

struct FoundMig {
  NodeMig mig;
  std::string problem;  // what was passed over, with its key; empty = nothing
};

FoundMig ReadNodeMig(const MigFacts& facts, MigLibrary& library);

}  // namespace berth::wire
