// SPDX-License-Identifier: Apache-2.0
//
// Rollout: whether a pod waits for an older pod of its own Deployment, which waits for it. An
// update starts the new pod first (maxSurge) and ends an old one once the new one runs; where the
// old one has the room that the new one needs, both wait for good.
//
// Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"

namespace berth {

struct RolloutBlock {
  std::string deployment;  // of the pod's namespace
  std::string old_pod;     // "namespace/name": if it alone ended, the pod would fit
  std::string node;
};

// replica_set: the pod's own (PodLife). Requires: it fits no node, and nobody is evicted for it.
std::optional<RolloutBlock> FindRolloutBlock(const Snapshot& snapshot, const PodRequest& pod,
                                             std::string_view replica_set);

}  // namespace berth
