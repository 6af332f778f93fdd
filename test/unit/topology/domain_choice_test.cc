// SPDX-License-Identifier: Apache-2.0
#include "topology/domains/domain_tree.h"

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace berth::domain_choice_test {
namespace {

using Pods = std::vector<std::int64_t>;
using Values = std::vector<std::string_view>;

// One rack of so many nodes.
DomainTree OneRack(std::size_t nodes) { return {nodes, 1, Values(nodes, "r")}; }

Pods PodsOf(const std::optional<DomainChoice>& choice) { return choice ? choice->pods : Pods{}; }

DomainWish Wish(std::int64_t pods, DomainMode mode, std::size_t level = 0) {
  return {.pods = pods, .mode = mode, .level = level, .slice_level = {}};
}

// The examples of Kueue's enhancement proposal.
TEST(DomainChoice, SevenPodsOnNodesWithRoomForThreeThreeTwoAndOne) {
  const DomainTree tree = OneRack(4);
  const std::vector<int> room = {3, 3, 2, 1};
  EXPECT_EQ(PodsOf(ChooseDomains(tree, room, Wish(7, DomainMode::kRequired))), (Pods{3, 3, 0, 1}));
  EXPECT_EQ(PodsOf(ChooseDomains(tree, room, Wish(7, DomainMode::kUnconstrained))),
            (Pods{3, 1, 2, 1}));
}

TEST(DomainChoice, PacksOfTwoOnNodesWithRoomForSixFiveFourThreeAndTwo) {
  const DomainTree tree = OneRack(5);
  const std::vector<int> room = {6, 5, 4, 3, 2};
  DomainWish wish = Wish(12, DomainMode::kRequired);
  wish.slice_size = 2;
  EXPECT_EQ(PodsOf(ChooseDomains(tree, room, wish)), (Pods{6, 0, 4, 0, 2}));
  wish.mode = DomainMode::kUnconstrained;
  wish.pods = 10;
  EXPECT_EQ(PodsOf(ChooseDomains(tree, room, wish)), (Pods{0, 2, 4, 2, 2}));
}

// Blocks a (racks of 4 and 3) and b (racks of 2 and 2), two nodes each.
class TwoBlocks : public testing::Test {
 protected:
  const DomainTree tree_{8, 2,
                         Values{"a", "1", "a", "1", "a", "2", "a", "2",  //
                                "b", "1", "b", "1", "b", "2", "b", "2"}};
  const std::vector<int> room_ = {2, 2, 2, 1, 1, 1, 1, 1};
};

TEST_F(TwoBlocks, RequiredTakesTheTightestDomainOfThatLevelOrNone) {
  const auto two = ChooseDomains(tree_, room_, Wish(2, DomainMode::kRequired, 1));
  ASSERT_TRUE(two);
  EXPECT_EQ(two->domain, tree_.DomainOf(4, 1));  // b/1 before b/2
  EXPECT_EQ(two->pods, (Pods{0, 0, 0, 0, 1, 1, 0, 0}));
  const auto three = ChooseDomains(tree_, room_, Wish(3, DomainMode::kRequired, 1));
  ASSERT_TRUE(three);
  EXPECT_EQ(three->domain, tree_.DomainOf(2, 1));
  EXPECT_FALSE(ChooseDomains(tree_, room_, Wish(5, DomainMode::kRequired, 1)));
  const auto block = ChooseDomains(tree_, room_, Wish(5, DomainMode::kRequired, 0));
  ASSERT_TRUE(block);
  EXPECT_EQ(block->domain, tree_.DomainOf(0, 0));
  EXPECT_EQ(block->pods, (Pods{2, 2, 0, 1, 0, 0, 0, 0}));
}

TEST_F(TwoBlocks, PreferredWidensUntilItFits) {
  const auto rack = ChooseDomains(tree_, room_, Wish(4, DomainMode::kPreferred, 1));
  ASSERT_TRUE(rack);
  EXPECT_EQ(rack->domain, tree_.DomainOf(0, 1));
  const auto block = ChooseDomains(tree_, room_, Wish(6, DomainMode::kPreferred, 1));
  ASSERT_TRUE(block);
  EXPECT_EQ(block->domain, tree_.DomainOf(0, 0));
  const auto both = ChooseDomains(tree_, room_, Wish(9, DomainMode::kPreferred, 1));
  ASSERT_TRUE(both);
  EXPECT_EQ(both->domain, DomainTree::kCluster);
  EXPECT_EQ(both->pods, (Pods{2, 2, 2, 1, 1, 1, 0, 0}));
  EXPECT_FALSE(ChooseDomains(tree_, room_, Wish(12, DomainMode::kPreferred, 1)));
}

TEST_F(TwoBlocks, PacksStayWithinTheirLevel) {
  DomainWish wish = Wish(6, DomainMode::kRequired, 0);
  wish.slice_size = 3;
  wish.slice_level = 1;  // each pack in one rack
  const auto choice = ChooseDomains(tree_, room_, wish);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->pods[0] + choice->pods[1], 3);
  EXPECT_EQ(choice->pods[2] + choice->pods[3], 3);
  wish.pods = 9;  // 7 pods of room in the block, but only two racks that hold a pack
  EXPECT_FALSE(ChooseDomains(tree_, room_, wish));
}

TEST(DomainChoice, NodesWithoutTheLevelAreLeftOutOfIt) {
  const DomainTree tree(4, 2, Values{"z", "", "z", "", "z", "r", "", "r"});
  const std::vector<int> room = {5, 5, 1, 9};
  EXPECT_FALSE(ChooseDomains(tree, room, Wish(10, DomainMode::kRequired, 1)));
  const auto rack = ChooseDomains(tree, room, Wish(9, DomainMode::kRequired, 1));
  ASSERT_TRUE(rack);
  EXPECT_EQ(rack->pods, (Pods{0, 0, 0, 9}));  // its zone is not known, its rack is
  const auto zone = ChooseDomains(tree, room, Wish(11, DomainMode::kRequired, 0));
  ASSERT_TRUE(zone);
  EXPECT_EQ(zone->pods, (Pods{5, 5, 1, 0}));
}

TEST(DomainChoice, NoRoomIsNoChoice) {
  const DomainTree tree = OneRack(2);
  for (const DomainMode mode :
       {DomainMode::kRequired, DomainMode::kPreferred, DomainMode::kUnconstrained}) {
    EXPECT_FALSE(ChooseDomains(tree, std::vector<int>{0, 0}, Wish(1, mode)));
    EXPECT_FALSE(ChooseDomains(tree, std::vector<int>{1, 1}, Wish(3, mode)));
    EXPECT_TRUE(ChooseDomains(tree, std::vector<int>{1, 1}, Wish(2, mode)));
  }
}

}  // namespace
}  // namespace berth::domain_choice_test
