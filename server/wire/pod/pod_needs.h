// SPDX-License-Identifier: Apache-2.0
//
// What a pod says that it needs of its GPUs, beside how many or how much of them:
//
//   berth.dev/isolation: hardware | memory | none     (RequestShape::isolation)
//   berth.dev/min-gpu-memory-gib: "24"                with whole GPUs (nvidia.com/gpu): memory of
//                                                     each, or of the part that stands for one
#pragma once

#include <string_view>

#include "base/result.h"
#include "cluster/values/pod_request.h"
#include "server/wire/pod/pod_parts.h"

namespace berth::wire {

[[nodiscard]] bool IsGpuNeedKey(std::string_view key);

// Reads one of the annotations. Error: kInvalidArgument "want ..., got TEXT".
Status ReadGpuNeed(std::string_view key, std::string_view value, RequestShape& shape);

// Whether the needs go with what the pod asks for. Error: kInvalidArgument naming the annotation.
Status CheckGpuNeeds(const RequestShape& shape);

// What a pod with GPUs needs of its node's driver and of the GPUs (VersionNeeds):
//
//   berth.dev/min-driver: "550.54.15"
//   berth.dev/min-cuda: "12.4"                  what the driver runs at least
//   berth.dev/min-compute-capability: "9.0"

[[nodiscard]] bool IsVersionKey(std::string_view key);

// Reads the annotations into the constraints. Error: kInvalidArgument "annotation KEY: want ...".
Status ReadVersionNeeds(PodParts& parts);

}  // namespace berth::wire
