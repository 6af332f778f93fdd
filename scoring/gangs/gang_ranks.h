// SPDX-License-Identifier: Apache-2.0
//
// Which member of a gang gets which of its places, and which GPUs there: by rank along the tree,
// and on the same rails. Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"
#include "scoring/gangs/gang_class.h"
#include "scoring/gangs/gang_plan.h"
#include "topology/domains/domain_tree.h"

namespace berth {

// Neighbours in rank should be neighbours in the cluster: the index that its controller gave the
// pod (Job, StatefulSet), else the number at the end of its name; 0 where there is none.
int MemberRank(const PodRequest& pod);

// A place for some member of a class.
struct ClassPlace {
  std::size_t of_class = 0;
  NodeIndex node = kNoNode;
  Placement placement;
};

// The places of each class in the order of the tree to its members by rank; members without a place
// are those of the highest ranks.
std::vector<GangPlan::Place> DealByRank(const DomainTree& tree, std::span<const GangClass> classes,
                                        std::vector<ClassPlace> places);

// Moves whole GPUs of a plan to the same indices on every node, where OnRails allows it
// (group_domains.h). The rails are those of the members that are present, else those that are free
// on most of the plan's nodes.
void AlignOnRails(const Snapshot& snapshot, const GangAsk& ask, std::span<GangPlan::Place> places);

}  // namespace berth
