// SPDX-License-Identifier: Apache-2.0
#include "scoring/node_guard.h"

#include <algorithm>

#include "scoring/priority.h"

namespace berth {

bool IsGpuNode(const NodeSpec& node) { return node.has_gpus() || node.gpus_to_come; }

int UnguardedGpuNodes(const Snapshot& snapshot) {
  int unguarded = 0;
  for (NodeIndex node = 0; node < snapshot.size(); ++node) {
    const NodeSpec& spec = snapshot.node(node).spec();
    if (IsGpuNode(spec) && std::ranges::all_of(spec.taints, IsOfCondition)) ++unguarded;
  }
  return unguarded;
}

std::vector<std::uint8_t> GuardedPriorities(const Snapshot& snapshot,
                                            std::span<const NodeIndex> candidates) {
  std::vector<std::uint8_t> priorities(candidates.size());
  std::ranges::transform(candidates, priorities.begin(), [&](NodeIndex node) {
    return IsGpuNode(snapshot.node(node).spec()) ? std::uint8_t{0} : std::uint8_t{kMaxPriority};
  });
  const bool any = std::ranges::find(priorities, kMaxPriority) != priorities.end();
  return any ? priorities : std::vector<std::uint8_t>();
}

}  // namespace berth
