// SPDX-License-Identifier: Apache-2.0
//
// Which domains the pods of a group should go to, and how many to each node. Pure functions.
//
// The rules are those of Kueue's topology-aware scheduling (kubernetes-sigs/kueue,
// pkg/cache/scheduler/tas_flavor_snapshot.go; keps/2724-topology-aware-scheduling):
//
//   best fit       the largest domains first, and as the last the smallest that holds the rest: the
//                  fewest domains, and of them the tightest. For required and preferred levels.
//   least free     the smallest first: fills what is nearly full, leaves whole domains whole. For
//                  pods to which it does not matter.
//
// Level by level from wide to narrow. Room 3, 3, 2, 1 of four nodes and seven pods: best fit gives
// 3 3 - 1, least free 1 3 2 1.
//
// Slices: pods that come in packs of a fixed size, each pack within one domain of the slice level.
// Room 6, 5, 4, 3, 2 and packs of two on one node: best fit gives 12 pods as 6 - 4 - 2.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "topology/domains/domain_tree.h"

namespace berth {

enum class DomainMode {
  kRequired,   // all in one domain of the level, or nowhere
  kPreferred,  // in one domain of the level, else of the next wider one that holds them, else in
               // as few of the widest as possible
  kUnconstrained,  // anywhere
};

struct DomainWish {
  std::int64_t pods = 1;  // > 0; a multiple of slice_size
  DomainMode mode = DomainMode::kRequired;
  std::size_t level = 0;  // < levels(); ignored when unconstrained
  std::int64_t slice_size = 1;
  // Level of the slices: level <= slice_level <= levels(), where levels() means the nodes. Empty:
  // levels().
  std::optional<std::size_t> slice_level;
};

struct DomainChoice {
  // The domain that holds all the pods; the cluster if they are spread over several domains of the
  // widest level, or unconstrained.
  TopologyDomain domain = DomainTree::kCluster;
  std::vector<std::int64_t> pods;  // per node
};

// Empty if there is no room. room: how many of the pods fit each node, >= 0. Ties go to the domain
// with less room left over, then to the first in the order of the tree.
std::optional<DomainChoice> ChooseDomains(const DomainTree& tree, std::span<const int> room,
                                          const DomainWish& wish);

}  // namespace berth
