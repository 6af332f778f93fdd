// SPDX-License-Identifier: Apache-2.0
//
// How many pods of one shape a node has room for. Pure function.
#pragma once

#include "cluster/node.h"
#include "cluster/pod_request.h"

namespace berth {

// Placed one after the other, as far as devices, CPU and memory go; 0 where a filter objects to the
// first. At most kMostPods, for a pod that asks for nothing.
constexpr int kMostPods = 1 << 16;
int PodsThatFit(const Node& node, const RequestShape& shape);

}  // namespace berth
