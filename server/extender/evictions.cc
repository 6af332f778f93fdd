// SPDX-License-Identifier: Apache-2.0
#include "server/extender/evictions.h"

#include <algorithm>
#include <utility>

namespace berth {

void Evictions::Agree(const std::string& pod_uid, Nodes nodes) {
  std::size_t uids = 0;
  for (const NodeVictims& victims : nodes) uids += victims.uids.size();
  auto agreed = std::make_shared<const Nodes>(std::move(nodes));
  const MutexLock lock(mutex_);
  by_pod_.Put(pod_uid, {std::move(agreed), 0}, uids);
}

Evictions::Agreed Evictions::Find(const std::string& pod_uid) {
  const MutexLock lock(mutex_);
  const Agreed* const agreed = by_pod_.Find(pod_uid);
  return agreed == nullptr ? Agreed() : *agreed;
}

std::shared_ptr<const Evictions::Nodes> Evictions::StillThere(const std::string& pod_uid,
                                                              const Snapshot& snapshot) {
  const Agreed known = Find(pod_uid);
  if (known.nodes == nullptr || known.times >= kMostTimes) return nullptr;
  const bool all = std::ranges::all_of(*known.nodes, [&](const NodeVictims& victims) {
    const NodeIndex index = snapshot.names().Find(victims.node);
    return index != kNoNode && std::ranges::any_of(victims.uids, [&](const std::string& uid) {
             return snapshot.node(index).FindPod(uid) != nullptr;
           });
  });
  if (all) return known.nodes;
  const MutexLock lock(mutex_);
  const Agreed* const now = by_pod_.Find(pod_uid);
  if (now != nullptr && now->nodes == known.nodes) by_pod_.Erase(pod_uid);
  return nullptr;
}

bool Evictions::Counted(const std::string& pod_uid, bool is_awaited) {
  const MutexLock lock(mutex_);
  Agreed* const agreed = is_awaited ? by_pod_.Find(pod_uid) : nullptr;
  if (agreed != nullptr) ++agreed->times;
  return is_awaited;
}

bool Evictions::Awaited(const std::string& pod_uid, const Snapshot& snapshot,
                        std::span<const NodeIndex> candidates) {
  const auto nodes = StillThere(pod_uid, snapshot);
  const auto is_candidate = [&](const NodeVictims& victims) {
    return std::ranges::find(candidates, snapshot.names().Find(victims.node)) != candidates.end();
  };
  return Counted(pod_uid, nodes != nullptr && std::ranges::any_of(*nodes, is_candidate));
}

bool Evictions::AwaitedElsewhere(const std::string& pod_uid, const Snapshot& snapshot,
                                 std::span<const NodeVictims> asked) {
  const auto nodes = StillThere(pod_uid, snapshot);
  const auto is_asked = [&](const NodeVictims& victims) {
    return std::ranges::find(asked, victims.node, &NodeVictims::node) != asked.end();
  };
  return Counted(pod_uid, nodes != nullptr && std::ranges::none_of(*nodes, is_asked));
}

NodeVictims Evictions::AgreedOn(const std::string& pod_uid, const std::string& node) {
  const auto nodes = Find(pod_uid).nodes;
  if (nodes == nullptr) return {node, {}};
  const auto victims = std::ranges::find(*nodes, node, &NodeVictims::node);
  return victims == nodes->end() ? NodeVictims{node, {}} : *victims;
}

void Evictions::Forget(const std::string& pod_uid) {
  const MutexLock lock(mutex_);
  by_pod_.Erase(pod_uid);
}

}  // namespace berth
