// SPDX-License-Identifier: Apache-2.0
//
// Assumed grants: which GPUs a pod is assumed to have if it was bound past Berth and its devices
// are unknown. The assumption never makes room for other pods.
#pragma once

#include <span>
#include <vector>

#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"

namespace berth {

struct GpuFree;
struct GpuSpec;

// Whole GPUs: the idle ones from the highest index down (Berth and the kubelet fill from the lowest
// up), then the freest. MIG devices without a name too, each counted as a GPU. A share, and
// each of several: the fullest GPU that still fits it, else the freest. Ties go to the highest
// index. Always as many GPUs as the pod asks for, if the node has them, so free amounts may become
// negative.
std::vector<DeviceGrant> AssumeGrants(std::span<const GpuSpec> gpus, std::span<const GpuFree> free,
                                      const GpuAsk& ask);

}  // namespace berth
