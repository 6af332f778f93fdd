// SPDX-License-Identifier: Apache-2.0
//
// Members of a gang that are alike, and where such members fit. Pure but for the memo of room.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cluster/state/snapshot.h"
#include "scoring/gangs/gang_plan.h"
#include "scoring/groups/group_domains.h"

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

}  // namespace berth
