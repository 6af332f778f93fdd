// SPDX-License-Identifier: Apache-2.0
//
// What DRA offers to cut. (What claims have: device_claims_test.cc.)
#include "cluster/claims/device_offers.h"

#include <gtest/gtest.h>

#include "test/support/mig_nodes.h"

namespace berth::test::mig_offers_test {
namespace {

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

TEST(MigOffers, WhatWasTakenBeforeDoesNotChange) {
  MigOffers offers;
  offers.Put({{"n", {AGpu(0), AGpu(1)}}});
  const auto before = offers.Current();
  offers.Put({{"n", {AGpu(0), AGpu(1)}}});
  EXPECT_EQ(offers.Current(), before) << "a heartbeat";
  OfferedGpu taken = AGpu(0);
  taken.taken = MigSet{1} << *taken.product->PlacementAt(0, 0);
  offers.Put({{"n", {taken, AGpu(1)}}});
  EXPECT_EQ(before->at("n")->at(0).taken, 0u);
  EXPECT_NE(offers.Current()->at("n")->at(0).taken, 0u);
  offers.Put({{"n", {}}});
  EXPECT_TRUE(offers.Current()->empty());
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
