// SPDX-License-Identifier: Apache-2.0
#include "topology/links/wiring.h"

#include <gtest/gtest.h>

#include <vector>

#include "test/support/wirings.h"

namespace berth::test::surroundings_test {
namespace {

TEST(Surroundings, OfPcieCardsAreWhatTheMatrixSays) {
  const std::vector<Surroundings> around = SurroundingsOf(CardsWithOneNic());
  ASSERT_EQ(around.size(), 4u);
  EXPECT_EQ(around[0].root, 0b0011u);
  EXPECT_EQ(around[0].numa, 0b0011u);
  EXPECT_EQ(around[0].fabric, 0b0001u) << "itself alone";
  EXPECT_EQ(around[3].root, 0b1100u);
  EXPECT_EQ(around[0].nic, LinkType::kSys);
  EXPECT_EQ(around[2].nic, LinkType::kPxb);
  EXPECT_EQ(around[3].nic, LinkType::kNode);
}

TEST(Surroundings, ANicTellsThePcieRootsThatToolsHideBehindNvlinks) {
  const std::vector<Surroundings> around = SurroundingsOf(SwitchedPairs());
  EXPECT_EQ(around[0].root, 0b00000011u);
  EXPECT_EQ(around[5].root, 0b00110000u);
  EXPECT_EQ(around[5].numa, 0b11110000u);
  EXPECT_EQ(around[5].fabric, 0b11111111u);
  EXPECT_EQ(around[5].nic, LinkType::kPxb);
}

TEST(Surroundings, WithoutNicsAndNumaNothingIsTakenForNear) {
  const LinkMatrix matrix = *ParseTopoText(
      "      GPU0  GPU1\n"
      "GPU0   X    NV4\n"
      "GPU1  NV4    X\n");
  const std::vector<Surroundings> around = SurroundingsOf(matrix);
  EXPECT_EQ(around[0].root, 0b01u);
  EXPECT_EQ(around[0].numa, 0b11u) << "one group, by what is known";
  EXPECT_EQ(around[0].fabric, 0b11u);
  EXPECT_EQ(around[0].nic, LinkType::kUnknown);
}

TEST(Surroundings, AcrossAHostBridgeIsAnotherRoot) {
  const LinkMatrix matrix = *ParseTopoText(
      "      GPU0  GPU1  GPU2  NUMA\n"
      "GPU0   X    PHB   PXB   0\n"
      "GPU1  PHB    X    PHB   0\n"
      "GPU2  PXB   PHB    X    0\n");
  EXPECT_EQ(SurroundingsOf(matrix)[0].root, 0b101u);
  EXPECT_EQ(SurroundingsOf(matrix)[1].root, 0b010u);
}

}  // namespace
}  // namespace berth::test::surroundings_test
