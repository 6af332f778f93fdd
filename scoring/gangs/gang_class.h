// SPDX-License-Identifier: Apache-2.0
//
// Members of a gang that are alike, and where such members fit. Pure but for the memo of room.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cluster/state/snapshot.h"
#include "scoring/gangs/gang_plan.h"
#include "scoring/groups/group_domains.h"
#include "scoring/scorer.h"

namespace berth {

// Of one kind (SamePodKind), with the same claims and excluded nodes, and in one role where roles
// have minimums: which of them goes where makes no difference.
struct GangClass {
  const PodRequest* pod = nullptr;   // of the first member; it differs from the others in name
  std::vector<std::size_t> members;  // indices into the ask, by rank, then UID
  std::vector<int> room;             // [node] so many fit there alone; 0 where they may not go
  std::int64_t milli = 0;            // of GPU compute a member asks for, about
  int claims = kNoClaims;            // GangMember::claims

  [[nodiscard]] const RequestShape& shape() const { return pod->shape; }
  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(members.size()); }
};

// So many members at least of those classes together.
struct RoleNeed {
  std::vector<std::size_t> classes;
  std::int64_t members = 0;
};

// What the roles of the ask need of members that are fixed nowhere. Requires: the classes are
// those of the ask.
std::vector<RoleNeed> NeedsOf(const GangAsk& ask, std::span<const GangClass> classes);

// Whether so many members per class are enough for every role.
template <class Counts>
bool MeetsRoles(std::span<const RoleNeed> needs, const Counts& counts) {
  return std::ranges::all_of(needs, [&counts](const RoleNeed& need) {
    std::int64_t members = 0;
    for (const std::size_t c : need.classes) members += counts[c];
    return members >= need.members;
  });
}

// The indices of the members by rank, then UID.
std::vector<std::size_t> ByRank(std::span<const GangMember> members);

// Of the members that are fixed nowhere; those that are hardest to place first. Requires: `by_rank`
// is ByRank.
std::vector<GangClass> ClassesOf(const std::shared_ptr<const Snapshot>& snapshot, GangRoom& room,
                                 const GangAsk& ask, std::span<const std::size_t> by_rank);

// The exact search of a gang's plan: how many members of each class go to each node.
//
// Once these counts are given, nodes have nothing to do with each other. So a plan is a path
// through the nodes, the state being how many of each class are placed by now:
//
//   classes (4 GPUs) x 2, (1 GPU) x 3;  nodes of 8 and 3 GPUs
//   node 1 takes at most (2,0) (1,3)    from 0,0 to 2,0  1,3
//   node 2 takes at most (0,3)          from 2,0 to 2,3: all of them
//
// What a node takes is found by trying on a copy of it, in every order of classes and with every
// choice of GPU for a share, a few states kept per vector of counts.

struct CountedPod {
  std::size_t of_class = 0;
  NodeIndex node = kNoNode;
  DeviceChoice choice;
};

// What may be spent on searches, all of one plan together; counts down.
struct SearchSteps {
  std::int64_t left = 2'000'000;
  bool ran_out = false;
};

// So many members at least.
struct SearchGoal {
  std::int64_t minimum = 0;
  std::span<const RoleNeed> roles = {};
};

// As many members on those nodes as can be, in the order in which they have to be put; empty: fewer
// than the goal, or the steps ran out (which `steps` says). Requires: snapshot is the one of the
// classes' room. devices: as for GangFill.
std::optional<std::vector<CountedPod>> SearchCounts(const Snapshot& snapshot,
                                                    std::span<const GangClass> classes,
                                                    GangDevices* devices,
                                                    std::span<const NodeIndex> nodes,
                                                    const SearchGoal& goal, SearchSteps& steps);

}  // namespace berth
