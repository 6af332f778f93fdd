// SPDX-License-Identifier: Apache-2.0
//
// Where the members of a group may go and where they had better go, relative to each other.
//
// Pods come one at a time, from whichever scheduler or controller forms the group, so every
// decision is made from what a snapshot holds: the members that are bound or reserved by now.
//
//   required    members are in a domain of the level already: only that one (any of them, should
//               they be in several by somebody else's doing). None is placed yet: the domain that
//               best fits the whole group; for a group of unknown size, the one with most room.
//   preferred   nothing is refused. Nodes are pulled towards the members that are placed; before
//               the first, towards the domain that best fits the group, if its size is known.
//
// A node that has no value at the required level is left out. A member on such a node, or on one
// that is not known, binds nobody. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cluster/node.h"
#include "cluster/pod_request.h"
#include "cluster/snapshot.h"
#include "scoring/reason.h"
#include "topology/domains/domain_tree.h"

namespace berth {

// The members of a pod's group that are placed, itself aside.
struct GroupMembers {
  std::vector<NodeIndex> nodes;  // where, ascending
  std::int64_t placed = 0;       // how many there
};

// names: of the nodes on which to look, sorted (ClusterState::GangNodes).
GroupMembers MembersOn(const Snapshot& snapshot, const PodRequest& pod,
                       std::span<const std::string> names);

// Adds the required level to what the filters said: reasons of candidates that fit, or could be
// made to fit by evictions, may become kOutsideDomain, kNoTopologyDomain; where no domain has room
// for the group, those that fit become kNoDomainHasRoom. Room is what every node that admits the
// pod has, candidate or not; only where the domain chosen so has no candidate that fits, candidates
// alone count. Requires: the pod has a required level; one reason per candidate.
void RequireDomain(const Snapshot& snapshot, const DomainTree& tree, const PodRequest& pod,
                   const GroupMembers& members, std::span<const NodeIndex> candidates,
                   std::span<Reason> reasons);

// Whether a pod with a required level may be on the node as far as the members that are placed go:
// kFits, kOutsideDomain or kNoTopologyDomain.
Reason MayJoin(const DomainTree& tree, const PodRequest& pod, const GroupMembers& members,
               NodeIndex node);

// Whether the domain of a node would hold what is missing of the pod's group if that node were as
// given. True without a required level, and once a member is placed: then the group has its domain.
bool HoldsRestOfGroup(const Snapshot& snapshot, const DomainTree& tree, const PodRequest& pod,
                      const GroupMembers& members, NodeIndex index, const Node& instead);

// How near each candidate is, 0..100: the share of the levels, from the widest down to the
// preferred one (else the narrowest), at which it is in a domain with the members. Levels of which
// no node has a value do not count. Empty: nothing pulls.
std::vector<int> PullOf(const Snapshot& snapshot, const DomainTree& tree, const PodRequest& pod,
                        const GroupMembers& members, std::span<const NodeIndex> candidates);

}  // namespace berth
