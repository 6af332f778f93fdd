// SPDX-License-Identifier: Apache-2.0
//
// SchedulerScore: what kube-scheduler's own plugins say of a node, in whole points, as Kubernetes
// 1.36 counts them by default (pkg/scheduler/framework/plugins/noderesources):
//
//   NodeResourcesFit, 0..100 (LeastAllocated)   the mean over CPU and memory of the part that is
//                                               free once the pod is there; a container that asks
//                                               for none counts 100 m CPU and 200 MiB
//   NodeResourcesBalancedAllocation, 0..100     100 * (1 - half the difference of the parts of CPU
//                                               and memory in use)
//
// Between nodes that Berth finds equally good it decides. The other scoring plugins give equal
// scores to nodes without preferred affinity, spreading and images. Pure functions; they look at
// the pods of the node.
#pragma once

#include <cstdint>

#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"

namespace berth {

// An amount of a node that pods ask for.
struct ResourceUse {
  std::int64_t requested = 0;  // with the pod
  std::int64_t allocatable = 0;

  [[nodiscard]] std::int64_t free_points() const;  // 0..100
  [[nodiscard]] std::int64_t used_points() const;  // the same
  [[nodiscard]] double part() const;               // in use, 0..1
};
ResourceUse CpuUse(const Node& node, const RequestShape& pod);
ResourceUse MemoryUse(const Node& node, const RequestShape& pod);

std::int64_t BalancePoints(const ResourceUse& cpu, const ResourceUse& memory);

// Requires: the pod is not on the node.
std::int64_t SchedulerScore(const Node& node, const PodRequest& pod);

}  // namespace berth
