// SPDX-License-Identifier: Apache-2.0
//
// PreemptionOutlook: whether kube-scheduler makes room for a pod by evictions, and whom it evicts.
// It is what happens: kube-scheduler's own victims (victims.h), then Berth's answer to
// its verb preempt (AgreedVictims), then the node that kube-scheduler takes. Of more than 100 nodes
// it looks at a random 100, so whom it evicts is an example then.
//
// Pure functions.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/node/node.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/pod_record.h"
#include "cluster/values/pod_request.h"
#include "scoring/judgement.h"
#include "scoring/victims.h"

namespace berth {

struct PreemptionOutlook {
  bool helps = false;                     // it evicts pods, or has done so
  bool under_way = false;                 // these are ending
  std::string text = {};                  // in a sentence
  std::string brief = {};                 // the same in few words, where it helps
  std::string node = {};                  // where, and...
  std::vector<std::string> victims = {};  // ...whom: "namespace/name"
};

struct PreemptionAsk {
  const Snapshot& snapshot;
  const PodRequest& pod;
  const GroupPlaces& group;
  const EvictionLimits& limits;
  std::string_view nominated = {};             // status.nominatedNodeName of the pod; empty: none
  const Reservations* reservations = nullptr;  // as in Question
};

// The nodes on which Berth's answer is asked for; more until one is found.
inline constexpr std::size_t kMostCompared = 100, kMostAsked = 2000;

// Requires: the pod fits no node.
PreemptionOutlook OutlookOf(const PreemptionAsk& ask);

// Rollout: whether a pod waits for an older pod of its own Deployment, which waits for it. An
// update starts the new pod first (maxSurge) and ends an old one once the new one runs; where the
// old one has the room that the new one needs, both wait for good.
//
// Pure functions.

struct RolloutBlock {
  std::string deployment;  // of the pod's namespace
  std::string old_pod;     // "namespace/name": if it alone ended, the pod would fit
  std::string node;
};

// Whether a pod of that namespace is of another ReplicaSet of the same Deployment.
bool IsOfOtherReplicaSet(const PodRecord& held, std::string_view space, const PodLife& own);

// replica_set: the pod's own (PodLife). Requires: it fits no node, and nobody is evicted for it.
std::optional<RolloutBlock> FindRolloutBlock(const Snapshot& snapshot, const PodRequest& pod,
                                             std::string_view replica_set);

// EndingPods: which of a node's pods would have to end so that another pod fits there.
//
// Pure functions.

// At least so many of its pods have to end, by the amounts that they hold: 1 or more. More may be
// needed, for links or MIG devices. Nothing: what is missing stays missing without all of them.
std::optional<std::size_t> LeastEnding(const Node& node, const RequestShape& shape);

// Whether the pod fits that node.
using FitsNode = std::function<bool(const Node& node)>;

// One pod if that is enough: one that is ending already, then the smallest by its GPUs, then by
// name. Else few of them, all of them needed: two wherever two are enough and at most kMostInPairs
// pods hold what is missing. Empty: no pods that end let it in. Not among them are pods that a gang
// has only planned there, which run nowhere yet, and those that are back at once (PodLife).
inline constexpr std::size_t kMostInPairs = 24;
std::vector<const PodRecord*> EndingPods(const Node& node, const RequestShape& shape,
                                         const FitsNode& fits);

}  // namespace berth
