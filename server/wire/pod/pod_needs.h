// SPDX-License-Identifier: Apache-2.0
//
// What a pod says that it needs of its GPUs, beside how many or how much of them:
//
//   berth.dev/isolation: hardware | memory | none     (RequestShape::isolation)
//   berth.dev/min-gpu-memory-gib: "24"                with whole GPUs (nvidia.com/gpu): memory of
//                                                     each, or of the part that stands for one
#pragma once

#include <cstdint>
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
Status ReadVersionNeeds(PodParts& parts, PodRequest&);

// What a pod is one run of (PodRequest::series): the kind and the name of its controller, or its
// own name where it has none, without what each run has anew. nightly-28374650 of a CronJob,
// train-x7k2p of a template and sweep-3 are runs of nightly, train and sweep.

// The name without its last parts, joined by "-", "." or "_", that are numbers or look drawn: five
// characters out of those that Kubernetes draws from, or five and more with digits in several
// places. Nor has it a number at its end. "": nothing is left.
std::string_view StemOf(std::string_view name);

// 0: it does not end with its work.
std::uint64_t SeriesOf(const PodParts& parts);

// How long a pod runs, by its own word: the annotation berth.dev/expected-duration.
inline constexpr std::string_view kExpectedDurationKey = "berth.dev/expected-duration";

// "2h30m", "45m", "3d": whole numbers of d, h, m and s, each at most once and in this order; from a
// second to 365 days. In seconds. Error: kInvalidArgument naming the annotation.
Result<std::int64_t> ReadExpectedDuration(std::string_view text);

// How a pod spreads (RequestShape::spread), and which pods are of its workload:
//
//   berth.dev/spread: card | node
//   berth.dev/spread-by: LABEL     the pods of its namespace with the value that it has itself of
//                                  that label; without it those of its controller, and for a pod
//                                  that has none those with the same labels

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
