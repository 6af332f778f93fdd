// SPDX-License-Identifier: Apache-2.0
#include "topology/links/wiring.h"

#include <bit>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace berth::rail_alignment_test {
namespace {

using Masks = std::vector<std::uint64_t>;

TEST(RailAlignment, MostNodesGiveTheSameGpus) {
  const RailChoice choice = AlignRails(Masks{0b1111'0000, 0b0011'1100, 0b0111'0011}, 2);
  EXPECT_EQ(choice.rails, 0b0011'0000U);
  EXPECT_EQ(choice.aligned, 3U);
  EXPECT_EQ(choice.nodes, (Masks{0b0011'0000, 0b0011'0000, 0b0011'0000}));
}

TEST(RailAlignment, AmongEqualsTheLowestSetWins) {
  EXPECT_EQ(AlignRails(Masks{0xff, 0xff}, 4).rails, 0x0fU);
  EXPECT_EQ(AlignRails(Masks{0b1010, 0b0101}, 1).rails, 0b0001U);
}

TEST(RailAlignment, ANodeThatLacksARailGivesWhatItHasOfThem) {
  const RailChoice choice = AlignRails(Masks{0b0110, 0b0110, 0b1011, 0b1000}, 2);
  EXPECT_EQ(choice.rails, 0b0110U);
  EXPECT_EQ(choice.aligned, 2U);
  EXPECT_EQ(choice.nodes, (Masks{0b0110, 0b0110, 0b0011, 0}));
}

TEST(RailAlignment, WhereNoNodeHasEnoughNothingIsChosen) {
  for (const RailChoice& choice : {AlignRails(Masks{0b1, 0b10}, 2), AlignRails(Masks{0, 0}, 1)}) {
    EXPECT_EQ(choice.rails, 0U);
    EXPECT_EQ(choice.aligned, 0U);
    EXPECT_EQ(choice.nodes, (Masks{0, 0}));
  }
  EXPECT_TRUE(AlignRails({}, 1).nodes.empty());
}

TEST(RailAlignment, LargeNodesAreAlignedOneRailAfterTheOther) {
  const std::uint64_t high = std::uint64_t{0b111} << 40;
  const RailChoice choice = AlignRails(Masks{high | 1, high | 2, high | 4}, 3);
  EXPECT_EQ(choice.rails, high);
  EXPECT_EQ(choice.aligned, 3U);
}

// No other set serves more nodes, on every random cluster; and every node gives k of its own.
TEST(RailAlignment, NoOtherSetServesMoreNodes) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    const int k = 1 + static_cast<int>(random.Below(4));
    Masks free(1 + random.Below(6));
    for (std::uint64_t& mask : free) mask = random.Next() & 0xff;
    const RailChoice choice = AlignRails(free, k);
    std::size_t most = 0;
    for (std::uint64_t set = 1; set < 256; ++set) {
      if (std::popcount(set) != k) continue;
      std::size_t served = 0;
      for (const std::uint64_t mask : free) served += (mask & set) == set ? 1U : 0U;
      most = std::max(most, served);
    }
    EXPECT_EQ(choice.aligned, most) << round;
    for (std::size_t i = 0; i < free.size(); ++i) {
      EXPECT_EQ(choice.nodes[i] & ~free[i], 0U);
      EXPECT_EQ(std::popcount(choice.nodes[i]), std::popcount(free[i]) < k ? 0 : k);
    }
  }
}

}  // namespace
}  // namespace berth::rail_alignment_test
