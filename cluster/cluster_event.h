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
};
struct PodGone {
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
    std::variant<NodeUpserted, NodeRemoved, PodBound, PodGone, GpusClaimed, GpusOffered>;

}  // namespace berth
