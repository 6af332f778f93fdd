// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/time/service_report.h"

#include <gtest/gtest.h>

namespace berth::replay::service_report_test {
namespace {

PolicyResult Row(const std::string& policy, double served, double longest_wait_s) {
  PolicyResult row{policy, {}};
  row.result.service[static_cast<std::size_t>(SizeClass::kAll)] = {.served_gpu_hours = served,
                                                                   .demand_gpu_hours = 200};
  row.result.service[static_cast<std::size_t>(SizeClass::kEight)].wait_longest_s = longest_wait_s;
  return row;
}

TEST(Against, GivesPointsOfTheDemandAndTheRatioOfTheLongestWait) {
  const PolicyResult alone = Row("best-fit", 180, 400);
  const std::string text = Against(alone, {alone, Row("kept", 183, 100), Row("turns", 150, 40)});
  EXPECT_NE(text.find("against best-fit "), std::string::npos) << text;
  EXPECT_NE(text.find("best-fit                                  +0.00                   1.00\n"
                      "kept                                      +1.50                   0.25\n"
                      "turns                                    -15.00                   0.10\n"),
            std::string::npos)
      << text;
}

TEST(Against, HasNoRatioWhereNoPodOfEightGpusHasWaited) {
  const PolicyResult alone = Row("best-fit", 180, 0);
  const std::string text = Against(alone, {Row("kept", 180, 60)});
  EXPECT_TRUE(text.ends_with("+0.00                      -\n")) << text;
}

}  // namespace
}  // namespace berth::replay::service_report_test
