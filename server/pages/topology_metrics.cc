// SPDX-License-Identifier: Apache-2.0
#include "server/pages/topology_metrics.h"

#include "server/telemetry/metrics_text.h"

namespace berth {

std::string TopologyMetricsText(const TopologyLevels& levels, const DomainTree& tree) {
  MetricsText text;
  text.Family("berth_topology_domains", "gauge", "Topology domains, by level");
  for (std::size_t level = 0; level < levels.size(); ++level) {
    text.Sample(tree.CountNamed(level), {{"level", levels[level].name}});
  }
  text.Family("berth_topology_nodes", "gauge", "Nodes with a label of the level");
  for (std::size_t level = 0; level < levels.size(); ++level) {
    std::size_t nodes = 0;
    for (std::size_t node = 0; node < tree.nodes(); ++node) {
      nodes += tree.named(tree.DomainOf(node, level)) ? 1U : 0U;
    }
    text.Sample(nodes, {{"level", levels[level].name}});
  }
  return text.Take();
}

}  // namespace berth
