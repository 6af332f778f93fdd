// SPDX-License-Identifier: Apache-2.0
//
// PlanGang: where the members of a gang go, all of them in one plan or none.
//
//   domains     required level: one domain of it, or nothing. Preferred (the narrowest, if none is
//               named): the narrowest level with a domain that holds them all, then wider ones, at
//               last the cluster. Of several domains the tightest, so that whole ones are left
//               whole, or the one that the members' classes wish for (gang_fill.h)
//   within      the same rule level by level, so that members are as near to each other as can be;
//               within the narrowest domain each goes to the node that the profile likes best
//   exactly     where that leaves a member over, a search over counts per kind of member and node
//               (gang_class.h)
//   parts       members of some roles in one domain of their own, within that (gang_parts.cc)
//   roles       the minimums of roles are met as well: their members are placed before the others
//               where that is the only way
//   extras      the minimum is what the gang cannot do without; members beyond it are placed where
//               there is room in the same domain
//   ranks       members of one kind are dealt to their nodes in the order of the tree, by rank
//   claims      members get the devices of their ResourceClaims, all of them: no member's devices
//               are in the way of another's (gang_devices.h)
//   rails       whole GPUs on the same indices on every node where that costs nothing
//
// A function of its arguments: the order in which members are given makes no difference, and what
// is bounded is bounded in steps, never in time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"
#include "scoring/engine/engine.h"
#include "scoring/groups/group_domains.h"
#include "topology/domains/domain_tree.h"

namespace berth {

class GangDevices;
inline constexpr int kNoClaims = -1;

struct GangMember {
  PodRequest pod;
  int rank = 0;                          // neighbours in rank are to be neighbours in the tree
  NodeIndex fixed = kNoNode;             // it goes there, or there is no plan
  std::vector<NodeIndex> excluded = {};  // it may not go there; sorted
  // Nor there, sorted: of the members of a part that is kept to one domain. nullptr: of none.
  std::shared_ptr<const std::vector<NodeIndex>> outside = nullptr;
  int claims = kNoClaims;  // what devices it needs: a kind of GangAsk::devices
};

struct GangAsk {
  std::vector<GangMember> members;  // that wait; UIDs unique
  std::int64_t minimum = 0;         // how many of them at least
  GroupMembers present = {};        // where others are
  DomainAsk domain = {};
  // How many of them at least of each role (PodRequest::role), names unique: a plan has as many.
  std::vector<GangRole> roles = {};
  // Parts that are in one domain each (Gang::parts), without the whole, whose domain is above.
  std::vector<GangPart> parts = {};
  // The devices that members get by claims; nullptr: none of them needs any.
  GangDevices* devices = nullptr;
};

// With what to plan. Requires: the tree is that of the snapshot.
struct Planning {
  std::shared_ptr<const Snapshot> snapshot;
  const DomainTree& tree;
  Engine& engine;
  GangRoom& room;
};

struct GangPlan {
  struct Place {
    std::size_t member = 0;  // index into the ask
    NodeIndex node = kNoNode;
    Placement placement;
  };
  std::vector<Place> places;                     // by member
  TopologyDomain domain = DomainTree::kCluster;  // in which all of them are
};

// Why there is no plan.
struct GangShortage {
  TopologyDomain domain = DomainTree::kCluster;  // that comes nearest
  std::int64_t fits = 0;                         // members that it has room for, each kind alone
  bool searched = true;  // false: the steps ran out before everything was searched
  // A part of the ask that finds no domain even without the others, if that is why: so many of it
  // are needed, and `domain` has room for `fits` of them.
  std::optional<std::size_t> part = {};
  std::int64_t part_needs = 0;
};

// "group decode", "groups decode, prefill", "all pods".
std::string GroupsText(const GangPart& part);

// "group decode: room for 2 of its 4 pods in rack r1, the rack with the most". Requires:
// shortage.part.
std::string PartText(const Planning& with, const TopologyLevels& levels, const GangAsk& ask,
                     const GangShortage& shortage);

// Where of the pod's gang those are that prefer a domain, and have a place: "group decode: in rack
// r1, as preferred", "group decode: spread over rack r1, rack r2; one rack is preferred, and rack
// r1, the one with the most, has room for 1 of its 2 pods".
std::vector<std::string> WishTexts(const Snapshot& snapshot, const DomainTree& tree,
                                   const TopologyLevels& levels, const PodRequest& member);

// The domain that the pod's gang as a whole asks for, and those of its parts.
void AskForDomains(const PodRequest& pod, GangAsk& ask);

// Requires: 1 <= minimum <= members.
tl::expected<GangPlan, GangShortage> PlanGang(const Planning& with, const GangAsk& ask);
// The same, of an ask that has parts.
tl::expected<GangPlan, GangShortage> PlanInParts(const Planning& with, const GangAsk& ask);

}  // namespace berth
