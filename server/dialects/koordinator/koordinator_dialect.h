// SPDX-License-Identifier: Apache-2.0
//
// Koordinator: GPUs that its koordlet gives to containers, in parts too.
//
//   node  koordinator.sh/gpu-core     100 for each healthy GPU; koord-manager writes it by the
//         koordinator.sh/gpu-memory   Device of the node's name (koordinator_links.h), the memory
//                                     of all of them in bytes
//   pod   resources koordinator.sh/gpu, gpu-core, gpu-memory, ... (koordinator_ask.h)
//   pod   what its scheduler writes, and Berth with the Binding:
//         scheduling.koordinator.sh/device-allocated
//           {"gpu": [{"minor": 0, "id": "GPU-a",
//                     "resources": {"koordinator.sh/gpu-core": "50",
//                                   "koordinator.sh/gpu-memory": "40960Mi",
//                                   "koordinator.sh/gpu-memory-ratio": "50"}}], "rdma": ..}
//         scheduling.koordinator.sh/gpu-minors      0,1
//         scheduling.koordinator.sh/bind-timestamp  unix nanoseconds
//
// Core and ratio are percent of a GPU; the minor is taken as the index, as of its Devices. The core
// is left out where none was asked for. koordlet reads the annotation of the very pod and sets
// NVIDIA_VISIBLE_DEVICES of all its containers, whatever they ask for: so pods with nvidia.com/gpu
// and with Berth's shares get theirs too. It keeps a pod to its part if the pod has the label
// koordinator.sh/gpu-isolation-provider: HAMi-core, and nobody else: the node isolates nothing.
//
// Nodes with GPUs of other vendors than NVIDIA are Koordinator's scheduler's: their device plugins
// want more. (koordinator at 0cbedd6, apis/extension/device_share.go; 39d7596,
// pkg/koordlet/runtimehooks/hooks/gpu/gpu.go; 09cc5f5,
// pkg/scheduler/plugins/deviceshare/device_plugin_adapter.go; 1e368c2,
// pkg/slo-controller/noderesource/plugins/gpudeviceresource/plugin.go.)
#pragma once

#include <memory>

#include "server/wire/pod/dialect.h"

namespace berth::dialects {

std::unique_ptr<const wire::Dialect> MakeKoordinator();

}  // namespace berth::dialects
