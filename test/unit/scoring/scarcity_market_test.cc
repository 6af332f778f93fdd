// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "scoring/waste/market.h"
#include "test/support/builders.h"

namespace berth::test::scarcity_market_test {
namespace {

using Amounts = std::vector<int>;

// Half of the pods ask for one GPU, half for four with 40 cores: 2.5 GPUs in the mean.
RequestMix OnesAndFours() {
  return {{APod("one").Whole(1).Cpu(8).Shape(), 0.5}, {APod("four").Whole(4).Cpu(40).Shape(), 0.5}};
}

WasteParameters Parameters() {
  WasteParameters parameters;
  parameters.scarcity_exponent = 8;
  return parameters;
}

struct Priced {
  explicit Priced(const RequestMix& mix)
      : groups(mix), market(mix, groups, Fleet{}, Parameters(), /*points_per_gpu=*/1) {}
  ModelGroups groups;
  ScarcityMarket market;

  Amounts Supply(const ANode& node) const {
    Amounts amounts(market.goods());
    market.Supply(node.Build(), amounts);
    return WithoutPrior(std::move(amounts));
  }
  Amounts Taken(const ANode& node, const APod& pod, const DeviceChoice& choice) const {
    Amounts amounts(market.goods());
    market.Taken(node.Build(), pod.Shape(), choice, amounts);
    return WithoutPrior(std::move(amounts));
  }
  // The last good has tests of its own.
  static Amounts WithoutPrior(Amounts amounts) {
    amounts.pop_back();
    return amounts;
  }
};

TEST(ScarcityMarket, SuppliesFreeGpuAndTheSlotsThatHaveTheirCpu) {
  const Priced priced(OnesAndFours());
  EXPECT_EQ(priced.Supply(ANode("n").Gpus(8).Cpu(96)), (Amounts{8000, 2}));
  EXPECT_EQ(priced.Supply(ANode("n").Gpus(8).Cpu(79)), (Amounts{8000, 1}));
  EXPECT_EQ(priced.Supply(ANode("n").Gpus(8).Cpu(96).Holding(APod("x").Share(1), {3})),
            (Amounts{7999, 1}));
  EXPECT_EQ(priced.Supply(ANode("n").Gpus(4).Cpu(96).Unhealthy(0)), (Amounts{3000, 0}));
  EXPECT_EQ(priced.Supply(ANode("n")), (Amounts{0, 0}));
  EXPECT_EQ(priced.Supply(ANode("n").Gpus(8).Cpu(96).NotReady()), (Amounts{0, 0}));
}

TEST(ScarcityMarket, AChoiceTakesItsGpuAndTheSlotsThatAreNoMore) {
  const Priced priced(OnesAndFours());
  const ANode node = ANode("n").Gpus(8).Cpu(96).Holding(APod("x").Share(1), {7});
  EXPECT_EQ(priced.Taken(node, APod("p").Share(300), {0b1, 300, 0}), (Amounts{300, 0}))
      << "six are idle still";
  const ANode four = ANode("n").Gpus(5).Cpu(96).Holding(APod("x").Share(1), {4});
  EXPECT_EQ(priced.Taken(four, APod("p").Share(300), {0b1, 300, 0}), (Amounts{300, 1}));
  EXPECT_EQ(priced.Taken(four, APod("p").Share(300), {0b10000, 300, 0}), (Amounts{300, 0}));
  EXPECT_EQ(priced.Taken(four, APod("p").Whole(4), {0b1111, 1000, 0}), (Amounts{4000, 1}));
  EXPECT_EQ(priced.Taken(four, APod("p").Cpu(60), {}), (Amounts{0, 1})) << "its CPU goes";
}

TEST(ScarcityMarket, ASlotIsFreeWhilePlentifulAndDearWhenScarce) {
  const Priced priced(OnesAndFours());
  // 1000 free GPUs are 400 pods to come, half of which want a slot.
  const auto price = [&](std::int64_t slots) {
    const std::vector<std::int64_t> supply = {1'000'000, slots, 1000};
    return priced.market.Prices(supply)[1];
  };
  EXPECT_DOUBLE_EQ(price(200), 4) << "as many as are needed: as much as its GPUs";
  EXPECT_LT(price(400), 0.02);
  EXPECT_DOUBLE_EQ(price(10), 16) << "never more than the limit";
  EXPECT_EQ(price(0), 0) << "there is nothing to keep";
}

TEST(ScarcityMarket, LargerAsksNeedSeveralSlotsOfTheSmaller) {
  const RequestMix mix = {{APod("two").Whole(2).Cpu(16).Shape(), 0.5},
                          {APod("eight").Whole(8).Cpu(64).Shape(), 0.5}};
  const Priced priced(mix);
  ASSERT_EQ(priced.market.goods(), 4u);
  // 500 free GPUs are 100 pods: 50 twos and 50 eights, which are 200 twos.
  const std::vector<std::int64_t> supply = {500'000, 250, 50};
  const std::vector<double> prices = priced.market.Prices(supply);
  EXPECT_DOUBLE_EQ(prices[1], 2);
  EXPECT_DOUBLE_EQ(prices[2], 8);
}

TEST(ScarcityMarket, AModelCostsWhatThePodsThatNeedItAskOfIt) {
  const RequestMix mix = {{APod("any").Whole(1).Shape(), 0.5},
                          {APod("a").Whole(1).Models({"A"}).Shape(), 0.25},
                          {APod("ab").Whole(1).Models({"A", "B"}).Shape(), 0.25}};
  const Priced priced(mix);
  ASSERT_EQ(priced.market.goods(), 4u) << "A, B, all others; the prior";
  // 100 pods to come: 25 can only go to A, 50 to A or B.
  const std::vector<std::int64_t> supply = {50'000, 50'000, 0, 40};
  const std::vector<double> prices = priced.market.Prices(supply);
  EXPECT_DOUBLE_EQ(prices[0] * 1000, 0.45 * 0.5);
  EXPECT_DOUBLE_EQ(prices[1] * 1000, 0.45 * 0.5);
  EXPECT_EQ(prices[2], 0);
}

// One good beside the levels and the prior: free GPU.
TEST(ScarcityMarket, AShareTakesAPartOfItsGpuAndLeavesASmallerOne) {
  const Priced priced({{APod("a").Share(300).Shape(), 0.5}, {APod("b").Share(700).Shape(), 0.5}});
  const ANode node = ANode("n").Gpus(2).Holding(APod("x").Share(300), {0});
  const APod third = APod("p").Share(300);
  Amounts opens(1 + kLevels), cuts(1 + kLevels);
  opens[0] = cuts[0] = 300;
  opens[1 + 70] = -1;
  opens[1] = 1;  // a whole GPU is no part: level 0 costs nothing
  cuts[1 + 70] = 1;
  cuts[1 + 40] = -1;
  EXPECT_EQ(priced.Taken(node, third, {0b10, 300, 0}), opens);
  EXPECT_EQ(priced.Taken(node, third, {0b01, 300, 0}), cuts);
  EXPECT_EQ(priced.Taken(node, APod("p").Whole(1), {0b10, 1000, 0})[1 + 70], 0);
}

// Half of the pods ask for .3 and half for .7 of a GPU.
TEST(ScarcityMarket, APartIsWorthWhatTheSharesToComeGetOutOfIt) {
  const Priced priced({{APod("a").Share(300).Shape(), 0.5}, {APod("b").Share(700).Shape(), 0.5}});
  std::vector<ANode> nodes;
  for (int i = 0; i < 200; ++i) nodes.push_back(ANode("n" + std::to_string(i)).Gpus(1));
  const std::vector<double> empty = priced.market.Outlook(*SnapshotOf(nodes));
  EXPECT_NEAR(empty[70] + empty[30], 0, 1e-9) << "together they fill a GPU";
  // Where many GPUs have .3 free, what is short is room for .7.
  for (ANode& node : nodes) node = node.Holding(APod("x").Share(700), {0});
  nodes.push_back(ANode("whole").Gpus(1));
  const std::vector<double> cut = priced.market.Outlook(*SnapshotOf(nodes));
  EXPECT_NEAR(cut[70], 0.3, 1e-9) << "as good as a whole GPU";
  EXPECT_NEAR(cut[30], -0.3, 1e-9) << "there are enough of them";
  for (ANode& node : nodes) node = node.NotReady();
  for (int i = 0; i < 200; ++i) nodes.push_back(ANode("open" + std::to_string(i)).Gpus(1));
  EXPECT_EQ(priced.market.Outlook(*SnapshotOf(nodes)), empty) << "they take no pods";
  EXPECT_TRUE(Priced(OnesAndFours()).market.Outlook(*SnapshotOf(nodes)).empty()) << "no shares";
}

TEST(ScarcityMarket, ChargesNothingButThePriorWithoutPodsOrGpus) {
  const Priced nobody({});
  const std::vector<std::int64_t> some = {1000, 4}, none = {0, 0, 0};
  const double slot = Parameters().slot_price;
  EXPECT_EQ(nobody.market.Prices(some), (std::vector<double>{0, slot}));
  EXPECT_EQ(Priced(OnesAndFours()).market.Prices(none), (std::vector<double>{0, 0, slot}));
}

TEST(SlotPrior, CountsSlotsOfEveryPowerOfTwoAndWholeNodes) {
  const auto slots = [](const ANode& node) { return SlotGpus(GpuState(node.Build())); };
  EXPECT_EQ(slots(ANode("n").Gpus(8)), 8 + 8 + 8 + 8 + 8);
  const ANode seven = ANode("n").Gpus(8).Holding(APod("x").Share(1), {3});
  EXPECT_EQ(slots(seven), 7 + 6 + 4);
  EXPECT_EQ(slots(ANode("n").Gpus(3)), 3 + 2 + 3);
  EXPECT_EQ(slots(ANode("n").Gpus(1).Holding(APod("x").Share(1), {0})), 0);
  EXPECT_EQ(slots(ANode("n")), 0);
}

TEST(SlotPrior, IsDearWherePodsComeAndGoAndThereIsRoomForThem) {
  const double busy = AtTurnover({}, 1, 0.4).slot_price;
  EXPECT_GT(SlotPriorPrice(1, busy), 4 * SlotPriorPrice(0, busy));
  EXPECT_EQ(SlotPriorPrice(0.2, busy), kLeastSlotPrice);
  const double filling = AtTurnover({}, 0, 0.4).slot_price;
  EXPECT_EQ(SlotPriorPrice(1, filling), kLeastSlotPrice);
}

TEST(SlotPrior, IsDearWhileFewPodsHaveCome) {
  EXPECT_EQ(LeastSlotPrice(0), kUnknownSlotPrice);
  EXPECT_EQ(LeastSlotPrice(kFewPods), kUnknownSlotPrice);
  EXPECT_DOUBLE_EQ(LeastSlotPrice(4 * kFewPods), kUnknownSlotPrice / 4);
  EXPECT_EQ(LeastSlotPrice(1'000'000), kLeastSlotPrice);
  EXPECT_EQ(SlotPriorPrice(0, 0.01, 0.02), 0.02) << "also where little is free";
  EXPECT_DOUBLE_EQ(SlotPriorPrice(1, 0.01, 0.002), 0.01);
}

// 8 GPUs, half of them free: the free part is of the whole fleet.
TEST(SlotPrior, TakesThePriceOfThePartOfTheFleetThatIsFree) {
  const RequestMix mix = OnesAndFours();
  const ModelGroups groups(mix);
  const Fleet fleet = {{"", GpuState(ANode("n").Gpus(8).Build()), 1}};
  const ScarcityMarket market(mix, groups, fleet, AtTurnover(Parameters(), 1, 0), 1);
  const std::vector<std::int64_t> empty = {8000, 2, 8, 40}, full = {1000, 0, 1, 1};
  EXPECT_GT(market.Prices(empty).back(), market.Prices(full).back());
  EXPECT_EQ(market.Prices(full).back(), kLeastSlotPrice);
}

TEST(SupplyLedger, KeepsItsOutlookFromSnapshotToSnapshot) {
  const Priced priced({{APod("a").Share(300).Shape(), 0.5}, {APod("b").Share(700).Shape(), 0.5}});
  SupplyLedger ledger(priced.market);
  const auto first = SnapshotOf({ANode("a").Gpus(8)}), other = SnapshotOf({ANode("b").Gpus(4)});
  const auto price = [&](const std::shared_ptr<const Snapshot>& snapshot) {
    return ledger.PricesIn(snapshot)[1 + 50];
  };
  EXPECT_EQ(price(first), 0);
  ledger.SetOutlook(priced.market.Outlook(*first));
  const double half = price(first);
  EXPECT_LT(half, -0.1) << "neither .3 nor .7 fills it";
  EXPECT_EQ(price(other), half);
}

TEST(SupplyLedger, FollowsSnapshotsAsIfItCountedAnew) {
  const Priced priced(OnesAndFours());
  SupplyLedger ledger(priced.market);
  const auto first = SnapshotOf({ANode("a").Gpus(8), ANode("b").Gpus(4)});
  const auto second = std::make_shared<const Snapshot>(first->With(
      0, std::make_shared<const Node>(
             ANode("a").Gpus(8).Holding(APod("x").Whole(6), {0, 1, 2, 3, 4, 5}).Build())));
  const auto other = SnapshotOf({ANode("c").Gpus(4)});
  for (const auto& snapshot : {first, second, first, other, second}) {
    SupplyLedger fresh(priced.market);
    EXPECT_EQ(ledger.PricesIn(snapshot), fresh.PricesIn(snapshot));
  }
}

}  // namespace
}  // namespace berth::test::scarcity_market_test
