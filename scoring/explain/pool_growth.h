// SPDX-License-Identifier: Apache-2.0
//
// GrowPools: what the next nodes of each pool would take of pods that wait.
//
// First the pods are placed as the cluster is, as a plan places them (what_if.h). Those that are
// left over are then tried with one, two, ... more nodes of one pool at a time: each a copy of a
// node of the pool, empty, beside all that there is. So pools are alternatives, and so are the
// numbers of one pool: they do not add up. Pools that have no node yet are tried after the others,
// by a template of their nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "scoring/explain/node_pools.h"
#include "scoring/explain/what_if.h"

namespace berth {

inline constexpr int kMostGrowth = 100;  // nodes of one pool
inline constexpr std::size_t kMostToldKinds = 200;

struct Taken {
  std::int64_t pods = 0;
  std::int64_t gpu_milli = 0;  // that these ask for, thousandths; MIG devices are not counted
  friend bool operator==(const Taken&, const Taken&) = default;
};

struct PoolGrowth {
  NodePool pool;
  std::vector<Taken> taken;  // [i]: by i + 1 nodes
};

struct Growth {
  EditedNodes nodes;  // by the edits of the ask; its snapshot has neither pods nor pools' nodes
  Taken asked, now;   // by all pods; by those that have a place without another node
  std::vector<PoolGrowth> pools;
  // Pods of the ask that have no place with so many nodes of every pool even by themselves, or with
  // their gang alone. Of the first kMostToldKinds kinds of pods that are left over.
  std::vector<std::size_t> nowhere;
};

// most_nodes: 1..kMostGrowth of each pool. at_zero: a template for each pool that has no node yet.
// Error: as WhatIf, and kInvalidArgument where pools times nodes are more than kMostAddedNodes.
Result<Growth> GrowPools(const Engine& engine, const WhatIfAsk& ask, int most_nodes,
                         std::span<const NodeSpec> at_zero = {});

}  // namespace berth
