// SPDX-License-Identifier: Apache-2.0
#include "scoring/earmarks/earmarks.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "scoring/devices/device_picker.h"
#include "scoring/explain/other_limits.h"
#include "scoring/registry.h"

namespace berth {
namespace {

// Also by what kube-scheduler counts there.
bool FitsIn(const Node& node, const PodRequest& pod) {
  return Fits(node, pod.shape) && LackOf(node, pod).empty();
}

// The pod's number among those of its controller, which makes them in this order; empty: none.
std::optional<std::int64_t> NumberOf(const PodRequest& pod) {
  if (pod.labels == nullptr || pod.controller.empty()) return std::nullopt;
  for (const char* key :
       {"leaderworkerset.sigs.k8s.io/worker-index", "batch.kubernetes.io/job-completion-index",
        "apps.kubernetes.io/pod-index"}) {
    const std::string* const label = FindLabel(*pod.labels, key);
    const auto number = ParseInt(label == nullptr ? "" : *label, 0, kMaxGangPods);
    if (number) return *number;
  }
  return std::nullopt;
}

// Whether the pod has ended when the one that the node is awaited for can start there.
bool EndsByThen(const Earmarks::OnNode& on, const PodRequest& pod, const PodEnds& ends) {
  if (!on.from) return false;
  const std::optional<WallTime> end = ends.OfNew(pod);
  return end && *end <= *on.from;
}

bool AreAllFree(const Earmarks::OnNode& on, const PodRequest& pod) {
  return std::ranges::all_of(on.owners,
                             [&pod](const EarmarkOwner& owner) { return GoesBefore(pod, owner); });
}

bool IsAnOwner(const Earmarks::OnNode& on, const PodRequest& pod) {
  return std::ranges::any_of(on.owners,
                             [&pod](const EarmarkOwner& owner) { return IsOwnedBy(owner, pod); });
}

}  // namespace

std::shared_ptr<const Node> WithPod(const Node& node, const PodRequest& pod, PodState state) {
  if (!FitsIn(node, pod)) return nullptr;
  const auto choices = DeviceChoices(node, pod.shape, DeviceRule::kTightest);
  if (choices.empty()) return nullptr;
  auto record = std::make_shared<PodRecord>();
  record->pod = pod;
  record->placement = PlacementFor(node, pod.shape, choices.front());
  record->state = state;
  auto with = std::make_shared<Node>(node);
  with->Put(std::move(record));
  return with;
}

bool IsOwnedBy(const EarmarkOwner& owner, const PodRequest& pod) {
  return owner.gang.empty() ? owner.pod.uid == pod.id.uid : owner.gang == pod.gang.id;
}

bool GoesBefore(const PodRequest& pod, const EarmarkOwner& owner) {
  if (IsOwnedBy(owner, pod) || pod.priority > owner.priority) return true;
  return !owner.gang.empty() && owner.may_preempt && pod.priority < owner.priority;
}

WallTime SinceOfLost(const PodRequest& pod, WallTime since, const Snapshot& snapshot) {
  const auto number = pod.gang.empty() ? NumberOf(pod) : std::nullopt;
  if (!number) return since;
  bool is_lost = false;
  WallTime first = since;
  snapshot.ForEachPod([&](const auto& held, NodeIndex) {
    const bool is_other = held->pod.controller != pod.controller ||
                          held->pod.id.namespace_name != pod.id.namespace_name;
    if (is_other || !held->life.started) return;
    first = std::min(first, *held->life.started);
    is_lost = is_lost || NumberOf(held->pod).value_or(-1) > *number;
  });
  return is_lost ? first : since;
}

bool LeavesAwaited(const Earmarks::OnNode& on, const PodRequest& pod, const PodEnds& ends) {
  return on.then == nullptr || GoesBefore(pod, on.awaiting) || FitsIn(*on.then, pod) ||
         EndsByThen(on, pod, ends);
}

const std::shared_ptr<const Earmarks>& Earmarks::None() {
  static const auto kNone = std::make_shared<const Earmarks>();
  return kNone;
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
  if (IsAnOwner(*on, pod)) return nullptr;
  if (!LeavesAwaited(*on, pod, ends_)) return &on->awaiting;
  if (AreAllFree(*on, pod)) return nullptr;
  return FitsIn(*on->as_if, pod) ? nullptr : &on->owners.front();
}

bool BesideEarmarks::Put(const PodRequest& pod, NodeIndex node) {
  const Earmarks::OnNode* const on = earmarks_.On(snapshot_, node);
  if (on == nullptr) return true;
  // What is kept there for its gang is its own, and what is planned there gives its place up.
  const auto without_own = [&pod](const std::shared_ptr<const Node>& with) {
    if (with == nullptr || pod.gang.empty()) return with;
    return std::make_shared<const Node>(with->Without([&pod](const PodRecord& held) {
      return held.state == PodState::kPlanned && held.pod.gang.id == pod.gang.id;
    }));
  };
  const auto [taken, is_new] = taken_.try_emplace(node);
  if (is_new) taken->second = {without_own(on->as_if), without_own(on->then)};
  Taken with = taken->second;
  // One that need not leave it takes room there all the same. It is no plan that gives its up.
  const auto put = [&pod](std::shared_ptr<const Node>& on_it) {
    auto with_it = on_it == nullptr ? nullptr : WithPod(*on_it, pod, PodState::kBound);
    if (with_it == nullptr) return on_it == nullptr;
    on_it = std::move(with_it);
    return true;
  };
  const bool is_over = EndsByThen(*on, pod, earmarks_.ends());
  if (!is_over && !put(with.then) && !GoesBefore(pod, on->awaiting)) return false;
  if (!put(with.as_if) && !AreAllFree(*on, pod)) return false;
  taken->second = std::move(with);
  return true;
}

std::shared_ptr<const Earmarks> BesideEarmarks::With() const {
  if (taken_.empty()) return nullptr;
  std::vector<Earmarks::OnNode> nodes = earmarks_.nodes();
  for (const auto& [node, with] : taken_) {
    const auto own = nodes.begin() + (earmarks_.On(snapshot_, node) - earmarks_.nodes().data());
    own->as_if = with.as_if;
    own->then = with.then;
  }
  return std::make_shared<const Earmarks>(earmarks_.snapshot(), std::move(nodes), earmarks_.ends());
}

bool Earmarks::IsKeptWithout(const PodRequest& pod, const Snapshot& snapshot, NodeIndex node,
                             const Node& left, std::shared_ptr<const Node>& beside) const {
  beside = nullptr;
  const OnNode* const on = On(snapshot, node);
  if (on == nullptr || IsAnOwner(*on, pod)) return false;
  if (on->then != nullptr && !GoesBefore(pod, on->awaiting) && !EndsByThen(*on, pod, ends_)) {
    const Node& now = snapshot.node(node);
    const auto goes = [&](const PodRecord& held) {
      return now.FindPod(held.pod.id.uid) != nullptr && left.FindPod(held.pod.id.uid) == nullptr;
    };
    if (!FitsIn(on->then->Without(goes), pod)) return true;
  }
  if (AreAllFree(*on, pod)) return false;
  for (const auto& owner : on->pods) {  // as the line puts them there once the pods have gone
    if (auto with = WithPod(beside == nullptr ? left : *beside, *owner)) beside = std::move(with);
  }
  return beside != nullptr && !FitsIn(*beside, pod);
}

}  // namespace berth
