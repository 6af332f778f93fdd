// SPDX-License-Identifier: Apache-2.0
//
// Which GPUs a pod has that was bound past Berth and does not say: an assumption that never makes
// room.
#pragma once

#include <span>
#include <vector>

#include "cluster/placement.h"
#include "cluster/pod_request.h"

namespace berth {

struct GpuFree;
struct GpuSpec;

// Whole GPUs: the idle ones from the highest index down (Berth and the kubelet fill from the lowest
// up), then the freest; MIG devices without a name, where each counts as a GPU, likewise. A share:
// the fullest GPU that still fits it, else the freest. Ties: the highest index. Always as many GPUs
// as the pod asks for, if the node has them: free amounts may become negative.
std::vector<DeviceGrant> AssumeGrants(std::span<const GpuSpec> gpus, std::span<const GpuFree> free,
                                      const GpuAsk& ask);

}  // namespace berth
