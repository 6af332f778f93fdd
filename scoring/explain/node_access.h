// SPDX-License-Identifier: Apache-2.0
//
// NodeAccess: whether a node is open to a pod before any device is counted, and one reason for each
// node in the order in which it is asked: kube-scheduler's own filters first, then Berth.
//
// Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cluster/node/node.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/node_constraints.h"
#include "cluster/values/pod_request.h"
#include "scoring/judgement.h"
#include "scoring/reason.h"

namespace berth {

// Whether Kubernetes removes the taint by itself once the node is well: not that of a cordon.
bool PassesByItself(const Taint& taint);

// Why the node is closed to the pod: a taint or cordon, node selector or affinity, versions,
// traits. kFits: it is open. A taint that passes by itself closes no node.
Reason ClosedBy(const Node& node, const PodRequest& pod);

// The first reason against the node. found: what the judgement said, with devices counted first.
Reason FirstInOrder(const Node& node, const PodRequest& pod, Reason found);

// The nodes that are closed to the pod.
struct ClosedNodes {
  std::int64_t nodes = 0;
  std::int64_t would_take = 0;  // these have room for it now
  std::string taker = {};       // one of these: "big-1, which is cordoned"; such a one first
  std::string text;             // "40 nodes are not in pool=z"; "" without any
};

// reasons: as FirstInOrder gives them, one per candidate.
ClosedNodes CountClosed(const Snapshot& snapshot, const Question& question,
                        std::span<const Reason> reasons);

// The node once all is well with it and its pods have ended, but for those that are back at once.
Node AtItsBest(const Node& node);

// " in pool=z": every label that the pod selects, where it selects by nothing else; else "".
std::string PoolOf(const PodRequest& pod);

// Of a pod that selects labels which no node has: "no node is in pool=y".
std::string SelectedNowhere(const PodRequest& pod);

// "3 nodes have taint gpu=present:NoSchedule", "1 node is cordoned".
std::string TaintedText(std::int64_t nodes, const std::string& taint);

// Why no node of the pod's pool takes it as the nodes are, whatever ends there: "its 2 nodes in
// pool=z have at most 64 GiB of memory, it needs 200 GiB", "none of its 3 nodes ever takes it: 2
// had ...", "no node is in pool=y". The pool: the nodes that are open to it, without any those that
// it selects. "": one may.
std::string NeverInPool(const Snapshot& snapshot, const Question& question);

}  // namespace berth
