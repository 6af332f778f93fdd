// SPDX-License-Identifier: Apache-2.0
//
// The text by which a pod has its GPUs, or parts of them, from HAMi's and from Volcano's agent:
//
//   GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,3000,30:;;GPU-a,NVIDIA,5000,0:
//
// A segment per container, with "UUID,vendor,MiB,cores:" per device. Cores are percent of the GPU's
// compute; 0: no part of its own. HAMi ends each segment by ";", Volcano has it between them.
// (HAMi at 0269521, Project-HAMi/volcano-vgpu-device-plugin at 0798272: pkg/util/util.go.)
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/node/node.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"
#include "server/wire/pod/dialect.h"
#include "server/wire/pod/pod_object.h"
#include "server/wire/pod/pod_parts.h"
#include "server/wire/pod/recorded_devices.h"

namespace berth::dialects {

// How pods ask HAMi's and Volcano's agents for a part of a GPU: a number of GPUs, and of each of
// them memory in MiB or in percent, and compute in percent ("cores"), per container.
//
//   GPUs, memory             that much memory of each; compute goes with it, or as "cores" say
//   GPUs, percent            of the memory of each; compute in the same way
//   GPUs, cores              all of the memory, so whole GPUs
//   GPUs alone               whole ones
//
// Several GPUs of one container are different ones. Each container may have other GPUs; of more
// than kMostGpuSteps all have their parts of the same, and ask for as many. Both schedulers go from
// container to container, and give up where one finds no room (unlike container_shares.h). (HAMi at
// c447cab, pkg/device/nvidia/device.go, and at 059a8cc, pkg/scheduler/score.go; volcano at 011c6dc,
// pkg/scheduler/api/devices/nvidia/vgpu/utils.go.)

// The resources of one agent.
struct VgpuWords {
  std::string_view agent;  // NodeSpec::share_agent
  std::string_view number, memory, percent, cores;
};

// Adds so much of words.memory, words.percent or words.cores.
void AddVgpuAsk(const VgpuWords& words, std::string_view resource, std::int64_t amount,
                wire::ResourceAsk& ask);

// Reads lists of UUIDs, "GPU-a,GPU-b", of annotations: GPUs that are accepted, and that are not.
// Error: as ListIn.
Status ReadVgpuUuids(const wire::PodParts& parts, std::string_view use_key,
                     std::string_view nouse_key, RequestShape& shape);

// The parts of such a list, without blanks. Error: kInvalidArgument beyond wire::kMostListed.
Result<std::set<std::string>> ListIn(const wire::PodParts& parts, std::string_view key);

// Makes shares of the parts that containers ask for in these words. Error: kInvalidArgument with
// the container and the resource.
Status FindVgpuShares(const VgpuWords& words, wire::PodParts& parts);

// What the container asks for in these words, refused or not. Requires: before FindVgpuShares.
wire::RecordedAsk VgpuAskOf(const VgpuWords& words, const wire::ContainerSpec& container);

// One device of one container.
struct VgpuDevice {
  int container = 0;  // among all of the pod, init containers first
  std::string uuid;
  std::int64_t memory = 0;  // in units of the agent (GpuSpec::unit_mib)
  int cores = 0;
};

// The GPUs of the placement and parts of them. Requires: GPUs that the node has.
std::vector<VgpuDevice> VgpuDevicesOf(const PodRequest& pod, const Placement& placement,
                                      const NodeSpec& node);

// The devices of one container, "" without any.
std::string VgpuSegment(const std::vector<VgpuDevice>& devices, int container);

// Reads the text into the placement, as named grants (cluster/node/given_grants.h): the GPUs of
// each container's segment, with what that container asks for in these words (recorded_devices.h).
// A text with a segment for each main container alone has none for init containers. Error:
// kInvalidArgument with the device or the container.
Status ReadVgpuDevices(const VgpuWords& words, std::string_view text, const wire::PodParts& asked,
                       wire::ObservedPod& observed);

// "NVIDIA-H100-80GB-HBM3" of a register's "NVIDIA-NVIDIA H100 80GB HBM3".
std::string GfdNameOf(std::string type);

// Keeps each GPU of a register once, and at most kMaxGpusPerNode. Then closes as many as the
// kubelet has fewer devices of, which learns it before the register does; all where it has none.
// Requires: draft.shared.
void CountRegistered(std::int64_t allocatable, wire::GpuDraft& draft);

}  // namespace berth::dialects
