// SPDX-License-Identifier: Apache-2.0
//
// How many pods of one shape fit a node. Pure function.
#pragma once

#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"

namespace berth {

// Placed one after the other, by devices, CPU, memory and disk; 0 if a filter refuses the first. At
// most kMostPods, for a pod that asks for nothing.
constexpr int kMostPods = 1 << 16;
int PodsThatFit(const Node& node, const RequestShape& shape);

}  // namespace berth
