// SPDX-License-Identifier: Apache-2.0
#include "scoring/waste/waste_report.h"

#include <gtest/gtest.h>

#include <numeric>

#include "scoring/scorers/scorers.h"
#include "test/support/builders.h"

namespace berth::test::waste_report_test {
namespace {

using Causes = std::array<double, kFragmentCauses>;

Causes CausesOf(const ANode& node, const APod& pod) {
  return FragmentByCause(node.Build(), {{pod.Shape(), 1}});
}

TEST(WasteReport, BooksAFragmentUnderItsFirstCause) {
  const ANode node =
      ANode("n").Gpus(2).Cpu(8).MemoryGib(8).Model("A").Holding(APod("x").Share(400), {0});
  EXPECT_EQ(CausesOf(node, APod("p").Cpu(1)), (Causes{1600, 0, 0, 0, 0, 0}));
  EXPECT_EQ(CausesOf(node, APod("p").Whole(9).Models({"B"})), (Causes{0, 1600, 0, 0, 0, 0}));
  EXPECT_EQ(CausesOf(node, APod("p").Share(700)), (Causes{0, 0, 600, 0, 0, 0})) << "the fuller GPU";
  EXPECT_EQ(CausesOf(node, APod("p").Share(600)), (Causes{}));
  EXPECT_EQ(CausesOf(node, APod("p").Whole(2)), (Causes{0, 0, 0, 1600, 0, 0}));
  EXPECT_EQ(CausesOf(node, APod("p").Whole(1)), (Causes{0, 0, 0, 600, 0, 0}));
  EXPECT_EQ(CausesOf(node, APod("p").Whole(1).Cpu(9)), (Causes{0, 0, 0, 0, 1600, 0}));
  EXPECT_EQ(CausesOf(node, APod("p").Whole(1).MemoryGib(9)), (Causes{0, 0, 0, 0, 0, 1600}));
  EXPECT_EQ(CausesOf(ANode("n"), APod("p").Whole(1)), (Causes{}));
}

TEST(WasteReport, SumsToFgdsMetricWhereMemorySuffices) {
  const RequestMix mix = {{APod("a").Share(300).Cpu(4).Shape(), 0.4},
                          {APod("b").Whole(2).Cpu(16).Shape(), 0.3},
                          {APod("c").Whole(1).Models({"B"}).Shape(), 0.2},
                          {APod("d").Cpu(8).Shape(), 0.1}};
  const FragmentationGradient fgd(mix);
  for (const ANode& node :
       {ANode("n").Gpus(4).Cpu(3), ANode("n").Gpus(4).Holding(APod("x").Share(800), {1}),
        ANode("n").Gpus(1).Model("B"), ANode("n").Gpus(2).Unhealthy(0)}) {
    const Causes causes = FragmentByCause(node.Build(), mix);
    EXPECT_NEAR(std::accumulate(causes.begin(), causes.end(), 0.0), fgd.FragmentMilli(node.Build()),
                1e-9);
  }
}

TEST(WasteReport, SumsByModelAndFollowsSnapshotsAndEpochs) {
  LearnedMix learned(LearningParameters{});
  WasteReport report{WasteParameters{}};
  const auto first = SnapshotOf({ANode("a").Gpus(2).Model("A"), ANode("b").Gpus(1).Model("A"),
                                 ANode("c").Gpus(1).Model("C"), ANode("d")});
  const auto nothing_known = report.Of(first, learned.Current());
  ASSERT_EQ(nothing_known.size(), 2u);
  EXPECT_EQ(nothing_known.at("A").expected_milli, 3000) << "nobody is expected";
  EXPECT_EQ(nothing_known.at("A").fragment_milli, Causes{});
  learned.Observe(APod("p").Whole(2).Shape());
  auto known = report.Of(first, learned.Current());
  EXPECT_EQ(known.at("A").expected_milli, 1000);
  EXPECT_EQ(known.at("A").fragment_milli, (Causes{0, 0, 0, 1000, 0, 0}));
  EXPECT_EQ(known.at("C").expected_milli, 1000);
  const auto second = std::make_shared<const Snapshot>(first->With(
      0, std::make_shared<const Node>(
             ANode("a").Gpus(2).Model("A").Holding(APod("x").Share(500), {0}).Build())));
  known = report.Of(second, learned.Current());
  EXPECT_EQ(known.at("A").expected_milli, 2500);
  EXPECT_EQ(known.at("A").fragment_milli, (Causes{0, 0, 0, 2500, 0, 0}));
}

TEST(WasteReport, EveryCauseHasAName) {
  EXPECT_EQ(NameOf(FragmentCause::kNoGpuAsked), "no_gpu_asked");
  EXPECT_EQ(NameOf(FragmentCause::kMemory), "memory");
}

}  // namespace
}  // namespace berth::test::waste_report_test
