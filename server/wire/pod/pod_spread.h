// SPDX-License-Identifier: Apache-2.0
//
// How a pod spreads (RequestShape::spread), and which pods are of its workload:
//
//   berth.dev/spread: card | node
//   berth.dev/spread-by: LABEL     the pods of its namespace with the value that it has itself of
//                                  that label; without it those of its controller, and for a pod
//                                  that has none those with the same labels
#pragma once

#include <string_view>

#include "base/result.h"
#include "cluster/values/pod_request.h"
#include "server/wire/pod/pod_parts.h"

namespace berth::wire {

[[nodiscard]] bool IsSpreadKey(std::string_view key);

// Reads the annotations into the shape. Error: kInvalidArgument "annotation KEY: want ...".
Status ReadSpread(const PodParts& parts, RequestShape& shape);

// Makes the pod spread by its controller, as those do who ask in other words.
void SpreadByController(const PodParts& parts, Spread spread, RequestShape& shape);

// Beside which pods of its namespace a pod's GPUs are to be (RequestShape::neighbours):
//
//   berth.dev/near: KEY=VALUE, KEY!=VALUE, KEY, !KEY     all of these hold for their labels
//   berth.dev/far: the same
[[nodiscard]] bool IsNeighbourKey(std::string_view key);

// Reads the annotations into the shape; of a pod without GPUs they say nothing. Error:
// kInvalidArgument "annotation KEY: want ...".
Status ReadNeighbours(const PodParts& parts, RequestShape& shape);

}  // namespace berth::wire
