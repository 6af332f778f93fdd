// SPDX-License-Identifier: Apache-2.0
//
// Division of a pod's whole GPUs among its containers on a node whose Topology Manager limits what
// each of them gets (topology_manager.h). On other nodes: GrantsByContainer. Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"
#include "topology/gpu_mask.h"

namespace berth {

// Whether the node's kubelet limits which whole GPUs pods of that shape get: it has a policy, and
// the NUMA nodes of its GPUs are known from the node itself (not from the catalogue of products,
// since a machine may be set up otherwise). Not where a vendor's agent hands GPUs out in parts.
bool KubeletLimits(const NodeSpec& spec, const RequestShape& shape);

// What the containers ask for, one after the other: RequestShape::gpu_steps, or one step if these
// are empty or do not add up to what the pod asks for.
std::vector<GpuStep> StepsOf(const RequestShape& shape);

// What each step has of `gpus`; GPUs that one container leaves to the next are in both. If the
// kubelet can give the pod this set, it gives it so, up to GPUs of one NUMA node that change
// places. nullopt: it cannot. Requires: KubeletLimits.
std::optional<std::vector<GpuMask>> DivideGpus(const NodeSpec& spec, const RequestShape& shape,
                                               GpuMask gpus);

// Whether the kubelet can give the pod just this set while these GPUs are free, `gpus` among them,
// if an agent names at each step those of its offer that are to be taken. Requires: KubeletLimits.
bool KubeletGives(const NodeSpec& spec, const RequestShape& shape, GpuMask free, GpuMask gpus);

}  // namespace berth
