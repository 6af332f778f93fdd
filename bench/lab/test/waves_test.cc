// SPDX-License-Identifier: Apache-2.0
#include "bench/lab/waves/waves.h"

#include <gtest/gtest.h>

#include "bench/replay/engine_session.h"
#include "test/support/builders.h"

namespace berth::replay::waves_test {
namespace {

using test::ANode;
using test::APod;

constexpr int kSeeds = 3;
constexpr double kMostLostPct = 5;

std::vector<RequestShape> Times(int count, const APod& pod) {
  return std::vector<RequestShape>(static_cast<std::size_t>(count), pod.Shape());
}

TEST(MostWholeGpus, PacksWholeGpusAndShares) {
  const std::vector<NodeSpec> eights(8, ANode("n").Gpus(8).Spec());
  EXPECT_EQ(MostWholeGpus(eights, {}), 64);
  EXPECT_EQ(MostWholeGpus(eights, Times(12, APod("p").Whole(2))), 40);
  EXPECT_EQ(MostWholeGpus(eights, Times(7, APod("p").Whole(3))), 32) << "two on a node";
  EXPECT_EQ(MostWholeGpus(eights, Times(20, APod("p").Share(700))), 40);
  EXPECT_EQ(MostWholeGpus(eights, Times(33, APod("p").Share(250))), 48) << "on nine GPUs";
  EXPECT_EQ(MostWholeGpus(eights, Times(12, APod("p").Mig("2g.10gb"))), 56);
}

TEST(MostWholeGpus, LeavesTheNodesIdleThatHaveTheMostGpus) {
  std::vector<NodeSpec> nodes(2, ANode("n").Gpus(8).Spec());
  nodes.resize(4, ANode("n").Gpus(4).Spec());
  EXPECT_EQ(MostWholeGpus(nodes, Times(3, APod("p").Whole(1))), 20);
  EXPECT_EQ(MostWholeGpus(nodes, Times(1, APod("p").Whole(8))), 16);
  EXPECT_EQ(MostWholeGpus(nodes, Times(5, APod("p").Whole(1))), 16);
}

TEST(Waves, TheDefaultProfileLosesHardlyAnyWholeNode) {
  const auto totals = RunAllWaves({*ProfileNamed("expected-waste")}, kSeeds, {}).value();
  ASSERT_GT(totals.size(), 10u);
  for (const WavesTotal& total : totals) {
    EXPECT_EQ(total.unplaced, 0) << total.scenario;
    EXPECT_GT(total.most_whole_gpus, 0) << total.scenario;
    EXPECT_LE(total.lost_pct(), kMostLostPct) << total.scenario;
  }
}

TEST(Waves, TiesLeftToKubeSchedulerScatterThePods) {
  ProfileSpec equal = *ProfileNamed("fragmentation-gradient");
  const auto totals = RunAllWaves({equal}, 1, {}).value();
  EXPECT_GT(totals.back().lost_pct(), 10 * kMostLostPct / 2) << "the scenario can tell";
}

}  // namespace
}  // namespace berth::replay::waves_test
