// SPDX-License-Identifier: Apache-2.0
#include "server/extender/ports/embedded_cluster.h"

namespace berth {

Status EmbeddedCluster::Assign(const std::shared_ptr<const PodRecord>& pod) {
  const PodId& id = pod->pod.id;
  const MutexLock lock(mutex_);
  const auto [entry, is_new] = pods_.try_emplace(id.full_name(), pod);
  if (is_new) return {};
  const PodRecord& bound = *entry->second;
  if (bound.pod.id.uid != id.uid) {
    return Fail(Errc::kConflict,
                "pod " + id.full_name() + " has the UID " + bound.pod.id.uid + ", not " + id.uid);
  }
  if (bound.placement.node != pod->placement.node) {
    return Fail(Errc::kConflict,
                "pod " + id.full_name() + " is already assigned to node " + bound.placement.node);
  }
  return {};
}

Result<PodTruth> EmbeddedCluster::Find(const PodId& id) {
  const MutexLock lock(mutex_);
  const auto found = pods_.find(id.full_name());
  if (found == pods_.end() || found->second->pod.id.uid != id.uid) {
    return Fail(Errc::kNotFound,
                "pod " + id.full_name() + " is not known: no filter call has named it");
  }
  return PodTruth{found->second->pod, found->second->placement};
}

}  // namespace berth
