// SPDX-License-Identifier: Apache-2.0
//
// KubeChoice: the node that kube-scheduler chooses among those that an extender lets pass.
//
//   score = weight * 10 * priority of the extender (0..10)
//         + NodeResourcesFit, LeastAllocated: the mean over CPU and memory of the part that is free
//           once the pod is there, 0..100
//         + NodeResourcesBalancedAllocation: 100 * (1 - half the difference of the parts in use)
//
// in whole points, as Kubernetes 1.36 counts them by default; the highest wins, drawn among equals.
// The other scoring plugins give equal scores to nodes without labels, taints and images.
#pragma once

#include <cstdint>
#include <span>

#include "base/random.h"
#include "cluster/state/snapshot.h"

namespace berth::replay {

class KubeChoice {
 public:
  KubeChoice(int extender_weight, std::uint64_t seed) : weight_(extender_weight), random_(seed) {}

  // Requires: a priority per candidate, and at least one.
  NodeIndex Choose(const Snapshot& snapshot, const RequestShape& pod,
                   std::span<const NodeIndex> candidates, std::span<const std::uint8_t> priorities);

  // Of the plugins of kube-scheduler alone.
  [[nodiscard]] static std::int64_t OwnScore(const Node& node, const RequestShape& pod);

 private:
  const int weight_;
  Random random_;
};

}  // namespace berth::replay
