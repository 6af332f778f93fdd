// SPDX-License-Identifier: Apache-2.0
#include "server/kube/embedded_cluster.h"

namespace berth {

Status EmbeddedCluster::Bind(const PodRequest& pod, const Placement& placement) {
  const std::string name = pod.id.namespace_name + "/" + pod.id.name;
  const MutexLock lock(mutex_);
  const auto [entry, is_new] = by_name_.try_emplace(name, Bound{pod.id.uid, placement.node});
  if (is_new) return {};
  const Bound& bound = entry->second;
  if (bound.uid != pod.id.uid) {
    return Fail(Errc::kConflict,
                "pod " + name + " has the UID " + bound.uid + ", not " + pod.id.uid);
  }
  if (bound.node != placement.node) {
    return Fail(Errc::kConflict, "pod " + name + " is already assigned to node " + bound.node);
  }
  return {};
}

}  // namespace berth
