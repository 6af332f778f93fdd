// SPDX-License-Identifier: Apache-2.0
//
// The GPUs that the engine gives, against a search of every set, on machines with random links of
// which random GPUs are busy.
#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "scoring/engine/engine.h"
#include "scoring/registry.h"
#include "test/support/builders.h"
#include "test/support/link_oracle.h"
#include "test/support/wirings.h"

namespace berth::test::links_property_test {
namespace {

// A node with some GPUs given away, each to a pod of its own, or broken; `idle` gets the
// others.
ANode SomeBusy(Random& random, const LinkMatrix& matrix, GpuMask& idle,
               std::vector<GpuMask>& tenants) {
  ANode node = ANode("n").Gpus(matrix.gpu_count()).Linked(LinksOf(matrix));
  for (int gpu = 0; gpu < matrix.gpu_count(); ++gpu) {
    const int what = Draw(random, 10);
    if (what == 0) node.Unhealthy(static_cast<std::size_t>(gpu));
    if (what == 1) node.Holding(APod("s" + std::to_string(gpu)).Share(300), {gpu});
    if (what == 2) node.Holding(APod("w" + std::to_string(gpu)).Whole(1), {gpu});
    if (what == 1 || what == 2) tenants.push_back(GpuMask{1} << gpu);
    if (what > 2) idle |= GpuMask{1} << gpu;
  }
  return node;
}

LinkAsk SomeAsk(Random& random) {
  if (Draw(random, 3) == 0) return {};
  return {static_cast<LinkWish>(Draw(random, 3)), static_cast<NumaWish>(Draw(random, 3)),
          static_cast<LinkPattern>(Draw(random, kLinkPatterns)), Draw(random, 3) * 25'000};
}

GpuMask MaskOf(const Placement& placement) {
  GpuMask mask = 0;
  for (const DeviceGrant& grant : placement.grants) mask |= GpuMask{1} << grant.gpu;
  return mask;
}

TEST(LinksProperty, EveryChoiceOfWholeGpusIsThatOfAnExhaustiveSearch) {
  int fitted = 0, constrained_out = 0;
  for (std::uint64_t seed = 1; seed <= 150 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const LinkMatrix matrix = RandomMatrix(random, 4 + Draw(random, 5));
    const LinkOracle oracle(matrix);
    WiringTables tables;
    const WiringSets sets = tables.SetsOf(WiringOf(matrix));
    GpuMask idle = 0;
    std::vector<GpuMask> tenants;
    const auto snapshot = SnapshotOf({SomeBusy(random, matrix, idle, tenants)});
    const auto& profiles = BuiltinProfiles();
    Engine engine(
        *BuildProfile(profiles[random.Below(profiles.size())], {{APod("m").Whole(1).Shape(), 1}}));
    for (int i = 0; i < 12; ++i) {
      const int size = 1 + Draw(random, 5);
      const LinkAsk ask = size < 2 ? LinkAsk{} : SomeAsk(random);
      const RequestShape shape = APod("p").Whole(size).Links(ask).Shape();
      const GpuMask usual = sets.Choose(idle, size, 0, tenants);
      const bool as_usual = usual != 0 && (ask == LinkAsk{} || size < 2);
      const GpuMask want = as_usual || usual == 0 ? usual : oracle.Choose(idle, size, ask);
      const auto placement = engine.PlaceOn(snapshot, shape, 0);
      ASSERT_EQ(placement.has_value(), want != 0) << "size " << size;
      constrained_out += usual != 0 && want == 0 ? 1 : 0;
      if (!placement) continue;
      ++fitted;
      const GpuMask got = MaskOf(*placement);
      const bool own_order = ask.link == LinkWish::kNone || ask.numa == NumaWish::kPreferred ||
                             ask.pattern != LinkPattern::kAny;
      const bool usual_does = !as_usual && !own_order && oracle.Satisfies(usual, ask);
      ASSERT_EQ(got, usual_does ? usual : want) << "size " << size << ", idle " << idle;
    }
  }
  EXPECT_GT(fitted, 500);
  EXPECT_GT(constrained_out, 50);
}

}  // namespace
}  // namespace berth::test::links_property_test
