// SPDX-License-Identifier: Apache-2.0
//
// Nodes whose links are known, from the device picker to victims, filters, scorers and reports.
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "scoring/devices/device_picker.h"
#include "scoring/filters/device_fit.h"
#include "scoring/registry.h"
#include "scoring/scorers/scorers.h"
#include "scoring/victims.h"
#include "test/support/builders.h"
#include "test/support/wirings.h"

namespace berth::test::linked_devices_test {
namespace {

constexpr LinkAsk kLinked = {.link = LinkWish::kRequired};

// Bridges join 0-1, 2-3 and 6-7; 4 and 5 have none.
ANode Cards() { return ANode("n").Gpus(8).Linked(LinksOf(BridgedCards())); }

GpuMask WholeOn(const ANode& node, const APod& pod) {
  const auto choices = DeviceChoices(node.Build(), pod.Shape(), DeviceRule::kTightest);
  return choices.empty() ? 0 : choices.front().gpus;
}

Reason Objection(const ANode& node, const APod& pod) {
  return FirstObjection(node.Build(), pod.Shape());
}

TEST(LinkedDevices, WholeGpusAreTheBestLinkedOfThoseThatAreIdle) {
  const ANode node = Cards().Holding(APod("a").Whole(1), {0}).Holding(APod("b").Whole(1), {2});
  EXPECT_EQ(WholeOn(node, APod("p").Whole(2)), 0b11000000u);
  EXPECT_EQ(WholeOn(ANode("n").Gpus(8).Holding(APod("a").Whole(1), {0}), APod("p").Whole(2)),
            0b110u)
      << "the lowest indices where nothing is known";
}

TEST(LinkedDevices, OneGpuIsTheOneThatOthersMissLeast) {
  EXPECT_NE(WholeOn(Cards(), APod("p").Whole(1)) & 0b00110000, 0u) << "one without a bridge";
  const ANode widowed = Cards()
                            .Holding(APod("a").Whole(2), {0, 1})
                            .Holding(APod("b").Whole(2), {4, 5})
                            .Holding(APod("c").Whole(1), {2});
  EXPECT_EQ(WholeOn(widowed, APod("p").Whole(1)), 0b1000u)
      << "the other end of its bridge is taken";
}

TEST(LinkedDevices, AnUnhealthyGpuIsNoPartner) {
  const ANode node = Cards().Unhealthy(1).Unhealthy(6);
  EXPECT_EQ(WholeOn(node, APod("p").Whole(2)), 0b1100u);
  EXPECT_EQ(WholeOn(node, APod("p").Whole(2).Links(kLinked)), 0b1100u);
}

TEST(LinkedDevices, BreaksTiesOfSharesByTheOutlookOfLinks) {
  const auto first = [](const ANode& node, DeviceRule rule) {
    return DeviceChoices(node.Build(), APod("p").Share(300).Shape(), rule).front().gpus;
  };
  EXPECT_NE(first(Cards(), DeviceRule::kTightest) & 0b00110000, 0u);
  EXPECT_NE(first(Cards(), DeviceRule::kBestScore) & 0b00110000, 0u);
  EXPECT_EQ(first(Cards(), DeviceRule::kFirst), 1u) << "the rule is the lowest index";
  const ANode used = Cards().Holding(APod("a").Share(500), {0});
  EXPECT_EQ(first(used, DeviceRule::kTightest), 1u) << "the tightest comes before the links";
  const ANode two = Cards().Holding(APod("a").Share(500), {0}).Holding(APod("b").Share(500), {5});
  EXPECT_EQ(first(two, DeviceRule::kTightest), 0b100000u) << "1 waits for 0";
}

TEST(LinkedDevices, SharesOfSeveralGpusAreOfLinkedOnes) {
  EXPECT_EQ(WholeOn(Cards().Holding(APod("a").Share(500), {0}), APod("p").Shares(2, 300)), 0b11u)
      << "of the idle ones beside the fullest the one with a bridge to it";
  const APod two = APod("p").Shares(2, 300).Links(kLinked);
  const ANode one_pair =
      Cards().Holding(APod("a").Share(900), {0}).Holding(APod("b").Share(900), {2});
  EXPECT_EQ(WholeOn(one_pair, two), 0b11000000u);
  EXPECT_EQ(Objection(one_pair, two), Reason::kFits);
  const ANode no_pair = ANode(one_pair).Holding(APod("c").Share(900), {6});
  EXPECT_EQ(WholeOn(no_pair, two), 0u);
  EXPECT_EQ(Objection(no_pair, two), Reason::kLinkedBusy);
  EXPECT_EQ(Objection(no_pair, APod("p").Shares(3, 300).Links(kLinked)), Reason::kNeverLinked);
  EXPECT_EQ(Objection(ANode("n").Gpus(8), two), Reason::kLinksUnknown);
}

TEST(LinkedDevices, ThatAreRequiredAreFoundOrRefusedWithTheReason) {
  const APod pod = APod("p").Whole(2).Links(kLinked);
  const ANode halved = Cards()
                           .Holding(APod("a").Whole(1), {0})
                           .Holding(APod("b").Whole(1), {3})
                           .Holding(APod("c").Whole(1), {7});
  EXPECT_EQ(Objection(Cards(), pod), Reason::kFits);
  EXPECT_EQ(Objection(halved, pod), Reason::kLinkedBusy);
  EXPECT_EQ(Objection(halved, APod("p").Whole(2)), Reason::kFits);
  EXPECT_EQ(Objection(Cards(), APod("p").Whole(3).Links(kLinked)), Reason::kNeverLinked);
  EXPECT_EQ(Objection(Cards(), APod("p").Whole(9).Links(kLinked)), Reason::kTooFewGpus);
  EXPECT_EQ(Objection(ANode("n").Gpus(8), pod), Reason::kLinksUnknown);
  EXPECT_EQ(Objection(Cards().Unhealthy(0).Unhealthy(2).Unhealthy(6), pod), Reason::kNeverLinked);
  ANode full = Cards();
  for (int gpu = 0; gpu < 7; ++gpu) full.Holding(APod(std::to_string(gpu)).Whole(1), {gpu});
  EXPECT_EQ(Objection(full, pod), Reason::kGpusBusy);
}

TEST(LinkedDevices, OfOneNumaGroupAreFoundOrRefused) {
  const APod pod = APod("p").Whole(4).Links({.numa = NumaWish::kRequired});
  EXPECT_EQ(Objection(Cards(), pod), Reason::kFits);
  EXPECT_EQ(Objection(Cards().Holding(APod("a").Whole(1), {1}), pod), Reason::kFits);
  EXPECT_EQ(
      Objection(Cards().Holding(APod("a").Whole(1), {1}).Holding(APod("b").Whole(1), {4}), pod),
      Reason::kLinkedBusy);
  EXPECT_EQ(Objection(Cards(), APod("p").Whole(5).Links({.numa = NumaWish::kRequired})),
            Reason::kNeverLinked);
}

TEST(LinkedDevices, VictimsLeaveGpusThatAreLinked) {
  ANode node = Cards();
  for (int gpu = 0; gpu < 8; ++gpu) {
    node.Holding(APod(std::string(1, static_cast<char>('a' + gpu))).Whole(1), {gpu});
  }
  const EvictionLimits no_limits{{}, [](const GangId&) { return std::size_t{0}; }};
  const auto victims = [&](const ANode& from, const APod& pod) {
    return AddedVictims(from.Build(), pod.Request(), {}, no_limits);
  };
  using Uids = std::vector<std::string>;
  const APod pod = APod("p").Whole(2).Priority(100).Links(kLinked);
  EXPECT_EQ(victims(node, pod), (Uids{"uid-a", "uid-b"}));
  EXPECT_EQ(AfterEvictions(node.Build(), pod.Request(), Reason::kGpusBusy), Reason::kGpusBusy);

  // Idle are 4 and 5, which are not linked, and 7: its partner goes.
  const ANode some = Cards()
                         .Holding(APod("a").Whole(2), {0, 1})
                         .Holding(APod("b").Whole(2), {2, 3})
                         .Holding(APod("c").Whole(1), {6});
  EXPECT_EQ(victims(some, pod), Uids{"uid-c"});
  EXPECT_EQ(victims(some, APod("p").Whole(2).Priority(100)), Uids()) << "without the ask it fits";

  const ANode in_the_way = Cards()
                               .Holding(APod("a").Whole(2).Priority(200), {0, 2})
                               .Holding(APod("b").Whole(1).Priority(200), {6})
                               .Holding(APod("c").Whole(1), {4});
  EXPECT_EQ(victims(in_the_way, pod), std::nullopt) << "evictions would leave unlinked GPUs";
  EXPECT_EQ(AfterEvictions(in_the_way.Build(), pod.Request(), Reason::kLinkedBusy),
            Reason::kLinkedHeld);
}

TEST(LinkReport, SaysInNumbersWhatIsMissing) {
  const auto shortage = [](const ANode& node, const APod& pod) {
    return LinkShortage(node.Build(), pod.Shape());
  };
  const ANode four = Cards()
                         .Holding(APod("a").Whole(1), {0})
                         .Holding(APod("b").Whole(1), {2})
                         .Holding(APod("c").Whole(2), {4, 5});
  EXPECT_EQ(shortage(four, APod("p").Whole(4).Links(kLinked)),
            "needs 4 linked GPUs; 4 free, largest linked set 2");
  EXPECT_EQ(shortage(four, APod("p").Whole(3).Links({.numa = NumaWish::kRequired})),
            "needs 3 GPUs of one NUMA group; 4 free, at most 2 of one");
  EXPECT_EQ(shortage(four, APod("p").Whole(2).Links({.min_megabytes_per_s = 400'000})),
            "needs a ring of 400 GB/s through 2 GPUs; 4 free, best ring 300 GB/s");
  EXPECT_EQ(shortage(four, APod("p").Whole(5).Links(kLinked)), "needs 5 GPUs; 4 free, too few");
  EXPECT_EQ(shortage(four, APod("p").Whole(2).Links(kLinked)), "");
  EXPECT_EQ(shortage(four, APod("p").Whole(9)), "") << "nothing is asked of links";
  EXPECT_EQ(shortage(ANode("n").Gpus(8), APod("p").Whole(2).Links(kLinked)),
            "the links of the node's GPUs are not known");
}

TEST(LinkReport, ComparesWhatAPodGotWithTheBestThatWasIdle) {
  const Node node = Cards().Build();
  const APod pair = APod("p").Whole(2);
  EXPECT_EQ(LinkQualityRatio(node, pair.On("n", {6, 7})), 1.0);
  const auto broken = LinkQualityRatio(node, pair.On("n", {4, 5}));
  ASSERT_TRUE(broken);
  EXPECT_LT(*broken, 0.2);
  const Node bridges_taken = Cards()
                                 .Holding(APod("a").Whole(1), {0})
                                 .Holding(APod("b").Whole(1), {2})
                                 .Holding(APod("c").Whole(1), {6})
                                 .Build();
  EXPECT_EQ(LinkQualityRatio(bridges_taken, pair.On("n", {4, 5})), 1.0) << "the best there was";
  EXPECT_EQ(LinkQualityRatio(node, APod("p").Whole(1).On("n", {4})), std::nullopt);
  EXPECT_EQ(LinkQualityRatio(ANode("n").Gpus(8).Build(), pair.On("n", {4, 5})), std::nullopt);
}

int ScoreOf(const Scorer& scorer, const ANode& node, const APod& pod, GpuMask gpus) {
  const DeviceChoice choice{gpus, kMilliPerGpu, 0};
  int score = -1;
  scorer.Score(node.Build(), pod.Shape(), std::span(&choice, 1), std::span(&score, 1));
  return score;
}

TEST(LinkQuality, IsRelativeToTheBestSetOfTheMachine) {
  const LinkQuality scorer;
  EXPECT_EQ(ScoreOf(scorer, Cards(), APod("p").Whole(2), 0b11), 100);
  EXPECT_LT(ScoreOf(scorer, Cards(), APod("p").Whole(2), 0b110000), 20);
  EXPECT_EQ(ScoreOf(scorer, Cards(), APod("p").Whole(1), 0b10000), 100);
  EXPECT_EQ(ScoreOf(scorer, Cards(), APod("p").Share(300), 0b10000), 100);
  EXPECT_EQ(ScoreOf(scorer, ANode("n").Gpus(8), APod("p").Whole(2), 0b110000), 100);
}

TEST(NumaLocality, IsTheLeastSpanOverTheSpan) {
  const NumaLocality scorer;
  EXPECT_EQ(ScoreOf(scorer, Cards(), APod("p").Whole(2), 0b11), 100);
  EXPECT_EQ(ScoreOf(scorer, Cards(), APod("p").Whole(2), 0b10001), 50);
  EXPECT_EQ(ScoreOf(scorer, Cards(), APod("p").Whole(6), 0b111111), 100) << "cannot be better";
  EXPECT_EQ(ScoreOf(scorer, ANode("n").Gpus(8), APod("p").Whole(2), 0b10001), 100);
}

}  // namespace
}  // namespace berth::test::linked_devices_test
