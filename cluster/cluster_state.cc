// SPDX-License-Identifier: Apache-2.0
#include "cluster/cluster_state.h"

#include <utility>

#include "base/check.h"

namespace berth {

ClusterState::ClusterState() : current_(std::make_shared<const Snapshot>()) {}

std::shared_ptr<const Snapshot> ClusterState::Current() const {
  const MutexLock lock(mutex_);
  return current_;
}

Status ClusterState::Apply(std::span<const ClusterEvent> events) {
  for (const ClusterEvent& event : events) {
    if (const auto* upserted = std::get_if<NodeUpserted>(&event)) {
      if (Status valid = Validate(upserted->spec); !valid) {
        return tl::unexpected(std::move(valid).error().Within("node"));
      }
    }
  }
  const MutexLock lock(mutex_);
  for (const ClusterEvent& event : events) ApplyOne(event);
  Publish();
  return {};
}

void ClusterState::ApplyOne(const ClusterEvent& event) {
  if (const auto* upserted = std::get_if<NodeUpserted>(&event)) {
    UpsertNode(upserted->spec);
  } else if (const auto* removed = std::get_if<NodeRemoved>(&event)) {
    node_set_changed_ = specs_.erase(removed->name) > 0 || node_set_changed_;
  } else if (const auto* bound = std::get_if<PodBound>(&event)) {
    Erase(bound->pod.id.uid);
    Insert({bound->pod, bound->placement, PodState::kBound, {}});
  } else {
    Erase(std::get<PodGone>(event).uid);
  }
}

void ClusterState::UpsertNode(const NodeSpec& spec) {
  auto shared = std::make_shared<const NodeSpec>(spec);
  const auto [entry, is_new] = specs_.insert_or_assign(spec.name, shared);
  if (is_new || node_set_changed_) {
    node_set_changed_ = true;  // the snapshot is rebuilt whole when it is published
    return;
  }
  const NodeIndex index = next_.names().Find(spec.name);
  BERTH_CHECK(index != kNoNode);
  next_ = next_.With(index, BuildNode(shared));
}

std::shared_ptr<const Node> ClusterState::BuildNode(
    const std::shared_ptr<const NodeSpec>& spec) const {
  auto node = std::make_shared<Node>(spec);
  if (const auto uids = uids_by_node_.find(spec->name); uids != uids_by_node_.end()) {
    for (const std::string& uid : uids->second) {  // sums: the order does not matter
      const PodRecord& record = pods_.find(uid)->second;
      node->Take(record.placement, record.pod.shape);
    }
  }
  return node;
}

Status ClusterState::Reserve(const PodRequest& pod, const Placement& placement,
                             Instant expires_at) {
  const MutexLock lock(mutex_);
  const NodeIndex index = next_.names().Find(placement.node);
  if (index == kNoNode) {
    return Fail(Errc::kNotFound, "node " + placement.node + " is not known");
  }
  const auto held = pods_.find(pod.id.uid);
  if (held != pods_.end() && held->second.state == PodState::kBound) {
    return Fail(Errc::kConflict,
                "pod is bound to node " + held->second.placement.node + " already");
  }
  Node node = next_.node(index);
  if (held != pods_.end() && held->second.placement.node == placement.node) {
    node.GiveBack(held->second.placement, held->second.pod.shape);
  }
  if (Status fits = node.CanTake(placement); !fits) {
    return tl::unexpected(std::move(fits).error().Within("node " + placement.node));
  }
  if (held != pods_.end()) Erase(pod.id.uid);
  Insert({pod, placement, PodState::kReserved, expires_at});
  Publish();
  return {};
}

Status ClusterState::Confirm(std::string_view uid) {
  const MutexLock lock(mutex_);
  const auto held = pods_.find(uid);
  if (held == pods_.end()) {
    return Fail(Errc::kNotFound, "no reservation for pod " + std::string(uid));
  }
  DropDeadline(held->second);
  held->second.state = PodState::kBound;
  return {};
}

bool ClusterState::Forget(std::string_view uid) {
  const MutexLock lock(mutex_);
  const auto held = pods_.find(uid);
  if (held == pods_.end() || held->second.state != PodState::kReserved) return false;
  Erase(held->first);
  Publish();
  return true;
}

std::vector<PodId> ClusterState::Overdue(Instant now) const {
  const MutexLock lock(mutex_);
  std::vector<PodId> overdue;
  for (const auto& [deadline, uid] : deadlines_) {
    if (deadline > now) break;
    overdue.push_back(pods_.find(uid)->second.pod.id);
  }
  return overdue;
}

std::optional<PodRecord> ClusterState::FindPod(std::string_view uid) const {
  const MutexLock lock(mutex_);
  const auto held = pods_.find(uid);
  if (held == pods_.end()) return std::nullopt;
  return held->second;
}

ClusterState::Contents ClusterState::Everything() const {
  const MutexLock lock(mutex_);
  Contents contents{current_, {}};
  contents.pods.reserve(pods_.size());
  for (const auto& [uid, record] : pods_) contents.pods.push_back(record);
  return contents;
}

void ClusterState::Insert(PodRecord record) {
  const std::string uid = record.pod.id.uid;
  uids_by_node_[record.placement.node].insert(uid);
  if (record.state == PodState::kReserved) deadlines_.emplace(record.expires_at, uid);
  ChangeNode(record.placement.node,
             [&](Node& node) { node.Take(record.placement, record.pod.shape); });
  pods_.insert_or_assign(uid, std::move(record));
}

void ClusterState::Erase(const std::string& uid) {
  const auto held = pods_.find(uid);
  if (held == pods_.end()) return;
  const PodRecord record = std::move(held->second);
  pods_.erase(held);
  DropDeadline(record);
  const auto uids = uids_by_node_.find(record.placement.node);
  uids->second.erase(record.pod.id.uid);
  if (uids->second.empty()) uids_by_node_.erase(uids);
  ChangeNode(record.placement.node,
             [&](Node& node) { node.GiveBack(record.placement, record.pod.shape); });
}

void ClusterState::DropDeadline(const PodRecord& record) {
  if (record.state == PodState::kReserved) {
    deadlines_.erase({record.expires_at, record.pod.id.uid});
  }
}

template <class Change>
void ClusterState::ChangeNode(const std::string& name, Change change) {
  if (node_set_changed_) return;  // everything is rebuilt when published
  const NodeIndex index = next_.names().Find(name);
  if (index == kNoNode) return;
  auto node = std::make_shared<Node>(next_.node(index));
  change(*node);
  next_ = next_.With(index, std::move(node));
}

void ClusterState::RebuildSnapshot() {
  std::vector<std::shared_ptr<const Node>> nodes;
  nodes.reserve(specs_.size());
  for (const auto& [name, spec] : specs_) nodes.push_back(BuildNode(spec));
  next_ = Snapshot(nodes);
  node_set_changed_ = false;
}

void ClusterState::Publish() {
  if (node_set_changed_) RebuildSnapshot();
  current_ = std::make_shared<const Snapshot>(next_);
}

}  // namespace berth
