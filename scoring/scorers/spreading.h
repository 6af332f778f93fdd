// SPDX-License-Identifier: Apache-2.0
//
// Spreading: prefers the node that stays emptiest.
//
//   score = 100 * mean over CPU, memory and (for a pod with GPUs) GPU compute of left / capacity,
//           each between 0 and 1; a resource that the node does not have has no part in the mean
//
// The strategy LeastAllocated of kube-scheduler's plugin NodeResourcesFit with equal weights
// (k8s.io/kubernetes pkg/scheduler/framework/plugins/noderesources/least_allocated.go), truncated
// once at the end instead of per resource.
#pragma once

#include "scoring/scorer.h"

namespace berth {

class Spreading final : public Scorer {
 public:
  void Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override;
};

}  // namespace berth
