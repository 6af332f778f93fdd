// SPDX-License-Identifier: Apache-2.0
#include "server/extender/evictions.h"

#include <algorithm>
#include <utility>

namespace berth {
void Evictions::Agree(const std::string& pod_uid, std::vector<NodeVictims> nodes) {
  std::size_t uids = 0;
  for (const NodeVictims& victims : nodes) uids += victims.uids.size();
  const MutexLock lock(mutex_);
  by_pod_.Put(pod_uid, {std::move(nodes), 0}, uids);
}

Evictions::Agreed* Evictions::StillThere(const std::string& pod_uid, const Snapshot& snapshot) {
  Agreed* const agreed = by_pod_.Find(pod_uid);
  if (agreed == nullptr || agreed->times >= kMostTimes) return nullptr;
  const bool all = std::ranges::all_of(agreed->nodes, [&](const NodeVictims& victims) {
    const NodeIndex index = snapshot.names().Find(victims.node);
    return index != kNoNode && std::ranges::any_of(victims.uids, [&](const std::string& uid) {
             return snapshot.node(index).FindPod(uid) != nullptr;
           });
  });
  if (all) return agreed;
  by_pod_.Erase(pod_uid);
  return nullptr;
}

bool Evictions::Awaited(const std::string& pod_uid, const Snapshot& snapshot,
                        std::span<const NodeIndex> candidates) {
  const MutexLock lock(mutex_);
  Agreed* const agreed = StillThere(pod_uid, snapshot);
  if (agreed == nullptr) return false;
  const bool awaited = std::ranges::any_of(agreed->nodes, [&](const NodeVictims& victims) {
    return std::ranges::find(candidates, snapshot.names().Find(victims.node)) != candidates.end();
  });
  if (awaited) ++agreed->times;
  return awaited;
}

bool Evictions::AwaitedElsewhere(const std::string& pod_uid, const Snapshot& snapshot,
                                 std::span<const NodeVictims> asked) {
  const MutexLock lock(mutex_);
  Agreed* const agreed = StillThere(pod_uid, snapshot);
  if (agreed == nullptr) return false;
  const bool asked_again = std::ranges::any_of(agreed->nodes, [&](const NodeVictims& victims) {
    return std::ranges::find(asked, victims.node, &NodeVictims::node) != asked.end();
  });
  if (!asked_again) ++agreed->times;
  return !asked_again;
}

NodeVictims Evictions::AgreedOn(const std::string& pod_uid, const std::string& node) {
  const MutexLock lock(mutex_);
  const Agreed* const agreed = by_pod_.Find(pod_uid);
  if (agreed == nullptr) return {node, {}};
  const auto victims = std::ranges::find(agreed->nodes, node, &NodeVictims::node);
  return victims == agreed->nodes.end() ? NodeVictims{node, {}} : *victims;
}

void Evictions::Forget(const std::string& pod_uid) {
  const MutexLock lock(mutex_);
  by_pod_.Erase(pod_uid);
}

}  // namespace berth
