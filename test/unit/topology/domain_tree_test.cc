// SPDX-License-Identifier: Apache-2.0
#include "topology/domains/domain_tree.h"

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace berth::domain_tree_test {
namespace {

using Values = std::vector<std::string_view>;

std::size_t Count(const DomainTree& tree, std::size_t level) {
  return tree.Level(level).last - tree.Level(level).first;
}

TEST(DomainTree, TheSameValueInTwoDomainsIsTwoDomains) {
  const DomainTree tree(3, 2, Values{"b1", "r1", "b2", "r1", "b1", "r1"});
  EXPECT_EQ(Count(tree, 0), 2U);
  EXPECT_EQ(Count(tree, 1), 2U);
  EXPECT_NE(tree.DomainOf(0, 1), tree.DomainOf(1, 1));
  EXPECT_EQ(tree.DomainOf(0, 1), tree.DomainOf(2, 1));
  EXPECT_EQ(tree.parent(tree.DomainOf(1, 1)), tree.DomainOf(1, 0));
  EXPECT_EQ(tree.parent(tree.DomainOf(1, 0)), DomainTree::kCluster);
}

TEST(DomainTree, ANodeWithoutAValueIsInNoDomainOfThatLevelOnly) {
  const DomainTree tree(3, 3, Values{"z", "", "c1", "z", "b", "c1", "", "", "c1"});
  EXPECT_TRUE(tree.named(tree.DomainOf(0, 0)));
  EXPECT_FALSE(tree.named(tree.DomainOf(0, 1)));
  EXPECT_TRUE(tree.named(tree.DomainOf(0, 2)));
  EXPECT_FALSE(tree.named(tree.DomainOf(2, 0)));
  EXPECT_EQ(tree.DomainOf(0, 0), tree.DomainOf(1, 0));
  // The same clique value below three different paths.
  EXPECT_EQ(tree.CountNamed(0), 1U);
  EXPECT_EQ(tree.CountNamed(1), 1U);
  EXPECT_EQ(tree.CountNamed(2), 3U);
}

TEST(DomainTree, DomainsAreSortedByValue) {
  const DomainTree tree(4, 2, Values{"b", "2", "a", "9", "b", "1", "a", "9"});
  EXPECT_LT(tree.DomainOf(1, 0), tree.DomainOf(0, 0));
  EXPECT_LT(tree.DomainOf(1, 1), tree.DomainOf(2, 1));
  EXPECT_LT(tree.DomainOf(2, 1), tree.DomainOf(0, 1));
  EXPECT_EQ(tree.DomainOf(1, 1), tree.DomainOf(3, 1));
}

TEST(DomainTree, AmountsOfNodesAddUpToTheCluster) {
  const DomainTree tree(4, 2, Values{"z1", "r1", "z1", "r1", "z1", "", "z2", "r1"});
  const std::vector<std::int64_t> sums = tree.SumUp(std::vector<int>{1, 2, 4, 8});
  EXPECT_EQ(sums[DomainTree::kCluster], 15);
  EXPECT_EQ(sums[tree.DomainOf(0, 0)], 7);
  EXPECT_EQ(sums[tree.DomainOf(3, 0)], 8);
  EXPECT_EQ(sums[tree.DomainOf(0, 1)], 3);
  EXPECT_EQ(sums[tree.DomainOf(2, 1)], 4);
  EXPECT_EQ(sums[tree.NodeVertex(1)], 2);
  EXPECT_EQ(tree.DomainOf(1, tree.levels()), tree.NodeVertex(1));
}

TEST(DomainTree, WithoutLevelsOrNodesThereIsTheClusterAlone) {
  const DomainTree flat(2, 0, {});
  EXPECT_EQ(flat.size(), 3U);
  EXPECT_EQ(flat.SumUp(std::vector<int>{3, 4})[DomainTree::kCluster], 7);
  EXPECT_EQ(flat.SumUp(std::vector<double>{-0.5, 2})[DomainTree::kCluster], 1.5);
  const DomainTree empty(0, 2, {});
  EXPECT_EQ(empty.size(), 1U);
  EXPECT_EQ(empty.CountNamed(1), 0U);
  EXPECT_EQ(empty.SumUp(std::vector<int>{})[DomainTree::kCluster], 0);
}

}  // namespace
}  // namespace berth::domain_tree_test
