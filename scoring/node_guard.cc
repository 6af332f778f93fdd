// SPDX-License-Identifier: Apache-2.0
#include "scoring/node_guard.h"

#include <algorithm>
#include <string_view>

#include "scoring/priority.h"

namespace berth {

bool IsGpuNode(const NodeSpec& node) {
  return !node.gpus.empty() || node.places.count > 0 || node.mig.known();
}

int UnguardedGpuNodes(const Snapshot& snapshot) {
  constexpr std::string_view kConditions = "node.kubernetes.io/";
  int unguarded = 0;
  for (NodeIndex node = 0; node < snapshot.size(); ++node) {
    const NodeSpec& spec = snapshot.node(node).spec();
    const bool tainted = std::ranges::any_of(
        spec.taints, [&](const Taint& taint) { return !taint.key.starts_with(kConditions); });
    if (IsGpuNode(spec) && !tainted) ++unguarded;
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
