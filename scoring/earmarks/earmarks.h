// SPDX-License-Identifier: Apache-2.0
//
// Earmarks: room that is kept for pods and gangs that wait, against pods that came after them.
//
// A node with earmarks takes another pod only where its owners fit beside it. Pods of a higher
// priority than all owners may go there all the same, and so may pods that the owner, a gang, could
// evict. A node may also be awaited for a gang or a pod: it takes other pods only where the one
// that waits fits beside them once the pods there have ended, or where they have ended by then
// themselves. Immutable: any thread reads them. Who gets which room is said by EarmarkLine.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "cluster/node/node.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/gang.h"
#include "cluster/values/pod_request.h"
#include "scoring/earmarks/pod_ends.h"

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
    // The node with its owners on it, without the pods that are evicted for one of them; nullptr:
    // there are none.
    std::shared_ptr<const Node> as_if = nullptr;
    std::vector<std::shared_ptr<const PodRequest>> pods = {};  // the owners', in the same order
    // For whom the node is awaited, and the node then with it, or its member, on it; nullptr:
    // nobody.
    EarmarkOwner awaiting = {};
    std::shared_ptr<const Node> then = nullptr;
    // When it can start there at the earliest; empty: nobody knows.
    std::optional<WallTime> from = std::nullopt;
    // GPU time for which GPUs stand idle until then that it takes, if no other pod uses them.
    Duration idle{};
  };

  Earmarks() = default;
  // One that keeps nothing.
  static const std::shared_ptr<const Earmarks>& None();
  // Requires: `nodes` sorted by index.
  Earmarks(std::shared_ptr<const Snapshot> snapshot, std::vector<OnNode> nodes, PodEnds ends = {});

  [[nodiscard]] bool empty() const { return nodes_.empty(); }
  [[nodiscard]] const std::vector<OnNode>& nodes() const { return nodes_; }
  [[nodiscard]] const std::shared_ptr<const Snapshot>& snapshot() const { return snapshot_; }
  // GPUs that are kept on all nodes, and those that are idle on nodes that are awaited.
  [[nodiscard]] int gpus() const;

  // When pods end, by what was known when they were published.
  [[nodiscard]] const PodEnds& ends() const { return ends_; }

  // nullptr: nothing is kept on that node of `snapshot`, which may be another one than that of the
  // earmarks.
  [[nodiscard]] const OnNode* On(const Snapshot& snapshot, NodeIndex node) const;
  // To whom the pod, which fits the node as it is, has to leave it; nullptr: to nobody.
  [[nodiscard]] const EarmarkOwner* KeptFor(const PodRequest& pod, const Snapshot& snapshot,
                                            NodeIndex node) const;
  // Whether the pod, which fits the node without some of its pods, `left`, has to leave it then.
  // beside: becomes the node with those that it may not push aside on it; nullptr: there are none.
  [[nodiscard]] bool IsKeptWithout(const PodRequest& pod, const Snapshot& snapshot, NodeIndex node,
                                   const Node& left, std::shared_ptr<const Node>& beside) const;

 private:
  std::shared_ptr<const Snapshot> snapshot_;
  std::vector<OnNode> nodes_;
  std::vector<bool> has_;  // by index: it is among nodes_
  PodEnds ends_;
};

// A pod that stands in line, without its gang, and for which nothing is kept.
struct PodInLine {
  std::shared_ptr<const PodRequest> pod;
  Instant passed_over;  // nothing is kept for it until then
};
using PodsInLine = std::vector<PodInLine>;  // the first first

// The node with the pod on it; nullptr: the pod does not fit, also by what
// kube-scheduler counts there (other devices, the number of pods).
std::shared_ptr<const Node> WithPod(const Node& node, const PodRequest& pod,
                                    PodState state = PodState::kPlanned);

// Whether it is the pod's own, or its gang's.
bool IsOwnedBy(const EarmarkOwner& owner, const PodRequest& pod);
// Whether it need not wait for the owner: it is its own, of a higher priority, or one that the
// owner could evict.
bool GoesBefore(const PodRequest& pod, const EarmarkOwner& owner);
// Whether the pod, which fits the node as it is, leaves alone what is awaited there.
bool LeavesAwaited(const Earmarks::OnNode& on, const PodRequest& pod, const PodEnds& ends);

// The pods of one plan, put one after the other beside what is kept: each may fit there, and all of
// them not. Not thread-safe. The earmarks and the snapshot outlive it.
class BesideEarmarks {
 public:
  BesideEarmarks(const Earmarks& earmarks, const Snapshot& snapshot)
      : earmarks_(earmarks), snapshot_(snapshot) {}
  // Whether the pod leaves what is kept on that node of the snapshot, with those that were put
  // there before; if so, it is put there.
  bool Put(const PodRequest& pod, NodeIndex node);
  // What is kept, with those on their nodes; nullptr: none was put where something is kept.
  [[nodiscard]] std::shared_ptr<const Earmarks> With() const;

 private:
  struct Taken {
    std::shared_ptr<const Node> as_if, then;  // of Earmarks::OnNode, with these pods
  };
  const Earmarks& earmarks_;
  const Snapshot& snapshot_;
  std::map<NodeIndex, Taken> taken_;
};

// Since when the pod waits: for one of a Job, StatefulSet or LeaderWorkerSet that has lost it, and
// whose other pods' GPUs may idle until it is there, since the first of these runs; for others
// `since`. That pods with larger numbers run tells that it was there before them.
WallTime SinceOfLost(const PodRequest& pod, WallTime since, const Snapshot& snapshot);

}  // namespace berth
