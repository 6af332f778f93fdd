// SPDX-License-Identifier: Apache-2.0
//
// PreemptionOutlook: whether kube-scheduler makes room for a pod by evictions, and whom it evicts.
// It is what happens: kube-scheduler's own victims (scheduler_victims.h), then Berth's answer to
// its verb preempt (AgreedVictims), then the node that kube-scheduler takes. Of more than 100 nodes
// it looks at a random 100, so whom it evicts is an example then.
//
// Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/state/snapshot.h"
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

// replica_set: the pod's own (PodLife). Requires: it fits no node, and nobody is evicted for it.
std::optional<RolloutBlock> FindRolloutBlock(const Snapshot& snapshot, const PodRequest& pod,
                                             std::string_view replica_set);

}  // namespace berth
