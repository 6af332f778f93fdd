// SPDX-License-Identifier: Apache-2.0
//
// AlignedGpus: whole GPUs on a node whose Topology Manager limits which of them a container gets
// (cluster/node/topology_manager.h). What Berth plans is among those that the kubelet will offer:
// without an agent that carries plans out it takes others of the same NUMA node, and the books are
// right about how many are left in each; with one it takes these. Pure functions.
#pragma once

#include <span>
#include <string>

#include "cluster/node/gpu_division.h"
#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"
#include "topology/gpu_mask.h"

namespace berth {

struct AlignedChoice {
  bool admits = false;  // whether the kubelet takes a pod of that shape, whatever else it needs
  GpuMask gpus = 0;     // 0: none that suit the pod
};

// The GPUs that the pod gets while `free` ones are; of those that suit it: `suiting`, which are
// free, its links, and its neighbours as in ChooseSuiting. With several containers they are chosen
// one container after the other, and all sets are examined only if what comes of it does not suit
// the pod (up to 8 free GPUs). Requires: KubeletLimits.
AlignedChoice ChooseAligned(const Node& node, GpuMask free, GpuMask suiting,
                            const RequestShape& shape, std::span<const GpuMask> tenants = {});

// The GPUs of `free` from which the kubelet gives the pod some: with several containers, all of
// `free` if they are admitted. 0: it refuses the pod. Requires: KubeletLimits.
GpuMask AlignedGpus(const NodeSpec& spec, GpuMask free, const RequestShape& shape);

// Whether the kubelet would refuse the pod even if all of these GPUs were free. Requires:
// KubeletLimits.
bool NeverAdmits(const NodeSpec& spec, GpuMask gpus, const RequestShape& shape);

// "needs 6 in one NUMA node (Topology Manager policy single-numa-node; at most 4 idle in one)".
// Requires: KubeletLimits.
std::string AlignmentText(const NodeSpec& spec, GpuMask free, const RequestShape& shape);

}  // namespace berth
