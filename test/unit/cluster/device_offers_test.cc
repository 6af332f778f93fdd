// SPDX-License-Identifier: Apache-2.0
#include "cluster/claims/device_offers.h"

#include <chrono>

#include <gtest/gtest.h>

namespace berth::test::device_offers_test {
namespace {

using std::chrono::seconds;

std::shared_ptr<const PublishedSlice> ASlice(const std::string& name, std::int64_t generation = 1,
                                             std::int64_t slices = 1) {
  auto slice = std::make_shared<PublishedSlice>();
  slice->name = name;
  slice->driver = "d";
  slice->pool = "p";
  slice->generation = generation;
  slice->slices_in_pool = slices;
  slice->devices.push_back(
      {.name = "gpu-" + name, .seen = cel::Device("d"), .taints = {}, .consumes = {}});
  return slice;
}

class DeviceOffersTest : public testing::Test {
 protected:
  DeviceOffersTest() { Put({}); }
  void Put(const std::set<DeviceName>& taken) { offers_.Put({{"n", {pools_, taken}}}); }
  Status Hold(const std::string& claim, const std::string& device, int from = 0, int until = 60) {
    return offers_.Hold(*offers_.Current(), {{claim, "n", {{"p", device}}}}, Instant(seconds(from)),
                        Instant(seconds(until)));
  }
  DeviceOffers::Devices Now() { return offers_.Current()->at("n"); }
  std::set<DeviceName> Taken() { return Now()->taken; }

  const DevicePools pools_ = GatherPools({ASlice("a")});
  DeviceOffers offers_;
};

TEST_F(DeviceOffersTest, WhatIsHeldIsTakenUntilItIsReleased) {
  ASSERT_TRUE(Hold("a", "gpu-0"));
  ASSERT_TRUE(Hold("b", "gpu-1"));
  EXPECT_EQ(Taken(), (std::set<DeviceName>{{"p", "gpu-0"}, {"p", "gpu-1"}}));
  offers_.Release("a");
  EXPECT_EQ(Taken(), (std::set<DeviceName>{{"p", "gpu-1"}}));
  offers_.Release("nobody");
}

TEST_F(DeviceOffersTest, PartsOfOneDeviceAddUp) {
  const DeviceName device = {"p", "gpu-0"};
  offers_.Put({{"n", {pools_, {}, {{device, {{"memory", 10}}}}}}});
  const auto hold = [&](const std::string& claim) {
    return offers_.Hold(*offers_.Current(), {{claim, "n", {}, {{device, {{"memory", 5}}}}}},
                        Instant(seconds(0)), Instant(seconds(60)));
  };
  ASSERT_TRUE(hold("a"));
  const auto likeness = Now()->likeness;
  ASSERT_TRUE(hold("b"));
  EXPECT_EQ(Now()->parts, (UsedParts{{device, {{"memory", 20}}}}));
  EXPECT_NE(Now()->likeness, likeness);
  EXPECT_TRUE(Taken().empty());
  offers_.Release("a");
  EXPECT_EQ(Now()->parts, (UsedParts{{device, {{"memory", 15}}}}));
}

TEST_F(DeviceOffersTest, NobodyHoldsWhatWasChosenBeforeTheNodeChanged) {
  const auto chosen_from = offers_.Current();
  ASSERT_TRUE(Hold("a", "gpu-0"));
  const Status late = offers_.Hold(*chosen_from, {{"b", "n", {{"p", "gpu-0"}}}}, {}, {});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::kConflict);
  EXPECT_FALSE(offers_.Hold(*chosen_from, {{"b", "m", {{"p", "gpu-0"}}}}, {}, {}));
}

TEST_F(DeviceOffersTest, TheClaimsOfAPodAreHeldTogetherAndEachIsReleasedAlone) {
  ASSERT_TRUE(offers_.Hold(*offers_.Current(),
                           {{"a", "n", {{"p", "0"}, {"p", "1"}}}, {"b", "n", {{"p", "2"}}}}, {},
                           Instant(seconds(60))));
  EXPECT_EQ(Taken().size(), 3u);
  offers_.Release("a");
  EXPECT_EQ(Taken(), (std::set<DeviceName>{{"p", "2"}}));
}

TEST_F(DeviceOffersTest, AClaimHoldsWhatItWasGivenLast) {
  ASSERT_TRUE(Hold("a", "gpu-0"));
  ASSERT_TRUE(Hold("a", "gpu-1"));
  EXPECT_EQ(Taken(), (std::set<DeviceName>{{"p", "gpu-1"}}));
}

TEST_F(DeviceOffersTest, WhatIsHeldEndsWithItsTime) {
  ASSERT_TRUE(Hold("a", "gpu-0", 0, 60));
  ASSERT_TRUE(Hold("b", "gpu-1", 59));
  EXPECT_EQ(Taken().size(), 2u);
  ASSERT_TRUE(Hold("c", "gpu-2", 60));
  EXPECT_EQ(Taken(), (std::set<DeviceName>{{"p", "gpu-2"}}));
}

TEST_F(DeviceOffersTest, NewsOfTheNodeChangeNothingOfWhatIsHeld) {
  ASSERT_TRUE(Hold("a", "gpu-0"));
  Put({{"p", "gpu-1"}});
  EXPECT_EQ(Taken().size(), 2u);
  const auto now = offers_.Current();
  Put({{"p", "gpu-1"}});
  EXPECT_EQ(offers_.Current(), now) << "nothing new";
  offers_.Put({{"n", {}}});
  EXPECT_TRUE(offers_.Current()->empty());
}

TEST(GatherPools, OnlyWholePoolsOfTheNewestGenerationAreUsed) {
  const DevicePools pools =
      GatherPools({ASlice("old", 1, 1), ASlice("b", 2, 2), ASlice("a", 2, 2)});
  ASSERT_EQ(pools.size(), 1u);
  EXPECT_TRUE(pools[0].usable);
  ASSERT_EQ(pools[0].slices.size(), 2u);
  EXPECT_EQ(pools[0].slices[0]->name, "a");
  EXPECT_FALSE(GatherPools({ASlice("a", 2, 2)})[0].usable) << "one is missing";
  EXPECT_FALSE(GatherPools({ASlice("a", 2, 2), ASlice("a", 2, 2)})[0].usable) << "one name twice";
}

TEST(GatherPools, CountersThatAreNotThereMakeAPoolUnusable) {
  auto slice = std::make_shared<PublishedSlice>(*ASlice("a"));
  slice->devices[0].consumes =
      std::make_shared<const ConsumedCounters>(ConsumedCounters{{"set", "memory", 1000}});
  EXPECT_FALSE(GatherPools({slice})[0].usable);
  slice->counters = {{"set", "memory", 1000}};
  EXPECT_TRUE(GatherPools({slice})[0].usable);
}

TEST(GatherPools, PoolsWithBindingConditionsAreTheLast) {
  auto binds = std::make_shared<PublishedSlice>(*ASlice("a"));
  binds->devices[0].binds = true;
  auto other = std::make_shared<PublishedSlice>(*ASlice("b"));
  other->pool = "q";
  const DevicePools pools = GatherPools({binds, other});
  ASSERT_EQ(pools.size(), 2u);
  EXPECT_EQ(pools[0].name, "q");
}

}  // namespace
}  // namespace berth::test::device_offers_test
