// SPDX-License-Identifier: Apache-2.0
#include "server/extender/evictions.h"

#include <algorithm>
#include <utility>

namespace berth {

void Evictions::Agree(const std::string& pod_uid, std::vector<NodeVictims> nodes) {
  const MutexLock lock(mutex_);
  const auto [agreed, is_new] = by_pod_.insert_or_assign(pod_uid, Agreed{std::move(nodes), 0});
  (void)agreed;
  if (!is_new) return;
  order_.push_back(pod_uid);
  if (order_.size() <= kMostPods) return;
  by_pod_.erase(order_.front());
  order_.pop_front();
}

bool Evictions::Awaited(const std::string& pod_uid, const Snapshot& snapshot,
                        std::span<const NodeIndex> candidates) {
  const MutexLock lock(mutex_);
  const auto found = by_pod_.find(pod_uid);
  if (found == by_pod_.end() || found->second.times >= kMostTimes) return false;
  const bool awaited = std::ranges::any_of(found->second.nodes, [&](const NodeVictims& victims) {
    const NodeIndex index = snapshot.names().Find(victims.node);
    if (index == kNoNode || std::ranges::find(candidates, index) == candidates.end()) return false;
    return std::ranges::any_of(victims.uids, [&](const std::string& uid) {
      return snapshot.node(index).FindPod(uid) != nullptr;
    });
  });
  if (awaited) ++found->second.times;
  return awaited;
}

void Evictions::Forget(const std::string& pod_uid) {
  const MutexLock lock(mutex_);
  if (by_pod_.erase(pod_uid) > 0) std::erase(order_, pod_uid);
}

}  // namespace berth
