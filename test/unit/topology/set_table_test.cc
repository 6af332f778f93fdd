// SPDX-License-Identifier: Apache-2.0
#include "topology/links/set_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <tuple>
#include <vector>

#include "test/support/wirings.h"
#include "topology/links/gpu_links.h"

namespace berth::test::set_table_test {
namespace {

std::vector<int> Members(GpuMask set) {
  std::vector<int> members;
  for (; set != 0; set &= set - 1) members.push_back(std::countr_zero(set));
  return members;
}

// Every order of the ring is tried.
int RingByPermutation(const Wiring& wiring, GpuMask set) {
  std::vector<int> order = Members(set);
  if (order.size() < 2) return 0;
  int best = 0;
  do {
    int worst = wiring.Between(order.back(), order.front());
    for (std::size_t i = 1; i < order.size(); ++i) {
      worst = std::min(worst, wiring.Between(order[i - 1], order[i]));
    }
    best = std::max(best, worst);
  } while (std::next_permutation(order.begin() + 1, order.end()));
  return best;
}

int CutBetween(const Wiring& wiring, GpuMask half, GpuMask other) {
  int cut = 0;
  for (const int a : Members(half)) {
    for (const int b : Members(other)) cut += wiring.Between(a, b);
  }
  return cut;
}

int BisectionByEnumeration(const Wiring& wiring, GpuMask set) {
  int best = -1;
  for (GpuMask half = set; half != 0; half = (half - 1) & set) {
    if (std::popcount(half) != std::popcount(set) / 2) continue;
    const int cut = CutBetween(wiring, half, set ^ half);
    if (best < 0 || cut < best) best = cut;
  }
  return std::max(best, 0);
}

// Best total quality of disjoint k-sets, as many as fit.
int BestPartition(const SetTable& table, GpuMask free, int size) {
  int best = 0;
  for (GpuMask set = free; set != 0; set = (set - 1) & free) {
    if (std::popcount(set) != size) continue;
    best = std::max(best, table.quality(set) + BestPartition(table, free ^ set, size));
  }
  return best;
}

TEST(SetTable, EqualsEnumerationOnRandomWirings) {
  Random random(7);
  for (int round = 0; round < 20; ++round) {
    const Wiring wiring = RandomWiring(random, 2 + Draw(random, 5));
    const SetTable table(wiring);
    for (GpuMask set = 1; set < GpuMask{1} << wiring.gpus; ++set) {
      ASSERT_EQ(table.ring(set), RingByPermutation(wiring, set)) << set;
      ASSERT_EQ(table.bisection(set), BisectionByEnumeration(wiring, set)) << set;
      ASSERT_EQ(table.aggregate(set), AggregateOf(wiring, set)) << set;
      ASSERT_EQ(table.span(set), wiring.Span(set)) << set;
      ASSERT_LE(table.quality(set), kPerfect);
    }
  }
}

TEST(SetTable, ChoosesByQualityThenSpanThenWhatStaysFree) {
  Random random(8);
  for (int round = 0; round < 6; ++round) {
    const Wiring wiring = RandomWiring(random, 9);  // more than all choices are kept for
    const SetTable table(wiring);
    for (int ask = 0; ask < 200; ++ask) {
      const auto free = static_cast<GpuMask>(1 + Draw(random, 511));
      const GpuMask required =
          free & static_cast<GpuMask>(Draw(random, 512)) & static_cast<GpuMask>(Draw(random, 512));
      const int size = 2 + Draw(random, 8);
      const GpuMask chosen = table.Choose(free, size, required);
      const auto key = [&](GpuMask set) {
        return std::tuple(table.quality(set), -table.span(set), table.value(free ^ set));
      };
      bool possible = false;
      for (GpuMask set = free; set != 0; set = (set - 1) & free) {
        if (std::popcount(set) != size || (required & ~set) != 0) continue;
        possible = true;
        ASSERT_LE(key(set), key(chosen)) << set << " instead of " << chosen << " of " << free;
      }
      ASSERT_EQ(chosen != 0, possible);
      ASSERT_EQ(chosen & ~free, 0u);
      ASSERT_EQ(std::popcount(chosen), possible ? size : 0);
      ASSERT_EQ(chosen & required, possible ? required : 0u);
    }
  }
}

TEST(SetTable, ValuesWhatStaysFreeByItsBestPartition) {
  Random random(9);
  const Wiring wiring = RandomWiring(random, 6);
  SizeMix pairs;
  pairs.share = {};
  pairs.share[2] = 1;
  const SetTable table(wiring, pairs);
  const auto squares = [](GpuMask free) {  // GPUs 0-2 are one NUMA group, 3-5 the other
    const int low = std::popcount(free & 7), high = std::popcount(free >> 3);
    return low * low + high * high;
  };
  for (GpuMask free = 1; free < 64; ++free) {
    const int members = std::popcount(free);
    if (members < 2) {
      EXPECT_EQ(table.value(free), squares(free));
      continue;
    }
    double mean = 0;
    for (GpuMask set = free; set != 0; set = (set - 1) & free) {
      if (std::popcount(set) == 2) mean += table.quality(set);
    }
    mean /= members * (members - 1) / 2;
    const double value = BestPartition(table, free, 2) / double(members / 2) + 0.1 * mean;
    EXPECT_NEAR(table.value(free), value * 1000 + squares(free), 1) << free;
  }
}

TEST(SetTable, KnowsTheCubeMesh) {
  const SetTable table(WiringOf(Dgx1V()));
  EXPECT_EQ(table.best_ring(2), 50'000);
  EXPECT_EQ(table.best_ring(8), 50'000);
  EXPECT_EQ(table.ring(0b00001111), 25'000);
  EXPECT_EQ(table.Choose(0xFF, 4), 0b00001111u);        // one quad and one NUMA node
  EXPECT_EQ(table.Choose(0b00010011, 2), 0b00010001u);  // the double link, across sockets
  EXPECT_EQ(table.Choose(0b10001001, 1), 0b10000000u);  // the one that hangs by the single link
  EXPECT_EQ(table.Choose(0xFF, 9), 0u);
  EXPECT_EQ(table.Choose(0xFF, 0), 0u);
}

TEST(SetTable, GivesTheGpuThatLostItsFabricToOneGpuPods) {
  Wiring wiring;
  wiring.gpus = 4;
  wiring.numa = {0, 0, 0, 0};
  wiring.megabytes_per_s = {0, 450, 19, 450, 450, 0, 19, 450, 19, 19, 0, 19, 450, 450, 19, 0};
  const SetTable table(wiring);
  EXPECT_EQ(table.Choose(0b1111, 1), 0b0100u);
  EXPECT_EQ(table.Choose(0b1111, 3), 0b1011u);
}

TEST(SetTable, StaysWithinOneNumaNodeWhereAllLinksAreAlike) {
  Wiring wiring;
  wiring.gpus = 8;
  wiring.numa = {0, 1, 0, 1, 0, 1, 0, 1};
  wiring.megabytes_per_s.assign(64, 300'000);
  const SetTable table(wiring);
  EXPECT_EQ(table.Choose(0xFF, 4), 0b01010101u);
  EXPECT_EQ(table.Choose(0b11101011, 3), 0b00101010u);
}

TEST(SearchSet, FindsIslandsInMachinesThatAreTooLargeForATable) {
  Wiring wiring;
  wiring.gpus = 24;
  wiring.megabytes_per_s.assign(24 * 24, 16'000);
  wiring.numa.assign(24, 0);
  for (std::size_t a = 0; a < 24; ++a) {
    for (std::size_t b = 0; b < 24; ++b) {
      if (a == b)
        wiring.megabytes_per_s[a * 24 + b] = 0;
      else if (a % 3 == b % 3)
        wiring.megabytes_per_s[a * 24 + b] = 300'000;
    }
  }
  EXPECT_EQ(SearchSet(wiring, 0xFFFFFF, 8), 0x249249u);
  EXPECT_EQ(SearchSet(wiring, 0xFFFFFF, 8, 0b10), 0x492492u);
  EXPECT_EQ(SearchSet(wiring, 0b111001, 2), 0b001001u);
  EXPECT_EQ(SearchSet(wiring, 0b111001, 1), 0b010000u);
  EXPECT_EQ(SearchSet(wiring, 0b111, 4), 0u);
}

}  // namespace
}  // namespace berth::test::set_table_test
