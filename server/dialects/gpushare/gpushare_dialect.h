// SPDX-License-Identifier: Apache-2.0
//
// gpushare: GPUs that AliyunContainerService's gpushare-device-plugin hands out by memory. It keeps
// nobody to their part.
//
//   node  aliyun.com/gpu-count   GPUs, all alike
//         aliyun.com/gpu-mem     the memory of all of them together, in units
//   pod   aliyun.com/gpu-mem     units of one GPU, of one main container: the plugin compares what
//                                a container asks for with the whole pod. One with more than one
//                                aliyun.com/gpu-count beside it is refused: the plugin gives a pod
//                                one GPU
//   pod   what its scheduler writes, and Berth with the Binding:
//         ALIYUN_COM_GPU_MEM_IDX             index of the GPU
//         ALIYUN_COM_GPU_MEM_DEV, _POD       units of that GPU, and of the pod
//         ALIYUN_COM_GPU_MEM_ASSUME_TIME     unix nanoseconds of the decision
//         ALIYUN_COM_GPU_MEM_ASSIGNED        "false"; "true" by the plugin
//
// A unit is a GiB, or a MiB where the plugin runs with --memory-unit=MiB (gpushare.memoryUnit in
// the configuration). Asked for so many units, the plugin takes the pod of its node with the oldest
// assume time that asks for as many, whichever pod it was asked for: one pod at a time may be on
// its way to its GPU (server/dialects/one_at_a_time.h). (gpushare-device-plugin at 0f2eade,
// pkg/gpu/nvidia/allocate.go; gpushare-scheduler-extender v0.2.0, pkg/utils/const.go.)
#pragma once

#include <memory>

#include "config/config.h"
#include "server/dialects/one_at_a_time.h"
#include "server/wire/pod/dialect.h"

namespace berth::dialects {

std::unique_ptr<const wire::Dialect> MakeGpushare(const GpushareConfig& config);

// How a pod shows that the plugin has not served it yet.
Handover GpushareHandover();

}  // namespace berth::dialects
