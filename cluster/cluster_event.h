// SPDX-License-Identifier: Apache-2.0
//
// ClusterEvent: what the outside world tells ClusterState. Events about one object come in its own
// order; events about different objects may come in any order (a pod or a claim before the node
// that it is on).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cluster/claimed_gpu.h"
#include "cluster/node.h"
#include "cluster/placement.h"
#include "cluster/pod_request.h"

namespace berth {

struct NodeUpserted {
  NodeSpec spec;
};
struct NodeRemoved {
  std::string name;
};
// The pod runs (or will run) there: the truth, also where it goes beyond the node's capacity.
struct PodBound {
  PodRequest pod;
  Placement placement;
  // The devices are what an annotation of the pod says. Whoever may write the pod may write that,
  // so it is believed only where it contradicts nothing that is known (device_disputes.h).
  bool devices_annotated = false;
};
struct PodGone {
  std::string uid;
};
// A list of all bound pods did not show the pod, and it was not known to be bound when the list was
// asked for: it may have been bound and deleted meanwhile, or bound after the list was made.
struct PodMissed {
  std::string uid;
};
// Whose claims they are: each source says all of its own.
enum class ClaimSource { kResourceClaims, kInstaslice };
// All that claims hold on that node by now, in place of what that source said before.
struct GpusClaimed {
  std::string node;
  std::vector<ClaimedGpu> gpus;
  ClaimSource source = ClaimSource::kResourceClaims;
};
// What pods can get of that node's GPUs by the claims that kube-scheduler makes for their extended
// resources, by now; not known = nothing. The MIG devices that the node itself speaks of go before.
struct GpusOffered {
  std::string node;
  NodeMig mig;
};
using ClusterEvent =
    std::variant<NodeUpserted, NodeRemoved, PodBound, PodGone, PodMissed, GpusClaimed, GpusOffered>;

}  // namespace berth
