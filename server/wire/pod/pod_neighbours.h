// SPDX-License-Identifier: Apache-2.0
//
// Beside which pods of its namespace a pod's GPUs are to be (RequestShape::neighbours):
//
//   berth.dev/near: KEY=VALUE, KEY!=VALUE, KEY, !KEY     all of these hold for their labels
//   berth.dev/far: the same
#pragma once

#include <string_view>

#include "base/result.h"
#include "cluster/values/pod_request.h"
#include "server/wire/pod/pod_parts.h"

namespace berth::wire {

[[nodiscard]] bool IsNeighbourKey(std::string_view key);

// Reads the annotations into the shape; of a pod without GPUs they say nothing. Error:
// kInvalidArgument "annotation KEY: want ...".
Status ReadNeighbours(const PodParts& parts, RequestShape& shape);

}  // namespace berth::wire
