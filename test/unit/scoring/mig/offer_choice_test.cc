// SPDX-License-Identifier: Apache-2.0
#include "scoring/mig/offer_choice.h"

#include <gtest/gtest.h>

#include "test/support/mig_nodes.h"

namespace berth::test::offer_choice_test {
namespace {

// Its devices are called PROFILE@START.
OfferedGpu AGpu(const std::vector<ProfileAt>& taken = {}, const std::string& name = "A100-40GB") {
  OfferedGpu gpu{.pool = "p", .index = 0, .product = MigLibrary::Catalogued(*FindMigProduct(name))};
  gpu.offered = gpu.product->AllPlacements();
  gpu.taken = SetOf(*gpu.product, taken);
  for (const MigPlacement& place : gpu.product->placements()) {
    const MigRow& row = gpu.product->row(place.row);
    gpu.devices.push_back(MigProfileName(row.profile) + "@" + std::to_string(place.start));
  }
  return gpu;
}

MigOffers::ByNode Offers(const std::vector<std::pair<std::string, OfferedGpus>>& nodes) {
  MigOffers offers;
  offers.Put(nodes);
  return *offers.Current();
}

// "NODE/DEVICE", or "" for none.
std::string Choose(const MigOffers::ByNode& offers, const std::string& profile,
                   const std::vector<std::string>& nodes) {
  const auto device = ChooseOffered(offers, ProfileOf(profile), nodes);
  return device ? device->node + "/" + device->device : "";
}

TEST(OfferChoice, TakesTheStartThatCostsLeast) {
  const auto offers = Offers({{"a", {AGpu()}}});
  EXPECT_EQ(Choose(offers, "1g.5gb", {"a"}), "a/1g.5gb@4");
  EXPECT_EQ(Choose(offers, "3g.20gb", {"a"}), "a/3g.20gb@4");
}

TEST(OfferChoice, BreaksIntoNoOtherGpuWhileOneIsBrokenInto) {
  const auto offers = Offers({{"a", {AGpu(), AGpu()}}, {"b", {AGpu(), AGpu({{"1g.5gb", 6}})}}});
  EXPECT_EQ(Choose(offers, "1g.5gb", {"a", "b"}).substr(0, 2), "b/");
  EXPECT_EQ(Choose(offers, "7g.40gb", {"a", "b"}), "a/7g.40gb@0");
}

TEST(OfferChoice, TakesTheEarlierOfEqualNodesAndOnlyThoseThatMayBeTaken) {
  const auto offers = Offers({{"a", {AGpu()}}, {"b", {AGpu()}}});
  EXPECT_EQ(Choose(offers, "1g.5gb", {"b", "a"}), "b/1g.5gb@4");
  EXPECT_EQ(Choose(offers, "1g.5gb", {"unknown", "b"}), "b/1g.5gb@4");
  EXPECT_EQ(Choose(offers, "1g.5gb", {"unknown"}), "");
}

TEST(OfferChoice, TakesNothingThatIsTakenOrNotOffered) {
  OfferedGpu whole = AGpu(), tainted = AGpu();
  whole.whole = true;
  tainted.offered &= ~SetOf(*tainted.product, {{"1g.5gb", 4}});
  const auto offers = Offers(
      {{"a", {whole, AGpu({{"7g.40gb", 0}})}}, {"b", {tainted}}, {"c", {AGpu({}, "A30-24GB")}}});
  EXPECT_EQ(Choose(offers, "1g.5gb", {"a", "c"}), "") << "an A30 has no such profile";
  const std::string chosen = Choose(offers, "1g.5gb", {"a", "b", "c"});
  EXPECT_EQ(chosen.substr(0, 2), "b/");
  EXPECT_NE(chosen, "b/1g.5gb@4");
}

}  // namespace
}  // namespace berth::test::offer_choice_test
