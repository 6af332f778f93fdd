// SPDX-License-Identifier: Apache-2.0
//
// What DRA offers to cut, and what is held of it for claims that do not have it yet. (What claims
// have: device_claims_test.cc.)
#include "cluster/claims/mig_offers.h"

#include <chrono>

#include <gtest/gtest.h>

#include "test/support/mig_nodes.h"

namespace berth::test::mig_offers_test {
namespace {

using std::chrono::seconds;

// An A100-40GB that is offered wholly; devices are called PROFILE@START.
OfferedGpu AGpu(int index) {
  OfferedGpu gpu{
      .pool = "p", .index = index, .product = MigLibrary::Catalogued(*FindMigProduct("A100-40GB"))};
  gpu.offered = gpu.product->AllPlacements();
  for (const MigPlacement& place : gpu.product->placements()) {
    const MigRow& row = gpu.product->row(place.row);
    gpu.devices.push_back(std::to_string(index) + ":" + MigProfileName(row.profile) + "@" +
                          std::to_string(place.start));
  }
  return gpu;
}

class MigOffersTest : public testing::Test {
 protected:
  MigOffersTest() { offers_.Put({{"n", {AGpu(0), AGpu(1)}}}); }
  Status Hold(const std::string& claim, const std::string& device, int from = 0, int until = 60) {
    return offers_.Hold(claim, {"n", "p", device}, Instant(seconds(from)), Instant(seconds(until)));
  }
  MigUnits Taken(std::size_t gpu) {
    const OfferedGpu& offered = offers_.Current()->at("n")->at(gpu);
    return offered.product->UnitsOf(offered.taken);
  }
  MigOffers offers_;
};

TEST_F(MigOffersTest, WhatIsHeldIsTakenUntilItIsReleased) {
  ASSERT_TRUE(Hold("a", "1:3g.20gb@4"));
  EXPECT_EQ(Taken(0), 0u);
  EXPECT_EQ(Taken(1), 0b1111'0000u);
  const auto overlapping = Hold("b", "1:1g.5gb@6");
  ASSERT_FALSE(overlapping);
  EXPECT_EQ(overlapping.error().code, Errc::kConflict);
  EXPECT_TRUE(Hold("b", "0:1g.5gb@6"));
  offers_.Release("a");
  EXPECT_EQ(Taken(1), 0u);
  EXPECT_EQ(Taken(0), 0b100'0000u);
  offers_.Release("nobody");
}

TEST_F(MigOffersTest, AClaimHoldsOneDeviceTheLast) {
  ASSERT_TRUE(Hold("a", "0:3g.20gb@4"));
  ASSERT_TRUE(Hold("a", "1:3g.20gb@0"));
  EXPECT_EQ(Taken(0), 0u);
  EXPECT_EQ(Taken(1), 0b0000'1111u);
}

TEST_F(MigOffersTest, WhatIsHeldEndsWithItsTime) {
  ASSERT_TRUE(Hold("a", "0:7g.40gb@0", 0, 60));
  EXPECT_FALSE(Hold("b", "0:1g.5gb@0", 59));
  EXPECT_TRUE(Hold("b", "0:1g.5gb@0", 60));
  EXPECT_EQ(Taken(0), 0b0000'0001u);
}

TEST_F(MigOffersTest, NewsOfTheNodeChangeNothingOfWhatIsHeld) {
  ASSERT_TRUE(Hold("a", "0:3g.20gb@4"));
  OfferedGpu first = AGpu(0);
  first.taken = MigSet{1} << *first.product->PlacementAt(0, 0);
  offers_.Put({{"n", {first, AGpu(1)}}});
  EXPECT_EQ(Taken(0), 0b1111'0001u);
  offers_.Release("a");
  EXPECT_EQ(Taken(0), 0b0000'0001u);
  offers_.Put({{"n", {}}});
  EXPECT_TRUE(offers_.Current()->empty());
}

TEST_F(MigOffersTest, OnlyWhatIsOfferedIsHeld) {
  EXPECT_EQ(Hold("a", "0:9g@0").error().code, Errc::kNotFound);
  EXPECT_EQ(offers_.Hold("a", {"m", "p", "0:1g.5gb@0"}, {}, {}).error().code, Errc::kNotFound);
  OfferedGpu tainted = AGpu(0);
  tainted.offered = 0;
  offers_.Put({{"n", {tainted}}});
  EXPECT_EQ(Hold("a", "0:1g.5gb@0").error().code, Errc::kConflict);
}

TEST_F(MigOffersTest, WhatWasTakenBeforeDoesNotChange) {
  const auto before = offers_.Current();
  ASSERT_TRUE(Hold("a", "0:3g.20gb@4"));
  EXPECT_EQ(before->at("n")->at(0).taken, 0u);
  const auto now = offers_.Current();
  offers_.Put({{"n", {AGpu(0), AGpu(1)}}});
  EXPECT_EQ(offers_.Current(), now) << "a heartbeat";
}

TEST(MigByExtendedResources, PodsGetTheProfilesThatResourcesStandFor) {
  OfferedGpu tainted = AGpu(1), whole = AGpu(4);
  const auto placement = [](const std::string& profile, int start) {
    const MigProduct& product = *FindMigProduct("A100-40GB");
    return SetOf(product, {{profile, start}});
  };
  tainted.offered &= ~placement("3g.20gb", 4);
  whole.whole = true;
  // In the order in which kube-scheduler looks at them.
  const std::vector<OfferedGpu> gpus = {AGpu(3), tainted, whole};
  const NodeMig mig =
      MigByExtendedResources(gpus, std::vector{ProfileOf("3g.20gb"), ProfileOf("9g.99gb")});
  ASSERT_TRUE(mig.known());
  EXPECT_TRUE(Validate(*mig));
  EXPECT_TRUE(mig->by_claims());
  EXPECT_TRUE(mig->dynamic);
  EXPECT_EQ(mig->product, gpus[0].product);
  ASSERT_EQ(mig->gpus.size(), 3u);
  EXPECT_EQ(mig->gpus[0].index, 3);
  EXPECT_EQ(mig->gpus[1].index, 1);
  EXPECT_EQ(mig->Free(0, 0), placement("3g.20gb", 0) | placement("3g.20gb", 4));
  EXPECT_EQ(mig->Free(0, placement("1g.5gb", 1)), placement("3g.20gb", 4));
  EXPECT_EQ(mig->Free(1, 0), placement("3g.20gb", 0));
  EXPECT_EQ(mig->Free(2, 0), 0u) << "a claim has the whole GPU";
}

TEST(MigByExtendedResources, NothingIsKnownWhereNoResourceStandsForWhatIsOffered) {
  const std::vector<OfferedGpu> gpus = {AGpu(0)};
  EXPECT_FALSE(MigByExtendedResources(gpus, {}).known());
  EXPECT_FALSE(MigByExtendedResources(gpus, std::vector{ProfileOf("9g.99gb")}).known());
  EXPECT_FALSE(MigByExtendedResources({}, std::vector{ProfileOf("1g.5gb")}).known());
}

TEST(MigByExtendedResources, GpusOfAnotherProductAndTheSameOnesTwiceAreLeftOut) {
  OfferedGpu other = AGpu(1), nameless = AGpu(-1);
  other.product = MigLibrary::Catalogued(*FindMigProduct("A100-80GB"));
  const std::vector<OfferedGpu> gpus = {AGpu(0), other, AGpu(0), nameless, AGpu(2)};
  const NodeMig mig = MigByExtendedResources(gpus, std::vector{ProfileOf("1g.5gb")});
  ASSERT_TRUE(mig.known());
  EXPECT_TRUE(Validate(*mig));
  ASSERT_EQ(mig->gpus.size(), 2u);
  EXPECT_EQ(mig->gpus[1].index, 2);
}

}  // namespace
}  // namespace berth::test::mig_offers_test
