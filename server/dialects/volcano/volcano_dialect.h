// SPDX-License-Identifier: Apache-2.0
//
// Volcano's vGPU: GPUs that volcano-vgpu-device-plugin hands out in parts, by HAMi-core.
//
//   node  volcano.sh/node-vgpu-register
//         GPU-a,10,81920,NVIDIA-NVIDIA A100-SXM4-80GB,true,hami-core:GPU-b,...:
//         per GPU, by index: UUID, how many pods it serves, MiB, type, healthy, mode. Of another
//         mode (mig, mps) Berth gives none.
//   pod   resources volcano.sh/vgpu-number with -memory, -memory-percentage, -cores
//         (vgpu/vgpu_devices.h), of main containers: the plugin serves no others
//   pod   annotations volcano.sh/vgpu-use-gpuuuid: GPU-a,GPU-b and vgpu-nouse-gpuuuid: GPU-c, and
//         those of HAMi (hami/hami_dialect.h)
//   pod   what Volcano's scheduler writes, and Berth with the Binding:
//         volcano.sh/vgpu-node, volcano.sh/vgpu-time     node and unix seconds of the decision
//         volcano.sh/vgpu-ids-new                        vgpu/vgpu_devices.h, a segment per main
//                                                        container with ";" between them
//         volcano.sh/devices-to-allocate                 the same; the plugin empties the segments
//         volcano.sh/bind-phase, volcano.sh/bind-time    "allocating", then success or failed
//
// Asked for so many devices, the plugin takes the pod of its node with the oldest vgpu-time that
// has as many left to allocate, whichever pod it was asked for: one pod at a time may be on its way
// to its devices (server/dialects/one_at_a_time.h). (Project-HAMi/volcano-vgpu-device-plugin at
// 0798272, pkg/util/util.go.)
#pragma once

#include <memory>
#include <string_view>

#include "server/dialects/one_at_a_time.h"
#include "server/wire/pod/dialect.h"

namespace berth::dialects {

inline constexpr std::string_view kVolcanoAgent = "volcano";

std::unique_ptr<const wire::Dialect> MakeVolcano();

// How a pod shows that the plugin has not served it yet.
Handover VolcanoHandover();

}  // namespace berth::dialects
