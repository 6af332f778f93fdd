// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/demo_text.h"

#include <gtest/gtest.h>

namespace berth::replay::demo_text_test {
namespace {

DemoRuns FourRuns() {
  return {6212,
          {{"expected-waste", 7990, 162, 240.6},
           {"kube-scheduler", 7500, 652, 1352},
           {"most-allocated", 7900, 252, 399.5},
           {"fragmentation-gradient", 7960, 192, 360.4}}};
}

TEST(DemoTable, HasTheFewestIdleGpusFirstAndBarsOfTheirLength) {
  EXPECT_EQ(
      DemoTable(FourRuns(), "#"),
      "                                                          pods     pods   GPUs  \n"
      "policy                                                  placed  refused   idle  \n"
      "expected-waste          Berth's default                  7,990      162    241  #######\n"
      "fragmentation-gradient  FGD, USENIX ATC'23               7,960      192    360  "
      "###########\n"
      "most-allocated          kube-scheduler, told to pack     7,900      252    400  "
      "############\n"
      "kube-scheduler          its default: spreads pods        7,500      652  1,352  "
      "########################################\n");
}

TEST(DemoTable, HasNoBarsWhereNothingStaysIdle) {
  const std::string table = DemoTable({8, {{"mine.yaml", 1, 0, 0}}}, "#");
  EXPECT_EQ(table.find('#'), std::string::npos) << table;
  EXPECT_NE(table.find("\nmine.yaml   "), std::string::npos) << table;
}

TEST(DemoSentence, ComparesTheFirstWithTheOthers) {
  EXPECT_EQ(DemoSentence(FourRuns()),
            "Of 6,212 GPUs 241 stay idle; kube-scheduler's default leaves 1,352, MostAllocated "
            "400, FGD 360.");
  EXPECT_EQ(DemoSentence({8, {{"expected-waste", 1, 0, 2}}}), "Of 8 GPUs 2 stay idle.");
}

TEST(WithCommas, GroupsByThousands) {
  EXPECT_EQ(WithCommas(0), "0");
  EXPECT_EQ(WithCommas(999), "999");
  EXPECT_EQ(WithCommas(1000), "1,000");
  EXPECT_EQ(WithCommas(12'345'678), "12,345,678");
}

}  // namespace
}  // namespace berth::replay::demo_text_test
