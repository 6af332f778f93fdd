// SPDX-License-Identifier: Apache-2.0
//
// LighterVictims: pods to evict in place of those that kube-scheduler would, which lose less work.
//
// Of pods of equal priority kube-scheduler evicts those that started last, whatever they have
// saved. A set takes the place of the proposed one if it
//   1. loses less work (WorkLost), in fewer pods where several lose as little;
//   2. has no more pods: the most important is no more important than theirs, nor the
//      second most important, and so on: the node is as good a choice as it was;
//   3. exceeds disruption budgets with no more pods. They are counted as kube-scheduler counts
//   them:
//      it prefers pods that exceed none, and evicts others where it must;
//   4. makes room for all that Berth judges: GPUs, CPU, memory, disk;
//   5. differs from the proposed one by single pods with GPUs: bound ones, of no gang, not ending;
//   6. leaves nothing in the way of what kube-scheduler alone judges (OwnToScheduler).
// The proposed set stays where it has a pod that Berth would not have evicted: then something is
// short that Berth does not see, the room of a pod that was nominated to the node for example.
//
// The result is the best such set within the bounds of lighter_victims.cc, which a node of 8 GPUs
// stays within; beyond them it is the best one that was found. A pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"
#include "scoring/victims.h"

namespace berth {

struct VictimSet {
  std::vector<std::string> uids;  // sorted
  std::int64_t pdb_violations = 0;
  friend bool operator==(const VictimSet&, const VictimSet&) = default;
};

// proposed: the pods on the node that are to be evicted, and how many of them exceed budgets by the
// scheduler's own count. Nothing: these stay.
std::optional<VictimSet> LighterVictims(const Node& node, const PodRequest& pod,
                                        const VictimSet& proposed, const EvictionLimits& limits);

// Pods to evict in place of the proposed ones where these would break a gang (BreaksGang): members
// of gangs stay. Nothing: no others will do.
std::optional<VictimSet> WholeGangVictims(const Node& node, const PodRequest& pod,
                                          const VictimSet& proposed, const EvictionLimits& limits);

}  // namespace berth
