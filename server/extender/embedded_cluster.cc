// SPDX-License-Identifier: Apache-2.0
#include "server/extender/embedded_cluster.h"

namespace berth {
namespace {

std::string NameOf(const PodId& id) { return id.namespace_name + "/" + id.name; }

}  // namespace

Status EmbeddedCluster::Assign(const PodRequest& pod, const Placement& placement) {
  const std::string name = NameOf(pod.id);
  const MutexLock lock(mutex_);
  const auto [entry, is_new] = by_name_.try_emplace(name, Bound{pod, placement});
  if (is_new) return {};
  const Bound& bound = entry->second;
  if (bound.pod.id.uid != pod.id.uid) {
    return Fail(Errc::kConflict,
                "pod " + name + " has the UID " + bound.pod.id.uid + ", not " + pod.id.uid);
  }
  if (bound.placement.node != placement.node) {
    return Fail(Errc::kConflict,
                "pod " + name + " is already assigned to node " + bound.placement.node);
  }
  return {};
}

Result<PodTruth> EmbeddedCluster::Find(const PodId& id) {
  const std::string name = NameOf(id);
  const MutexLock lock(mutex_);
  const auto found = by_name_.find(name);
  if (found == by_name_.end() || found->second.pod.id.uid != id.uid) {
    return Fail(Errc::kNotFound, "pod " + name + " is not known: no filter call has named it");
  }
  return PodTruth{found->second.pod, found->second.placement};
}

}  // namespace berth
