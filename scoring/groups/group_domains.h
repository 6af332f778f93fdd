// SPDX-License-Identifier: Apache-2.0
//
// The nodes that members of a group may use, and those that they should prefer, relative to each
// other.
//
// Pods come one at a time, from whichever scheduler or controller forms the group. So every
// decision uses only what the snapshot holds: the members that are bound or reserved by now.
//
//   required    If members are in a domain of the level: only that domain (any of them, if another
//               scheduler put them into several). If none is placed yet: the domain that best fits
//               the whole group; if the size of the group is unknown, the one with most room.
//   preferred   No node is refused. Nodes near the placed members score higher; before the first
//               member, nodes of the domain that best fits the group, if its size is known.
//
// A node without a value at the required level is left out. A member on such a node, or on an
// unknown node, restricts no other member. Pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/recent.h"
#include "cluster/node/node.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"
#include "scoring/reason.h"
#include "topology/domains/domain_tree.h"
#include "topology/gpu_mask.h"

namespace berth {

// The placed members of a pod's group, without the pod itself.
struct GroupMembers {
  std::vector<NodeIndex> nodes;  // where, ascending
  std::int64_t placed = 0;       // how many there
  // How many are still to be placed, where that is known: others have ended. Empty: all that the
  // group's size says.
  std::optional<std::int64_t> left = {};
};

// names: the nodes to examine, sorted (ClusterState::GangNodes). of: those of that part of the gang
// alone, where its domain is asked for (PartOf); nullptr: all.
GroupMembers MembersOn(const Snapshot& snapshot, const PodRequest& pod,
                       std::span<const std::string> names, const GangPart* of = nullptr);

// Adds the required level to the verdicts of the filters. Reasons of candidates that fit, or could
// be made to fit by evictions, may become kOutsideDomain or kNoTopologyDomain. If no domain has
// room for the group, those that fit become kNoDomainHasRoom. Room counts every node that admits
// the pod, candidate or not; only if no candidate in the chosen domain fits, room counts candidates
// alone. Requires: the pod has a required level; one reason per candidate.
void RequireDomain(const Snapshot& snapshot, const DomainTree& tree, const PodRequest& pod,
                   const GroupMembers& members, std::span<const NodeIndex> candidates,
                   std::span<Reason> reasons);

// Whether the placed members allow a pod with a required level on the node: kFits, kOutsideDomain
// or kNoTopologyDomain.
Reason MayJoin(const DomainTree& tree, const PodRequest& pod, const GroupMembers& members,
               NodeIndex node);

// Whether the domain of a node would hold the missing members of the pod's group if that node were
// as given. True without a required level, and once a member is placed: then the group has its
// domain.
bool HoldsRestOfGroup(const Snapshot& snapshot, const DomainTree& tree, const PodRequest& pod,
                      const GroupMembers& members, NodeIndex index, const Node& instead);

// How near each candidate is to the members, 0..100: the share of the levels, from the widest down
// to the preferred one (else the narrowest), at which it shares a domain with them. Levels at which
// no node has a value do not count. Empty: no preference.
std::vector<int> PullOf(const Snapshot& snapshot, const DomainTree& tree, const PodRequest& pod,
                        const GroupMembers& members, std::span<const NodeIndex> candidates);

// How many pods of one shape fit a node. Pure function.

// Placed one after the other, by devices, CPU, memory and disk; 0 if a filter refuses the first. At
// most kMostPods, for a pod that asks for nothing.
constexpr int kMostPods = 1 << 16;
int PodsThatFit(const Node& node, const RequestShape& shape);
// So many of them too as kube-scheduler counts room for beside (other_limits.h).
int PodsThatFit(const Node& node, const PodRequest& pod);

// The GPUs of its node that a member of a group gets, given the other members: the same indices on
// every node if that costs nothing (topology/links/wiring.h explains why).
//
// Members come one at a time. Placed members on other nodes determine the rails; before there are
// any, the rails are those that are free on most nodes of the domain in which the group is to be.
// Pure functions.

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

// GangRoom: how many pods of a shape fit each node alone, kept from plan to plan.
//
// A memo of PodsThatFit: after the first question about a shape only the nodes that are not the
// same objects are looked at. Any thread may call it.

class GangRoom {
 public:
  // So many shapes are kept; the one not asked for longest goes first.
  static constexpr std::size_t kMaxShapes = 64;

  // Per node of the snapshot.
  [[nodiscard]] std::vector<int> Of(const std::shared_ptr<const Snapshot>& snapshot,
                                    const RequestShape& shape) BERTH_EXCLUDES(mutex_);

 private:
  struct Room {
    std::shared_ptr<const Snapshot> snapshot;
    std::vector<int> pods;  // per node
  };
  Mutex mutex_;
  Recent<RequestShape, Room> rooms_ BERTH_GUARDED_BY(mutex_){kMaxShapes};
};

}  // namespace berth
