// SPDX-License-Identifier: Apache-2.0
//
// ClaimedGpu: what ResourceClaims (Kubernetes' Dynamic Resource Allocation) hold on a node.
//
// A claim holds its devices from its allocation until its deallocation, whichever pods use it and
// however many. So Berth counts the claim and never a pod. No eviction by Berth frees such a GPU at
// once.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/values/placement.h"
#include "topology/links/wiring.h"

namespace berth {

struct NodeSpec;

// One device that a claim holds: a GPU, or a MIG instance of one.
struct ClaimedGpu {
  std::string claim;    // "namespace/name"
  std::string device;   // as the driver calls it
  std::string uuid;     // of the GPU; empty = not known
  int index = -1;       // of the GPU, as the driver counts; -1 = not known
  std::string profile;  // of the MIG instance ("1g.5gb"); empty: the whole GPU, or not known
  int start = -1;       // its first memory slice; -1 = not known
  // The UID of the pod for whose extended resources kube-scheduler made the claim; empty: none.
  std::string pod = {};
  // Whether it is one of the whole GPUs that the pod asked for by the name of a resource.
  [[nodiscard]] bool IsWholeOf(std::string_view uid) const {
    return !pod.empty() && pod == uid && profile.empty();
  }
  friend bool operator==(const ClaimedGpu&, const ClaimedGpu&) = default;
};

// Which GPUs of the node are held, in whole or in part: those with these UUIDs if the node knows
// its UUIDs, else those with these indices. A device that is none of the node's GPUs holds none of
// them: a node may give out some of its GPUs in other ways.
GpuMask HeldByClaims(const NodeSpec& node, std::span<const ClaimedGpu> claimed);

// The whole GPUs that the pod with that UID asked for by the name of a resource and got by a claim,
// where kube-scheduler gives the node's GPUs so (NodeSpec::by_claims); empty: none is known.
std::vector<DeviceGrant> GrantsByClaim(const NodeSpec& node, std::span<const ClaimedGpu> claimed,
                                       std::string_view uid);

}  // namespace berth
