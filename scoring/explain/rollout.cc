// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/rollout.h"

#include "cluster/values/pod_record.h"
#include "scoring/admission.h"
#include "scoring/registry.h"

namespace berth {

std::optional<RolloutBlock> FindRolloutBlock(const Snapshot& snapshot, const PodRequest& pod,
                                             std::string_view replica_set) {
  const PodLife own{.replica_set = std::string(replica_set)};
  if (replica_set.empty() || !pod.gang.empty()) return std::nullopt;
  const auto is_older = [&](const PodRecord& held) {
    return held.life.deployment() == own.deployment() && held.life.replica_set != replica_set &&
           held.pod.id.namespace_name == pod.id.namespace_name && !held.leaving;
  };
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    for (const auto& held : node.pods()) {
      if (!is_older(*held) || Admits(node.spec(), pod) != Reason::kFits) continue;
      const auto ends = [&held](const PodRecord& one) { return one.pod.id == held->pod.id; };
      if (!Fits(node.Without(ends), pod.shape)) continue;
      return RolloutBlock{std::string(own.deployment()), held->pod.id.full_name(),
                          node.spec().name};
    }
  }
  return std::nullopt;
}

}  // namespace berth
