// SPDX-License-Identifier: Apache-2.0
//
// Crowding: how many pods of a workload are already where one more of it would go. A pod that
// spreads (RequestShape::spread) goes where that is least, so that the loss of one GPU, or of one
// node, takes few of them. It is no condition: where every place has one, they share. Pure
// functions.
#pragma once

#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"
#include "topology/gpu_mask.h"

namespace berth {

// Pods of the workload that have a part of GPU `gpu`, or a place on it, told to end or not; 0 for a
// shape that does not spread over GPUs.
int CrowdOnGpu(const Node& node, int gpu, const RequestShape& shape);

// The same on as many of the GPUs as the pod needs, the least crowded: of these on the most crowded
// one. Requires: there are as many.
int CrowdOnGpus(const Node& node, GpuMask gpus, const RequestShape& shape);

// Pods of the workload that the next one would share with: on the GPU with the fewest of those that
// it could get a share of (of several GPUs on the most crowded of these); on the node, if it
// spreads over nodes, or if it is not Berth that chooses the GPU (places, MIG devices). 0 for a
// shape that does not spread, and for whole GPUs, which are never shared, over GPUs. Requires: the
// shape fits the node.
int CrowdOn(const Node& node, const RequestShape& shape);

}  // namespace berth
