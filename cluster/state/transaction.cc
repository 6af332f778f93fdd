// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/transaction.h"

#include <string>
#include <utility>

#include "base/check.h"

namespace berth {

Status Transaction::Put(const PodRequest& pod, Placement placement) {
  const NodeIndex index = now_->names().Find(placement.node);
  if (index == kNoNode) return Fail(Errc::kNotFound, "node " + placement.node + ": not known");
  auto node = std::make_shared<Node>(now_->node(index));
  node->Remove(pod.id.uid);
  BERTH_TRY_STATUS(node->CanTake(placement, pod));
  auto record = std::make_shared<PodRecord>();
  record->pod = pod;
  record->placement = placement;
  record->state = PodState::kPlanned;
  node->Put(std::move(record));
  now_ = std::make_shared<const Snapshot>(now_->With(index, std::move(node)));
  placed_.push_back({pod, std::move(placement)});
  return {};
}

void Transaction::Take(std::string_view uid, NodeIndex node) {
  if (now_->node(node).FindPod(uid) == nullptr) return;
  auto without = std::make_shared<Node>(now_->node(node));
  without->Remove(uid);
  now_ = std::make_shared<const Snapshot>(now_->With(node, std::move(without)));
}

void Transaction::Return(const Mark& mark) {
  BERTH_CHECK(mark.placed <= placed_.size());
  now_ = mark.snapshot;
  placed_.resize(mark.placed);
}

}  // namespace berth
