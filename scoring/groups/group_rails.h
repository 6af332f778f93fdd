// SPDX-License-Identifier: Apache-2.0
//
// The GPUs of its node that a member of a group gets, given the other members: the same indices on
// every node if that costs nothing (topology/links/wiring.h explains why).
//
// Members come one at a time. Placed members on other nodes determine the rails; before there are
// any, the rails are those that are free on most nodes of the domain in which the group is to be.
// Pure functions.
#pragma once

#include "cluster/node/node.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"
#include "scoring/groups/group_domains.h"
#include "topology/domains/domain_tree.h"
#include "topology/gpu_mask.h"

namespace berth {

// The rails for a member that goes to that node; 0 if there is nothing to align with: the pod has
// no group, or does not ask for whole GPUs.
GpuMask RailsFor(const Snapshot& snapshot, const DomainTree& tree, const PodRequest& pod,
                 const GroupMembers& members, NodeIndex node);

// As many GPUs of `free` as are chosen, equally good for the ask, with more of the rails if
// possible: no lower quality, no more NUMA groups, and a free rest that is worth no less to the
// next pod. The chosen ones unchanged if more than kMaxTableGpus GPUs have known links, or the ask
// has a pattern. Requires: chosen is part of free.
GpuMask AlignedWith(const GpuLinks& links, GpuMask rails, GpuMask free, GpuMask chosen,
                    const LinkAsk& ask);

// The choice for a pod with whole GPUs, moved to these rails where AlignedWith allows it.
Placement OnRails(const Node& node, const RequestShape& shape, Placement placement, GpuMask rails);

}  // namespace berth
