// SPDX-License-Identifier: Apache-2.0
//
// Binding in HAMi's dialect: what a pod has to carry so that HAMi's device plugin gives it the GPUs
// and parts of them, and makes the MIG devices, that it was given.
//
//   hami.io/vgpu-node, hami.io/vgpu-time     node and unix seconds of the decision
//   hami.io/vgpu-devices-to-allocate         "GPU-a,NVIDIA,9984,14:;" - a segment per container, in
//   hami.io/vgpu-devices-allocated           the order of the plugin (init containers first), each
//                                            ended by ";" (vgpu/vgpu_devices.h). The plugin empties
//                                            the segments of the first as it serves them, the
//                                            second stays.
//   hami.io/vgpu-mig-allocations             of MIG devices (hami_mig.h); containerIndex counts the
//                                            segments, deviceIndex the devices of one
//   hami.io/bind-phase, hami.io/bind-time    "allocating", until the plugin says success or failed
//
// The plugin looks for the pod by its lock on the node (hami_node_lock.h), takes the first
// segment that is not empty, and makes exactly that profile at that start. (HAMi at 31a8ae5,
// pkg/device/nvidia/mig_allocations.go; at 0269521, GetNextDeviceRequest and
// GetContainerDeviceStrArray of pkg/device-plugin/nvidiadevice/nvinternal/plugin/util.go.)
#pragma once

#include <string_view>

#include "base/clock.h"
#include "cluster/node/node.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"
#include "server/wire/pod/dialect.h"

namespace berth::dialects {

inline constexpr std::string_view kHamiDevicesAnnotation = "hami.io/vgpu-devices-allocated";

// Whether that placement has to be told in HAMi's dialect.
bool SpeaksHami(const Placement& placement, const NodeSpec& node);

// Annotations by key. Requires: SpeaksHami, and grants of devices that the node has.
wire::Annotations HamiAnnotations(const PodRequest& pod, const Placement& placement,
                                  const NodeSpec& node, WallTime now);

}  // namespace berth::dialects
