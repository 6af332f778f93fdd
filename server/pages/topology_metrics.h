// SPDX-License-Identifier: Apache-2.0
//
// What /metrics says of the topology across nodes: berth_topology_domains{level} and
// berth_topology_nodes{level}. A level that shows fewer nodes than there are is one whose label is
// missing somewhere: those nodes take no pod that requires it.
#pragma once

#include <string>

#include "topology/domains/domain_tree.h"
#include "topology/domains/topology_levels.h"

namespace berth {

// Requires: the tree is of these levels.
std::string TopologyMetricsText(const TopologyLevels& levels, const DomainTree& tree);

}  // namespace berth
