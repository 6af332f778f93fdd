// SPDX-License-Identifier: Apache-2.0
#include "server/pages/waste_metrics.h"

#include <gtest/gtest.h>

namespace berth::waste_metrics_test {
namespace {

TEST(WasteMetrics, TellsGpusByModelAndCause) {
  Waste waste{1500, {}};
  waste.fragment_milli[static_cast<std::size_t>(FragmentCause::kCpu)] = 250;
  const std::string text = WasteMetricsText({{"A100", waste}, {"odd \"name\"", {}}});
  for (const char* line :
       {"# TYPE berth_expected_waste_gpus gauge\n",
        "berth_expected_waste_gpus{model=\"A100\"} 1.500000\n",
        "berth_expected_waste_gpus{model=\"odd \\\"name\\\"\"} 0.000000\n",
        "berth_fragmentation_gpus{model=\"A100\",cause=\"cpu\"} 0.250000\n",
        "berth_fragmentation_gpus{model=\"A100\",cause=\"memory\"} 0.000000\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

}  // namespace
}  // namespace berth::waste_metrics_test
