// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/instaslice/instaslice_claims.h"

#include <utility>

namespace berth::dialects {

void InstasliceClaims::Put(Object claim) {
  const MutexLock lock(mutex_);
  Nodes changed;
  Hold(std::move(claim), changed);
  Publish(changed);
}

void InstasliceClaims::Remove(std::string_view namespace_name, std::string_view name) {
  const MutexLock lock(mutex_);
  Nodes changed;
  Drop(std::string(namespace_name).append("/").append(name), changed);
  Publish(changed);
}

void InstasliceClaims::Reset(std::vector<Object> claims) {
  const MutexLock lock(mutex_);
  Nodes changed;
  for (const auto& [node, held] : on_node_) changed.insert(node);
  node_of_.clear();
  on_node_.clear();
  for (Object& claim : claims) Hold(std::move(claim), changed);
  Publish(changed);
}

void InstasliceClaims::Hold(Object claim, Nodes& changed) {
  const std::string name = claim.device.claim;
  Drop(name, changed);
  if (!claim.holds) return;
  changed.insert(claim.node);
  on_node_[claim.node].insert_or_assign(name, std::move(claim.device));
  node_of_.insert_or_assign(name, std::move(claim.node));
}

void InstasliceClaims::Drop(const std::string& name, Nodes& changed) {
  const auto known = node_of_.find(name);
  if (known == node_of_.end()) return;
  changed.insert(known->second);
  const auto node = on_node_.find(known->second);
  node->second.erase(name);
  if (node->second.empty()) on_node_.erase(node);
  node_of_.erase(known);
}

void InstasliceClaims::Publish(const Nodes& nodes) {
  std::vector<ClusterEvent> events;
  for (const std::string& node : nodes) {
    std::vector<ClaimedGpu> held;
    if (const auto known = on_node_.find(node); known != on_node_.end()) {
      for (const auto& [name, device] : known->second) held.push_back(device);
    }
    events.emplace_back(GpusClaimed{node, std::move(held), "instaslice"});
  }
  if (!events.empty()) (void)state_.Apply(events);  // no NodeSpec in it: cannot fail
}

}  // namespace berth::dialects
