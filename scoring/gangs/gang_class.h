// SPDX-License-Identifier: Apache-2.0
//
// Members of a gang that are alike, and where such members fit. Pure but for the memo of room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cluster/snapshot.h"
#include "scoring/gangs/gang_plan.h"
#include "scoring/gangs/gang_room.h"

namespace berth {

// Whether the pods are equal in shape and constraints.
bool AskForTheSame(const PodRequest& a, const PodRequest& b);

// Equal in shape, constraints and excluded nodes: which of them goes where makes no difference.
struct GangClass {
  const PodRequest* pod = nullptr;   // of the first member; it differs from the others in name
  std::vector<std::size_t> members;  // indices into the ask, by rank, then UID
  std::vector<int> room;             // [node] so many fit there alone; 0 where they may not go
  std::int64_t milli = 0;            // of GPU compute a member asks for, about

  [[nodiscard]] const RequestShape& shape() const { return pod->shape; }
  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(members.size()); }
};

// The indices of the members by rank, then UID.
std::vector<std::size_t> ByRank(std::span<const GangMember> members);

// Of the members that are fixed nowhere; those that are hardest to place first. Requires: `by_rank`
// is ByRank.
std::vector<GangClass> ClassesOf(const std::shared_ptr<const Snapshot>& snapshot, GangRoom& room,
                                 std::span<const GangMember> members,
                                 std::span<const std::size_t> by_rank);

}  // namespace berth
