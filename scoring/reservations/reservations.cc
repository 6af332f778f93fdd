// SPDX-License-Identifier: Apache-2.0
#include "scoring/reservations/reservations.h"

#include <algorithm>

#include "scoring/admission.h"
#include "scoring/explain/other_limits.h"
#include "scoring/registry.h"

namespace berth {

bool KeepsOut(const KeptNode& kept, const PodRequest& pod, bool claims) {
  return !IsOwnedBy(kept.owner, pod) && pod.priority <= kept.owner.priority &&
         (pod.shape.wants_gpu() || claims);
}

const KeptNode* KeptNodeFrom(const KeptNodes* nodes, std::string_view name, const PodRequest& pod,
                             bool claims) {
  if (nodes == nullptr) return nullptr;
  const auto kept = nodes->find(name);
  return kept != nodes->end() && KeepsOut(kept->second, pod, claims) ? &kept->second : nullptr;
}

Reservations::Reservations(std::shared_ptr<const Earmarks> earmarks,
                           std::shared_ptr<const KeptNodes> nodes,
                           std::shared_ptr<const PodsInLine> ahead, Instant now)
    : nodes_(std::move(nodes)), ahead_(std::move(ahead)), now_(now) {
  if (earmarks != nullptr) earmarks_ = std::move(earmarks);
}

const EarmarkOwner* Reservations::KeptFor(const PodRequest& pod, const Snapshot& snapshot,
                                          NodeIndex node, bool claims) const {
  if (nodes_ != nullptr) {
    const auto* const kept = KeptNodeFrom(nodes_.get(), snapshot.names().name(node), pod, claims);
    if (kept != nullptr) return &kept->owner;
  }
  return earmarks_->KeptFor(pod, snapshot, node);
}

bool Reservations::IsKeptWithout(const PodRequest& pod, const Snapshot& snapshot, NodeIndex node,
                                 const Node& left) const {
  const std::string_view name = snapshot.names().name(node);
  if (KeptNodeFrom(nodes_.get(), name, pod) != nullptr) return true;
  std::shared_ptr<const Node> beside;
  if (earmarks_->IsKeptWithout(pod, snapshot, node, left, beside)) return true;
  if (ahead_ == nullptr) return false;
  for (const PodInLine& first : *ahead_) {
    const PodRequest& other = *first.pod;
    if (other.priority <= pod.priority) break;
    if (now_ < first.passed_over || Admits(left.spec(), other) != Reason::kFits) continue;
    if (KeptNodeFrom(nodes_.get(), name, other) != nullptr) continue;
    auto with = WithPod(beside == nullptr ? left : *beside, other);
    if (with == nullptr) continue;
    beside = std::move(with);
    if (!Fits(*beside, pod.shape) || !LackOf(*beside, pod).empty()) return true;
  }
  return false;
}

bool Reservations::MayClear(const PodRequest& pod, const Snapshot& snapshot, NodeIndex node) const {
  const Earmarks::OnNode* const on = earmarks_->On(snapshot, node);
  return on == nullptr || std::ranges::all_of(on->owners, [&pod](const EarmarkOwner& owner) {
           return GoesBefore(pod, owner);
         });
}

}  // namespace berth
