// SPDX-License-Identifier: Apache-2.0
//
// Fleet: the nodes with GPUs of a cluster by kind, as if nothing ran on them. A value.
#pragma once

#include <string>
#include <vector>

#include "cluster/snapshot.h"
#include "scoring/gpu_state.h"

namespace berth {

struct NodeKind {
  std::string gpu_model;
  GpuState empty;
  int nodes = 0;
};

// In an order that depends on the kinds alone.
using Fleet = std::vector<NodeKind>;

Fleet FleetOf(const Snapshot& snapshot);

}  // namespace berth
