// SPDX-License-Identifier: Apache-2.0
//
// How pods ask HAMi's and Volcano's agents for a part of a GPU: a number of GPUs, and of each of
// them memory in MiB or in percent, and compute in percent ("cores"), per container.
//
//   GPUs, memory             that much memory of each; compute goes with it
//   GPUs, memory, cores      both
//   GPUs, percent            of the memory of each; compute goes with it
//   GPUs, percent, cores     both
//   GPUs, cores              all of the memory, so whole GPUs
//   GPUs alone               whole ones
//
// Several GPUs of one container are different ones. Of several containers each has its part of the
// same GPUs, so all of them ask for as many. (HAMi at c447cab, pkg/device/nvidia/device.go; volcano
// at 011c6dc, pkg/scheduler/api/devices/nvidia/vgpu/utils.go. Their schedulers may give each
// container other GPUs.)
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "server/wire/pod/pod_parts.h"
#include "server/wire/pod/recorded_devices.h"

namespace berth::dialects {

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

// The parts of such a list, without blanks; none of an annotation that is not there. Error:
// kInvalidArgument with the key, beyond wire::kMostListed.
Result<std::set<std::string>> ListIn(const wire::PodParts& parts, std::string_view key);

// Makes shares of the parts that containers ask for in these words. Error: kInvalidArgument with
// the container and the resource.
Status FindVgpuShares(const VgpuWords& words, wire::PodParts& parts);

// What the container asks for in these words, before FindVgpuShares. Also where Berth refuses it.
wire::RecordedAsk VgpuAskOf(const VgpuWords& words, const wire::ContainerSpec& container);

}  // namespace berth::dialects
