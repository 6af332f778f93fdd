// SPDX-License-Identifier: Apache-2.0
//
// A plan says what would be decided: in random clusters each pod gets the node and the devices that
// it gets from the engine when the pods come one after the other.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "scoring/explain/what_if.h"
#include "scoring/registry.h"
#include "test/support/random_world.h"

namespace berth::test::what_if_property_test {
namespace {

constexpr std::uint64_t kSeeds = 400;

TEST(WhatIfProperty, EveryPodGoesWhereTheEngineWouldPlaceIt) {
  std::int64_t placed = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomWorld random(seed);
    ClusterState state;
    random.Populate(state, 6, 8);
    const std::string profile = random.OneOf<std::string>(
        {"best-fit", "fragmentation-gradient", "expected-waste", "spreading"});
    Engine engine(BuildProfile(*FindBuiltinProfile(profile), random.AMix()).value());
    std::vector<PodRequest> pods;
    for (int i = 0; i < 10; ++i) pods.push_back(random.APodNumbered(100 + i));
    const auto before = state.Current();
    const Snapshot copy = *before;
    const auto told = WhatIf(engine, {.snapshot = before, .pods = pods});
    ASSERT_TRUE(told);
    EXPECT_TRUE(copy.IsSame(*before));
    for (std::size_t i = 0; i < pods.size(); ++i) {
      SCOPED_TRACE("pod " + std::to_string(i));
      const auto best = engine.Best(state.Current(), pods[i].shape);
      const std::optional<Placement>& planned = told->pods[i].placement;
      ASSERT_EQ(planned.has_value(), !best.empty());
      if (!planned) {
        EXPECT_FALSE(told->whys[told->pods[i].why].text.empty());
        ++refused;
        continue;
      }
      const auto decided = engine.PlaceOn(state.Current(), pods[i].shape, best.front());
      ASSERT_TRUE(decided);
      ASSERT_EQ(*planned, *decided) << planned->node << ", not " << decided->node;
      ASSERT_TRUE(state.Reserve(pods[i], *decided, Instant::max()));
      ++placed;
    }
    EXPECT_EQ(*told->nodes.snapshot, *state.Current());
  }
  EXPECT_GT(placed, 1000);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace berth::test::what_if_property_test
