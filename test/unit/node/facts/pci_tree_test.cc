// SPDX-License-Identifier: Apache-2.0
#include "node/facts/pci_tree.h"

#include <gtest/gtest.h>

#include <string>

#include "test/unit/node/facts/made_up_machine.h"

namespace berth::test::pci_tree_test {
namespace {

using node::PciAddress;
using node::PciTree;

TEST(PciAddresses, AreWrittenAsSysfsDoes) {
  EXPECT_EQ(PciAddress("00000000:1A:00.0"), "0000:1a:00.0");
  EXPECT_EQ(PciAddress("1a:00.0"), "0000:1a:00.0");
  EXPECT_EQ(PciAddress("00010000:01:00.0"), "10000:01:00.0");
  for (const char* wrong : {"", "GPU-a", "0000:1a:00", "0000:xy:00.0", "0:1ff:00.0", ":1a:0.0"}) {
    EXPECT_EQ(PciAddress(wrong), "") << wrong;
  }
}

// Two switches, one with another behind it, under one root; another root on each NUMA node.
struct Board : MadeUpMachine {
  Board() {
    const std::string root = "pci0000:10/0000:10:01.0";
    Device(root + "/0000:11:00.0/0000:12:00.0", "0000:13:00.0", 0, "0-31");
    Device(root + "/0000:11:00.0/0000:12:01.0", "0000:14:00.0", 0);
    Device(root + "/0000:11:00.0/0000:12:02.0/0000:15:00.0/0000:16:00.0", "0000:17:00.0", 0);
    Device("pci0000:10/0000:10:02.0", "0000:18:00.0", 0);
    Device("pci0000:40/0000:40:01.0", "0000:41:00.0", 0);
    Device("pci0000:80/0000:80:01.0", "0000:81:00.0", 1);
    Device("pci0000:c0/0000:c0:01.0", "0000:c1:00.0", -1);
  }
};

TEST(PciTree, SaysWhatIsBetweenTwoDevicesAsNvidiaSmiDoes) {
  const Board board;
  const PciTree tree(board.sys());
  const std::string gpu = "0000:13:00.0";
  EXPECT_EQ(tree.Between(gpu, "0000:14:00.0"), LinkType::kPix);
  EXPECT_EQ(tree.Between(gpu, "0000:17:00.0"), LinkType::kPxb);
  EXPECT_EQ(tree.Between("0000:17:00.0", gpu), LinkType::kPxb);
  EXPECT_EQ(tree.Between(gpu, "0000:18:00.0"), LinkType::kPhb);
  EXPECT_EQ(tree.Between(gpu, "0000:41:00.0"), LinkType::kNode);
  EXPECT_EQ(tree.Between(gpu, "0000:81:00.0"), LinkType::kSys);
}

TEST(PciTree, DoesNotGuess) {
  const Board board;
  const PciTree tree(board.sys());
  EXPECT_EQ(tree.Between("0000:13:00.0", "0000:c1:00.0"), LinkType::kUnknown);  // no NUMA node
  EXPECT_EQ(tree.Between("0000:13:00.0", "0000:ff:00.0"), LinkType::kUnknown);
  EXPECT_EQ(tree.Between("", ""), LinkType::kUnknown);
  EXPECT_EQ(tree.NumaNode("0000:c1:00.0"), std::nullopt);
  EXPECT_EQ(tree.NumaNode("0000:81:00.0"), 1);
  EXPECT_EQ(tree.LocalCpus("0000:13:00.0"), "0-31");
  EXPECT_EQ(tree.LocalCpus("0000:ff:00.0"), "");
}

TEST(PciTree, ListsNicsInTheirOrderAndNoVirtualOnes) {
  const Board board;
  board.Rdma("mlx5_10", "0000:81:00.0");
  board.Rdma("mlx5_2", "0000:41:00.0");
  board.Device("pci0000:40/0000:40:02.0", "0000:42:00.1", 0);
  board.Write("sys/devices/pci0000:40/0000:40:02.0/0000:42:00.1/physfn/vendor", "0x15b3");
  board.Rdma("mlx5_3", "0000:42:00.1");
  std::size_t more = 7;
  const auto nics = PciTree(board.sys()).Nics(more);
  ASSERT_EQ(nics.size(), 2u);
  EXPECT_EQ(nics[0].name, "mlx5_2");
  EXPECT_EQ(nics[1].name, "mlx5_10");
  EXPECT_EQ(nics[1].pci, "0000:81:00.0");
  EXPECT_EQ(more, 0u);
}

TEST(PciTree, ListsAtMost64Nics) {
  const MadeUpMachine machine;
  machine.Device("pci0000:40/0000:40:01.0", "0000:41:00.0", 0);
  for (int i = 0; i < 70; ++i) machine.Rdma("mlx5_" + std::to_string(i), "0000:41:00.0");
  std::size_t more = 0;
  EXPECT_EQ(PciTree(machine.sys()).Nics(more).size(), 64u);
  EXPECT_EQ(more, 6u);
}

}  // namespace
}  // namespace berth::test::pci_tree_test
