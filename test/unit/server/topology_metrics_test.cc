// SPDX-License-Identifier: Apache-2.0
#include "server/pages/topology_metrics.h"

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace berth::topology_metrics_test {
namespace {

TEST(TopologyMetrics, TellsDomainsAndNodesByLevel) {
  const std::vector<std::string_view> values = {"z", "a", "z", "b", "z", "", "", ""};
  const std::string text =
      TopologyMetricsText({{"zone", {"x"}}, {"rack", {"y"}}}, DomainTree(4, 2, values));
  for (const char* line :
       {"berth_topology_domains{level=\"zone\"} 1\n", "berth_topology_domains{level=\"rack\"} 2\n",
        "berth_topology_nodes{level=\"zone\"} 3\n", "berth_topology_nodes{level=\"rack\"} 2\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

}  // namespace
}  // namespace berth::topology_metrics_test
