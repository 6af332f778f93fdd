// SPDX-License-Identifier: Apache-2.0
//
// Fleet: the GPU nodes of a cluster, by kind. A value.
#pragma once

#include <string>
#include <vector>

#include "cluster/state/snapshot.h"
#include "scoring/waste/card_worth.h"
#include "scoring/waste/gpu_state.h"

namespace berth {

struct NodeKind {
  std::string gpu_model;
  GpuState state;
  int nodes = 0;
};

using Fleet = std::vector<NodeKind>;

// All of them as if empty, in an order that depends on the kinds alone.
Fleet FleetOf(const Snapshot& snapshot);

// At least `nodes` of them (all, where there are fewer) and less than twice as many, each as it is
// now, in even steps by name.
Fleet SampleOf(const Snapshot& snapshot, std::size_t nodes);

// The part of its healthy GPUs that is in use, 0..1; 0 without GPUs.
double UsedOf(const Snapshot& snapshot, const CardWorth& worth = {});

}  // namespace berth
