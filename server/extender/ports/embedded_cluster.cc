// SPDX-License-Identifier: Apache-2.0
#include "server/extender/ports/embedded_cluster.h"

#include <functional>
#include <string>

namespace berth {

std::size_t EmbeddedCluster::ByName::operator()(const PodId& id) const noexcept {
  const std::hash<std::string> hash;
  return hash(id.namespace_name) * 31 + hash(id.name);
}

Status EmbeddedCluster::Assign(const std::shared_ptr<const PodRecord>& pod) {
  const PodId& id = pod->pod.id;
  const MutexLock lock(mutex_);
  const auto [entry, is_new] = pods_.insert(pod);
  if (is_new) return {};
  const PodRecord& bound = **entry;
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
  const auto found = pods_.find(id);
  if (found == pods_.end() || (*found)->pod.id.uid != id.uid) {
    return Fail(Errc::kNotFound,
                "pod " + id.full_name() + " is not known: no filter call has named it");
  }
  return PodTruth{(*found)->pod, (*found)->placement};
}

}  // namespace berth
