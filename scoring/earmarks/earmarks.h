// SPDX-License-Identifier: Apache-2.0
//
// Earmarks: room that is kept for pods and gangs that wait, against pods that came after them.
//
// A node with earmarks takes another pod only where its owners fit beside it. Pods of a higher
// priority than all owners may go there all the same, and so may pods that the owner, a gang, could
// evict. A node may also be awaited for one gang: it takes other pods only where a member fits
// beside them once the pods there that complete have ended. Immutable: any thread reads them. Who
// gets which room is said by EarmarkLine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/node/node.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/gang.h"
#include "cluster/values/pod_request.h"

namespace berth {

// For whom room is kept.
struct EarmarkOwner {
  PodId pod;  // a member, if it is a gang
  GangId gang = {};
  int priority = 0;
  bool may_preempt = false;
  WallTime since = {};  // waits since
  int gpus = 0;         // that are kept for it on this node, begun ones too
};

class Earmarks {
 public:
  struct OnNode {
    NodeIndex node = kNoNode;               // of the snapshot
    std::vector<EarmarkOwner> owners = {};  // the first in line first
    // The node with its owners on it; nullptr: there are none.
    std::shared_ptr<const Node> as_if = nullptr;
    // For whom the node is awaited, and the node then with its member on it; nullptr: nobody.
    EarmarkOwner awaiting = {};
    std::shared_ptr<const Node> then = nullptr;
  };

  Earmarks() = default;
  // Requires: `nodes` sorted by index.
  Earmarks(std::shared_ptr<const Snapshot> snapshot, std::vector<OnNode> nodes);

  [[nodiscard]] bool empty() const { return nodes_.empty(); }
  [[nodiscard]] const std::vector<OnNode>& nodes() const { return nodes_; }
  [[nodiscard]] const std::shared_ptr<const Snapshot>& snapshot() const { return snapshot_; }
  // GPUs that are kept on all nodes, and those that are idle on nodes that are awaited.
  [[nodiscard]] int gpus() const;

  // nullptr: nothing is kept on that node of `snapshot`, which may be another one than that of the
  // earmarks.
  [[nodiscard]] const OnNode* On(const Snapshot& snapshot, NodeIndex node) const;
  // To whom the pod, which fits the node as it is, has to leave it; nullptr: to nobody.
  [[nodiscard]] const EarmarkOwner* KeptFor(const PodRequest& pod, const Snapshot& snapshot,
                                            NodeIndex node) const;

 private:
  std::shared_ptr<const Snapshot> snapshot_;
  std::vector<OnNode> nodes_;
  std::vector<bool> has_;  // by index: it is among nodes_
};

// Whether it is the pod's own, or its gang's.
bool IsOwnedBy(const EarmarkOwner& owner, const PodRequest& pod);

}  // namespace berth
