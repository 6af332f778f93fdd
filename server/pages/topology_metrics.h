// SPDX-License-Identifier: Apache-2.0
//
// The metrics of the topology across nodes: berth_topology_domains{level} and
// berth_topology_nodes{level}. If a level has fewer nodes than the cluster, the others lack its
// label and take no pod that requires the level.
#pragma once

#include <string>

#include "topology/domains/domain_tree.h"
#include "topology/domains/topology_levels.h"

namespace berth {

// Requires: the tree is of these levels.
std::string TopologyMetricsText(const TopologyLevels& levels, const DomainTree& tree);

}  // namespace berth
