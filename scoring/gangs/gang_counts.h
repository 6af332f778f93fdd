// SPDX-License-Identifier: Apache-2.0
//
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
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cluster/state/snapshot.h"
#include "scoring/gangs/gang_class.h"
#include "scoring/scorer.h"

namespace berth {

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
