// SPDX-License-Identifier: Apache-2.0
#include "topology/links/set_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include "test/support/wirings.h"
#include "topology/links/gpu_links.h"

namespace berth::test::set_outlook_test {
namespace {

// The formulas of the header, taken word by word.
class ByEnumeration {
 public:
  ByEnumeration(const SetTable& table, const SizeMix& mix) : table_(table), mix_(mix) {}

  double Worth(GpuMask free, GpuMask set, std::vector<GpuMask> tenants) const {
    tenants.push_back(set);
    const double all = std::accumulate(mix_.share.begin(), mix_.share.end(), 0.0);
    double next = 0;
    for (int size = 1; size <= table_.wiring().gpus; ++size) {
      next += mix_.share[static_cast<std::size_t>(size)] / all * Next(free ^ set, tenants, size);
    }
    return Utility(set) + 0.7 * next;
  }

 private:
  double Utility(GpuMask set) const {
    int least = table_.span(set);
    for (GpuMask other = 1; other < GpuMask{1} << table_.wiring().gpus; ++other) {
      if (std::popcount(other) == std::popcount(set)) least = std::min(least, table_.span(other));
    }
    return table_.quality(set) / 1000.0 - 0.03 * (1 - double(least) / table_.span(set));
  }

  double Best(GpuMask free, int size) const {
    double best = -1;
    for (GpuMask set = free; set != 0; set = (set - 1) & free) {
      if (std::popcount(set) == size) best = std::max(best, Utility(set));
    }
    return best;
  }

  // The mean over every order in which the tenants can leave.
  double Next(GpuMask free, std::vector<GpuMask> tenants, int size) const {
    std::vector<std::size_t> order(tenants.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    double sum = 0;
    int orders = 0;
    do {
      GpuMask now = free;
      for (std::size_t i = 0; i < order.size() && std::popcount(now) < size; ++i) {
        now |= tenants[order[i]];
      }
      sum += std::popcount(now) >= size ? Best(now, size) : 0;
      ++orders;
    } while (std::next_permutation(order.begin(), order.end()));
    return sum / orders;
  }

  const SetTable& table_;
  const SizeMix& mix_;
};

// Every GPU is free, or one of a few tenants', or (one in nine) out of use.
std::vector<GpuMask> RandomTenants(Random& random, int gpus, GpuMask& free) {
  std::vector<GpuMask> tenants(3, 0);
  free = 0;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    const int whose = Draw(random, 9);
    if (whose < 5) free |= GpuMask{1} << gpu;
    if (whose >= 5 && whose < 8) tenants[static_cast<std::size_t>(whose - 5)] |= GpuMask{1} << gpu;
  }
  std::erase(tenants, GpuMask{0});
  return tenants;
}

TEST(SetOutlook, ChoosesTheHighestWorthOnRandomMachines) {
  Random random(11);
  const SizeMix mix{{0, 3, 2, 1, 2, 0, 1}};
  for (int round = 0; round < 60; ++round) {
    const Wiring wiring = RandomWiring(random, 3 + Draw(random, 4));
    const SetTable table(wiring, mix);
    const SetOutlook outlook(table, mix);
    const ByEnumeration expected(table, mix);
    GpuMask free = 0;
    const std::vector<GpuMask> tenants = RandomTenants(random, wiring.gpus, free);
    for (int size = 1; size <= std::popcount(free); ++size) {
      const GpuMask chosen = outlook.Choose(free, size, 0, tenants);
      ASSERT_EQ(std::popcount(chosen), size);
      ASSERT_EQ(chosen & ~free, 0U);
      double best = 0;
      for (GpuMask set = free; set != 0; set = (set - 1) & free) {
        if (std::popcount(set) == size) best = std::max(best, expected.Worth(free, set, tenants));
      }
      // Steps of 1e-4, and every part is rounded to such a step.
      EXPECT_NEAR(expected.Worth(free, chosen, tenants), best, 3e-4) << "round " << round;
    }
  }
}

TEST(SetOutlook, AsksForNothingImpossibleAndKeepsWhatIsRequired) {
  const SetTable table(WiringOf(Dgx1V()));
  const SetOutlook outlook(table, {});
  const std::vector<GpuMask> tenants = {0xf0};
  EXPECT_EQ(outlook.Choose(0x0f, 5, 0, tenants), 0U);
  EXPECT_EQ(outlook.Choose(0x0f, 0, 0, tenants), 0U);
  EXPECT_EQ(outlook.Choose(0x0f, 2, 0x10, tenants), 0U) << "that one is not free";
  EXPECT_EQ(outlook.Choose(0x0f, 3, 0x06, tenants) & 0x06, 0x06U);
}

// Six GPUs in a row of three bridged pairs. GPU 0 and 2 are free, their partners belong to others.
TEST(SetOutlook, TakesTheGpuWhosePartnerStaysLongest) {
  Wiring wiring{6, std::vector<int>(36, 10'000), std::vector<int>(6, 0)};
  for (int gpu = 0; gpu < 6; ++gpu) {
    wiring.megabytes_per_s[static_cast<std::size_t>(gpu * 7)] = 0;
    wiring.megabytes_per_s[static_cast<std::size_t>(gpu * 6 + (gpu ^ 1))] = 50'000;
  }
  const SizeMix pairs{{0, 1, 3}};
  WiringTables tables(pairs);
  const WiringSets sets = tables.SetsOf(wiring);
  // GPU 1 is alone; GPU 3 is held together with 4 and 5. When either tenant leaves, a pair is to
  // be had, but beside GPU 0 it is the pair 0-1 only if 0 is still free.
  EXPECT_EQ(sets.Choose(0b000101, 1, 0, std::vector<GpuMask>{0b000010, 0b111000}), 0b000100U);
  EXPECT_EQ(sets.Choose(0b000101, 1, 0, std::vector<GpuMask>{0b110010, 0b001000}), 0b000001U);
}

}  // namespace
}  // namespace berth::test::set_outlook_test
