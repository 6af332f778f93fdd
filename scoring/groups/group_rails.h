// SPDX-License-Identifier: Apache-2.0
//
// Which GPUs of its node a member of a group gets, in view of the other members: the same numbers
// on every node where that costs nothing (topology/links/rail_alignment.h has why).
//
// Members come one at a time. Those that are placed on other nodes tell the rails; before there are
// any, those are the rails that are free on most nodes of the domain in which the group is to be.
// Pure functions.
#pragma once

#include "cluster/node.h"
#include "cluster/placement.h"
#include "cluster/pod_request.h"
#include "cluster/snapshot.h"
#include "scoring/groups/group_domains.h"
#include "topology/domains/domain_tree.h"
#include "topology/gpu_mask.h"

namespace berth {

// The rails for a member that goes to that node; 0 where there is nothing to align with: it stands
// alone, or does not ask for whole GPUs.
GpuMask RailsFor(const Snapshot& snapshot, const DomainTree& tree, const PodRequest& pod,
                 const GroupMembers& members, NodeIndex node);

// As many GPUs of `free` as are chosen, and as good for the ask, with more of the rails where that
// can be: no lower quality, no more NUMA groups, and what stays free no worse for the next pod. Of
// known links of more than kMaxTableGpus GPUs, or for an ask with a pattern, those that are chosen.
// Requires: chosen is part of free.
GpuMask AlignedWith(const GpuLinks& links, GpuMask rails, GpuMask free, GpuMask chosen,
                    const LinkAsk& ask);

// What a pod for whole GPUs was to get, on these rails as far as AlignedWith goes.
Placement OnRails(const Node& node, const RequestShape& shape, Placement placement, GpuMask rails);

}  // namespace berth
