// SPDX-License-Identifier: Apache-2.0
//
// Koordinator: GPUs that its koordlet gives to containers, in parts too.
//
//   node  koordinator.sh/gpu-core     100 for each healthy GPU; koord-manager writes it by the
//         koordinator.sh/gpu-memory   Device of the node's name (koordinator_links.h), the memory
//                                     of all of them in bytes
//   pod   resources koordinator.sh/gpu, gpu-core, gpu-memory, ... (below)
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

#include <array>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "server/wire/pod/dialect.h"
#include "server/wire/pod/pod_parts.h"
#include "server/wire/pod/recorded_devices.h"

namespace berth::dialects {

// How pods ask for GPUs in Koordinator's words. The containers' amounts add up first, and the sum
// is read:
//
//   koordinator.sh/gpu: P                                P percent of compute and memory, alone
//   koordinator.sh/gpu-memory-ratio: P                   P percent of the memory
//   koordinator.sh/gpu-memory: M                         M bytes of the memory of one GPU
//   koordinator.sh/gpu-core: C  beside one of these two  C percent of the compute
//   koordinator.sh/gpu.shared: N  beside them            all of it on N GPUs, an Nth on each
//
// Without gpu.shared P is up to 100, a part of one GPU, or N times 100, which are N GPUs. What is
// given:
//
//   100 percent of the memory of each of N GPUs (with as much compute, or without)   whole GPUs
//   other percent of each, or memory, with or without compute                        shares
//
// All containers of a pod have the same GPUs. What Koordinator's scheduler refuses is refused, and
// beyond that percent that are no whole thousandths of each of several GPUs. (koordinator at
// 138d457, pkg/scheduler/plugins/deviceshare/utils.go and devicehandler_gpu.go.)

// NodeSpec::agent_lacks of a node without its Device.
inline constexpr std::string_view kKoordinatorNoDevice =
    "has no Device of Koordinator: run koordlet there with its gate Accelerators";
inline constexpr std::string_view kKoordinatorAgent = "koordinator";

inline constexpr std::string_view kKoordinatorGpu = "koordinator.sh/gpu";
inline constexpr std::string_view kKoordinatorCore = "koordinator.sh/gpu-core";
inline constexpr std::string_view kKoordinatorMemory = "koordinator.sh/gpu-memory";
inline constexpr std::string_view kKoordinatorRatio = "koordinator.sh/gpu-memory-ratio";
inline constexpr std::string_view kKoordinatorShared = "koordinator.sh/gpu.shared";
inline constexpr std::array kKoordinatorResources = {
    kKoordinatorGpu, kKoordinatorCore, kKoordinatorMemory, kKoordinatorRatio, kKoordinatorShared};

// The annotations by which its users choose GPUs: Berth does not read them.
inline constexpr std::array<std::string_view, 3> kKoordinatorChoices = {
    "scheduling.koordinator.sh/device-allocate-hint",
    "scheduling.koordinator.sh/device-joint-allocate",
    "scheduling.koordinator.sh/gpu-partition-spec"};

// Adds so much of one of the resources. Requires: it is one of them.
void AddKoordinatorAsk(std::string_view resource, std::int64_t amount, wire::ResourceAsk& ask);

// Makes GPUs, or shares of them, of what the containers ask for. Error: kInvalidArgument with the
// resource.
Status FindKoordinatorShares(wire::PodParts& parts);

// What the containers ask for together, before FindKoordinatorShares, in whose words ever: koordlet
// serves them all. Also where Koordinator's scheduler would refuse it.
wire::RecordedAsk KoordinatorAskOf(const wire::PodParts& asked);

// Error: kInvalidArgument with the annotation.
Status RefuseKoordinatorChoices(const wire::PodParts& parts);

std::unique_ptr<const wire::Dialect> MakeKoordinator();

}  // namespace berth::dialects
