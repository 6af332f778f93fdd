// SPDX-License-Identifier: Apache-2.0
//
// DeviceVictims: node and pods to evict for a pod that gets its GPUs by claims: one that
// kube-scheduler makes for it, or its own. Where devices are short kube-scheduler evicts nobody,
// and asks nobody whom to evict.
//
// A victim is as AddedVictims has it: a bound pod of lower priority, gangs whole, no disruption
// budget exceeded. It has its GPUs by claims that are for it alone: Kubernetes deallocates them
// once the pod is gone. Claims that several pods have, and those of no pod that is known, stay.
// Pods that are ending, and claims that end, count as gone. Of several nodes the best is that with
//   1. no gang evicted, 2. the lowest highest priority, 3. the fewest pods, 4. the lowest sum of
//   priorities, 5. the least work lost (WorkLost), 6. the least GPU compute set free, 7. the first
//   name
//
// Pure functions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cluster/node/node.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"
#include "scoring/claims/claim_question.h"
#include "scoring/victims.h"

namespace berth {

// Whether kube-scheduler gives the pod its GPUs there by a claim, and Berth knows which.
bool GivesDevices(const Node& node, const PodRequest& pod);

// The node as if its pods held the GPUs of the claims that are for them alone (GpusByPod), and
// claims that end held none.
Node HeldByPods(const Node& node, const ClaimEnds& ends = {});

struct DeviceVictims {
  enum class Outcome {
    kEvict,      // these
    kWait,       // room comes by itself on a node, or kube-scheduler can evict for the pod
    kNowhere,    // no permitted set suffices
    kUndecided,  // nobody may say: kube-scheduler judges something of the pod that Berth does not
  };
  Outcome outcome = Outcome::kNowhere;
  NodeIndex node = kNoNode;            // kEvict
  std::vector<std::string> uids = {};  // kEvict: not empty, sorted
};

// Requires: the pod fits no node as it is. skips: nodes that do not count. room: of the pod's own
// claims; nullptr: it has none. ends: which claims end.
DeviceVictims VictimsForDevices(const Snapshot& snapshot, const PodRequest& pod,
                                const EvictionLimits& limits,
                                const std::function<bool(const std::string& node)>& skips = {},
                                ClaimRoom* room = nullptr, const ClaimEnds& ends = {});

}  // namespace berth
