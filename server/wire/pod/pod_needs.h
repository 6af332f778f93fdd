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

namespace berth::wire {

[[nodiscard]] bool IsGpuNeedKey(std::string_view key);

// Reads one of the annotations. Error: kInvalidArgument "want ..., got TEXT".
Status ReadGpuNeed(std::string_view key, std::string_view value, RequestShape& shape);

// Whether the needs go with what the pod asks for. Error: kInvalidArgument naming the annotation.
Status CheckGpuNeeds(const RequestShape& shape);

}  // namespace berth::wire
