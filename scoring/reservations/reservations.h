// SPDX-License-Identifier: Apache-2.0
//
// Reservations: all that is kept for pods and gangs that wait, at one moment, and so the one answer
// to "does this pod have to leave this node to somebody else". Filter, explanations, plans, victims
// and gang plans ask it through Question::reservations.
//
//   kept by             for                                               others may go there
//   Earmarks            who stands in line, or was nominated              beside it, or if they end
//   KeptNodes           a pod for which pods there are moved or evicted   with a higher priority
//
// Immutable: any thread reads it. Copies are cheap.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "cluster/node/node.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"
#include "scoring/earmarks/earmarks.h"

namespace berth {

// A node that pods leave because Berth moves or evicts them for the owner. Until the owner is
// planned there nobody else with GPUs and no higher priority is let in.
struct KeptNode {
  EarmarkOwner owner;
  friend bool operator==(const KeptNode& a, const KeptNode& b) {
    return a.owner.pod.uid == b.owner.pod.uid && a.owner.gang == b.owner.gang &&
           a.owner.priority == b.owner.priority;
  }
};
using KeptNodes = std::map<std::string, KeptNode, std::less<>>;  // by name
// Whether it keeps that pod out. claims: the pod has claims that are to get devices.
bool KeepsOut(const KeptNode& kept, const PodRequest& pod, bool claims);
// nullptr: nobody is kept out of that node, or there are none.
const KeptNode* KeptNodeFrom(const KeptNodes* nodes, std::string_view name, const PodRequest& pod,
                             bool claims = false);

class Reservations {
 public:
  Reservations() = default;
  // Pointers may be null: nothing is kept. ahead: who stands in line, the first first.
  explicit Reservations(std::shared_ptr<const Earmarks> earmarks,
                        std::shared_ptr<const KeptNodes> nodes = nullptr,
                        std::shared_ptr<const PodsInLine> ahead = nullptr, Instant now = {});

  [[nodiscard]] bool empty() const { return earmarks_->empty() && nodes_ == nullptr; }
  [[nodiscard]] const Earmarks& earmarks() const { return *earmarks_; }
  [[nodiscard]] const KeptNodes* nodes() const { return nodes_.get(); }
  // The same with other earmarks. Requires: not nullptr.
  [[nodiscard]] Reservations With(std::shared_ptr<const Earmarks> earmarks) const {
    return Reservations(std::move(earmarks), nodes_, ahead_, now_);
  }
  // Whether the same is kept: what was refused because of the one is refused because of the other.
  [[nodiscard]] bool IsSame(const Reservations& other) const {
    return earmarks_ == other.earmarks_ && nodes_ == other.nodes_;
  }
  friend bool operator==(const Reservations& a, const Reservations& b) { return a.IsSame(b); }

  // Returns to whom the pod, which fits the node as it is, has to leave it; nullptr: to nobody.
  // claims: it has claims that are to get devices.
  [[nodiscard]] const EarmarkOwner* KeptFor(const PodRequest& pod, const Snapshot& snapshot,
                                            NodeIndex node, bool claims = false) const;
  // Whether the pod, which fits the node without some of its pods, `left`, would have to leave it
  // to somebody once these have gone. Pods of a higher priority that stand in line come first then
  // too: kube-scheduler tries them before this one.
  [[nodiscard]] bool IsKeptWithout(const PodRequest& pod, const Snapshot& snapshot, NodeIndex node,
                                   const Node& left) const;
  // Whether others may be evicted on the node for a pod that does not stand in line itself: nothing
  // that is kept there could be in its way.
  [[nodiscard]] bool MayClear(const PodRequest& pod, const Snapshot& snapshot,
                              NodeIndex node) const;

 private:
  std::shared_ptr<const Earmarks> earmarks_ = Earmarks::None();
  std::shared_ptr<const KeptNodes> nodes_;
  std::shared_ptr<const PodsInLine> ahead_;
  Instant now_{};
};

}  // namespace berth
