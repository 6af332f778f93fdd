// SPDX-License-Identifier: Apache-2.0
//
// What became of a pod's wishes for links, in numbers: for logs and metrics. What filter answers is
// the constant text of a reason (reason.h).
#pragma once

#include <optional>
#include <string>

#include "cluster/node.h"
#include "cluster/placement.h"
#include "cluster/pod_request.h"

namespace berth {

// "needs 4 linked GPUs; 4 free, largest linked set 2", "needs 4 GPUs of one NUMA group; 5 free, at
// most 3 of one", "needs a ring of 100 GB/s through 4 GPUs; 6 free, best ring 25 GB/s"; the first
// of them that is not met alone, else that they are not met together. "" where the node has such
// GPUs free, or the pod asks for none.
std::string LinkShortage(const Node& node, const RequestShape& shape);

// The quality of the GPUs of the placement relative to the best that were idle (GpuLinks::quality),
// 0..1. nullopt for fewer than two GPUs or a share, and where the links are not known. `node`: as
// it was when the decision was made.
std::optional<double> LinkQualityRatio(const Node& node, const Placement& placement);

}  // namespace berth
