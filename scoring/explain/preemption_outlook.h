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

}  // namespace berth
