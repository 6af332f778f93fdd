// SPDX-License-Identifier: Apache-2.0
#include "topology/links/gpu_links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "bench/machine_files/show_topology.h"
#include "test/support/wirings.h"

namespace berth::test::wiring_tables_test {
namespace {

TEST(WiringTables, KnowAWiringUnderAnotherNumbering) {
  Random random(3);
  const Wiring wiring = WiringOf(Dgx1V());
  WiringTables tables;
  const WiringSets own = tables.SetsOf(wiring);
  for (int round = 0; round < 20; ++round) {
    const std::vector<int> to = RandomNumbering(random, 8);
    const WiringSets other = tables.SetsOf(Renumbered(wiring, to));
    for (GpuMask set = 1; set < 256; ++set) {
      GpuMask renumbered = 0;
      for (int gpu = 0; gpu < 8; ++gpu) {
        if ((set >> gpu & 1) != 0) renumbered |= GpuMask{1} << to[static_cast<std::size_t>(gpu)];
      }
      ASSERT_EQ(own.quality(set), other.quality(renumbered));
      ASSERT_EQ(own.span(set), other.span(renumbered));
      const GpuMask chosen = other.Choose(renumbered, 3);
      ASSERT_EQ(chosen & ~renumbered, 0u);
      ASSERT_EQ(other.quality(chosen), own.quality(own.Choose(set, 3)));
    }
  }
  EXPECT_EQ(tables.kinds(), 1u);
}

TEST(WiringTables, KeepDifferentWiringsApart) {
  WiringTables tables;
  Wiring wiring = WiringOf(Dgx1V());
  tables.SetsOf(wiring);
  wiring.numa = {0, 1, 0, 1, 0, 1, 0, 1};
  tables.SetsOf(wiring);
  wiring.megabytes_per_s[1] = wiring.megabytes_per_s[8] = 9000;
  tables.SetsOf(wiring);
  EXPECT_EQ(tables.kinds(), 3u);
}

TEST(WiringTables, TakeTheLowestIndicesWhereAllSetsAreAlike) {
  Wiring wiring;
  wiring.gpus = 16;
  wiring.numa.assign(16, 0);
  wiring.megabytes_per_s.assign(256, 150'000);
  for (std::size_t gpu = 0; gpu < 16; ++gpu) wiring.megabytes_per_s[gpu * 17] = 0;
  const WiringSets sets = WiringTables().SetsOf(wiring);
  EXPECT_EQ(sets.Choose(0xFFF0, 3, 0x8000), 0x8030u);
  EXPECT_EQ(sets.Choose(0xF, 5), 0u);
  EXPECT_EQ(sets.quality(0x8030), kPerfect);
}

TEST(NumberingOf, FindsANumberingWhereThereIsOne) {
  Random random(4);
  for (int round = 0; round < 40; ++round) {
    const Wiring wiring = RandomWiring(random, 2 + Draw(random, 11));
    const Wiring other = Renumbered(wiring, RandomNumbering(random, wiring.gpus));
    const auto to = NumberingOf(wiring, other);
    ASSERT_TRUE(to) << round;
    const Wiring again = Renumbered(wiring, *to);
    ASSERT_EQ(again.megabytes_per_s, other.megabytes_per_s);
    for (int a = 0; a < wiring.gpus; ++a) {
      for (int b = 0; b < wiring.gpus; ++b) {
        const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
        ASSERT_EQ(again.numa[i] == again.numa[j], other.numa[i] == other.numa[j]);
      }
    }
  }
}

TEST(NumberingOf, FindsNoneWhereThereIsNone) {
  const Wiring wiring = WiringOf(Dgx1V());
  Wiring swapped = wiring;  // as many links of each kind, at other GPUs
  std::swap(swapped.megabytes_per_s[1], swapped.megabytes_per_s[3]);
  std::swap(swapped.megabytes_per_s[8], swapped.megabytes_per_s[24]);
  EXPECT_FALSE(NumberingOf(wiring, swapped));
  Random random(5);
  EXPECT_FALSE(NumberingOf(wiring, RandomWiring(random, 7)));
}

TEST(ShowTopology, SeesIslandsAndDrawsThem) {
  const auto matrix = ParseTopoText(
      "      GPU0  GPU1  GPU2\nGPU0   X    SYS   NV4\nGPU1  SYS    X    SYS\nGPU2  NV4  SYS   X\n");
  ASSERT_TRUE(matrix);
  EXPECT_EQ(IslandsOf(*matrix), (std::vector<std::vector<int>>{{0, 2}, {1}}));
  EXPECT_NE(GraphvizOf(*matrix).find("0--2 [label=\"NV4\"]"), std::string::npos)
      << GraphvizOf(*matrix);
  EXPECT_EQ(GraphvizOf(*matrix).find("0--1"), std::string::npos);
}

TEST(Wiring, GroupsByNumaThenByCpusThenByRelation) {
  LinkMatrix matrix = Dgx1V();
  EXPECT_EQ(WiringOf(matrix).Span(0b00010001), 2);
  matrix.numa_affinity.assign(8, "");
  EXPECT_EQ(WiringOf(matrix).Span(0xFF), 1);  // NVLinks hide the relation
  matrix.cpu_affinity = {"0-9", "0-9", "0-9", "0-9", "10-19", "10-19", "10-19", "10-19"};
  EXPECT_EQ(WiringOf(matrix).Span(0b00010001), 2);
  const auto pcie = ParseTopoText(
      "      GPU0  GPU1  GPU2\nGPU0   X    SYS   PIX\nGPU1  SYS    X    SYS\nGPU2  PIX  SYS   X\n");
  EXPECT_EQ(WiringOf(*pcie).numa, (std::vector<int>{0, 1, 0}));
}

}  // namespace
}  // namespace berth::test::wiring_tables_test
