// SPDX-License-Identifier: Apache-2.0
//
// KubeChoice: the node that kube-scheduler chooses among those that an extender lets pass.
//
//   score = weight * 10 * priority of the extender (0..10)
//         + NodeResourcesFit, 0..100: the mean over resources of the part that is free once the pod
//           is there (LeastAllocated: CPU and memory), or in use (MostAllocated: CPU and memory,
//           and GPUs five times for a pod that wants some)
//         + NodeResourcesBalancedAllocation: 100 * (1 - half the difference of the parts of CPU and
//           memory in use)
//
// in whole points, as Kubernetes 1.36 counts them; the highest wins, drawn among equals.
// LeastAllocated is the default. MostAllocated has the weights that test/e2e/replay gives a real
// kube-scheduler. The other scoring plugins give equal scores to nodes without labels, taints and
// images. Of many nodes kube-scheduler looks at a part (percentageOfNodesToScore); here at all.
#pragma once

#include <cstdint>
#include <span>

#include "base/random.h"
#include "cluster/state/snapshot.h"

namespace berth::replay {

enum class KubeStrategy { kLeastAllocated, kMostAllocated };  // of NodeResourcesFit

class KubeChoice {
 public:
  KubeChoice(int extender_weight, std::uint64_t seed,
             KubeStrategy strategy = KubeStrategy::kLeastAllocated)
      : weight_(extender_weight), strategy_(strategy), random_(seed) {}

  // Requires: a priority per candidate, and at least one.
  NodeIndex Choose(const Snapshot& snapshot, const RequestShape& pod,
                   std::span<const NodeIndex> candidates, std::span<const std::uint8_t> priorities);

  // Of the plugins of kube-scheduler alone.
  [[nodiscard]] static std::int64_t OwnScore(const Node& node, const RequestShape& pod,
                                             KubeStrategy strategy = KubeStrategy::kLeastAllocated);

 private:
  const int weight_;
  const KubeStrategy strategy_;
  Random random_;
};

}  // namespace berth::replay
