// SPDX-License-Identifier: Apache-2.0
//
// Why a node has no GPUs that are linked as a pod asks, in numbers: for logs. What filter answers
// is the constant text of the reason (reason.h).
#pragma once

#include <string>

#include "cluster/node.h"
#include "cluster/pod_request.h"

namespace berth {

// "needs 4 linked GPUs; 4 free, largest linked set 2", "needs 4 GPUs of one NUMA group; 5 free, at
// most 3 of one", "needs a ring of 100 GB/s through 4 GPUs; 6 free, best ring 25 GB/s"; the first
// of them that is not met alone, else that they are not met together. "" where the node has such
// GPUs free, or the pod asks for none.
std::string LinkShortage(const Node& node, const RequestShape& shape);

}  // namespace berth
