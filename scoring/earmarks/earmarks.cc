// SPDX-License-Identifier: Apache-2.0
#include "scoring/earmarks/earmarks.h"

#include <algorithm>
#include <utility>

#include "scoring/registry.h"

namespace berth {

bool IsOwnedBy(const EarmarkOwner& owner, const PodRequest& pod) {
  return owner.gang.empty() ? owner.pod.uid == pod.id.uid : owner.gang == pod.gang.id;
}

bool GoesBefore(const PodRequest& pod, const EarmarkOwner& owner) {
  if (IsOwnedBy(owner, pod) || pod.priority > owner.priority) return true;
  return !owner.gang.empty() && owner.may_preempt && pod.priority < owner.priority;
}

bool LeavesAwaited(const Earmarks::OnNode& on, const PodRequest& pod, const PodEnds& ends) {
  if (on.then == nullptr || GoesBefore(pod, on.awaiting) || Fits(*on.then, pod.shape)) return true;
  if (!on.from) return false;
  const std::optional<WallTime> end = ends.OfNew(pod);
  return end && *end <= *on.from;
}

Earmarks::Earmarks(std::shared_ptr<const Snapshot> snapshot, std::vector<OnNode> nodes,
                   PodEnds ends)
    : snapshot_(std::move(snapshot)),
      nodes_(std::move(nodes)),
      has_(snapshot_->size()),
      ends_(std::move(ends)) {
  for (const OnNode& on : nodes_) has_[on.node] = true;
}

int Earmarks::gpus() const {
  int sum = 0;
  for (const OnNode& on : nodes_) {
    for (const EarmarkOwner& owner : on.owners) sum += owner.gpus;
    if (on.then != nullptr) sum += on.awaiting.gpus;
  }
  return sum;
}

const Earmarks::OnNode* Earmarks::On(const Snapshot& snapshot, NodeIndex node) const {
  if (nodes_.empty()) return nullptr;
  if (!snapshot_->SameNodes(snapshot)) node = snapshot_->names().Find(snapshot.names().name(node));
  if (node == kNoNode || !has_[node]) return nullptr;
  return &*std::ranges::lower_bound(nodes_, node, {}, &OnNode::node);
}

const EarmarkOwner* Earmarks::KeptFor(const PodRequest& pod, const Snapshot& snapshot,
                                      NodeIndex node) const {
  const OnNode* const on = On(snapshot, node);
  if (on == nullptr) return nullptr;
  const auto is_free = [&pod](const EarmarkOwner& owner) { return GoesBefore(pod, owner); };
  const auto is_owned = [&pod](const EarmarkOwner& owner) { return IsOwnedBy(owner, pod); };
  if (std::ranges::any_of(on->owners, is_owned)) return nullptr;
  if (!LeavesAwaited(*on, pod, ends_)) return &on->awaiting;
  if (on->owners.empty() || std::ranges::all_of(on->owners, is_free)) return nullptr;
  return Fits(*on->as_if, pod.shape) ? nullptr : &on->owners.front();
}

}  // namespace berth
