// SPDX-License-Identifier: Apache-2.0
//
// Named grants: devices by another scheduler's record, whose GPUs it names by their UUIDs, or of
// which it depends on the node whether the record counts. What they are is known once the node is,
// and says its UUIDs; until then their pod counts as one with unknown devices (assumed_grants.h).
#pragma once

#include "cluster/node/node.h"
#include "cluster/values/placement.h"

namespace berth {

// Whether it depends on its node what one of the grants is.
bool HasNamedGrants(const Placement& placement);

// The placement with the indices of the node's GPUs in place of their UUIDs, where the node has
// them (nullptr: not known). What a record leaves open follows there: the compute (0) goes with the
// memory, the memory (0) with the compute. GPUs of a node that shows none of its GPUs by themselves
// are left out, and so are all devices by the record of an agent that the node does not show.
Placement WithIndices(Placement said, const NodeSpec* node);

}  // namespace berth
