// SPDX-License-Identifier: Apache-2.0
#include "server/extender/evictions.h"

#include <algorithm>
#include <utility>

namespace berth {
namespace {

// UIDs of victims that are remembered, of all pods together: some 10 MB.
constexpr std::size_t kMostUids = 100'000;

std::size_t UidsOf(const std::vector<NodeVictims>& nodes) {
  std::size_t count = 0;
  for (const NodeVictims& victims : nodes) count += victims.uids.size();
  return count;
}

}  // namespace

void Evictions::Agree(const std::string& pod_uid, std::vector<NodeVictims> nodes) {
  const MutexLock lock(mutex_);
  const auto [agreed, is_new] = by_pod_.insert_or_assign(pod_uid, Agreed{std::move(nodes), 0});
  (void)agreed;
  if (is_new) order_.push_back(pod_uid);
  std::size_t uids = 0;
  for (const auto& [pod, victims] : by_pod_) uids += UidsOf(victims.nodes);
  while (order_.size() > kMostPods || (uids > kMostUids && order_.size() > 1)) {
    const auto oldest = by_pod_.find(order_.front());
    uids -= UidsOf(oldest->second.nodes);
    by_pod_.erase(oldest);
    order_.pop_front();
  }
}

Evictions::Agreed* Evictions::StillThere(const std::string& pod_uid, const Snapshot& snapshot) {
  const auto found = by_pod_.find(pod_uid);
  if (found == by_pod_.end() || found->second.times >= kMostTimes) return nullptr;
  const bool all = std::ranges::all_of(found->second.nodes, [&](const NodeVictims& victims) {
    const NodeIndex index = snapshot.names().Find(victims.node);
    return index != kNoNode && std::ranges::any_of(victims.uids, [&](const std::string& uid) {
             return snapshot.node(index).FindPod(uid) != nullptr;
           });
  });
  if (all) return &found->second;
  by_pod_.erase(found);
  std::erase(order_, pod_uid);
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
  const auto found = by_pod_.find(pod_uid);
  if (found == by_pod_.end()) return {node, {}};
  const auto agreed = std::ranges::find(found->second.nodes, node, &NodeVictims::node);
  return agreed == found->second.nodes.end() ? NodeVictims{node, {}} : *agreed;
}

void Evictions::Forget(const std::string& pod_uid) {
  const MutexLock lock(mutex_);
  if (by_pod_.erase(pod_uid) > 0) std::erase(order_, pod_uid);
}

}  // namespace berth
