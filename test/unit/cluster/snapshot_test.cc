// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/snapshot.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "test/support/builders.h"

namespace berth::test::snapshot_test {
namespace {

// "n000", "n001", ...
std::string NameOf(std::size_t i) {
  const std::string digits = std::to_string(i);
  return "n" + std::string(3 - digits.size(), '0') + digits;
}

std::shared_ptr<const Snapshot> SnapshotOfSize(std::size_t count) {
  std::vector<ANode> nodes;
  for (std::size_t i = 0; i < count; ++i) nodes.push_back(ANode(NameOf(i)).Gpus(1));
  return SnapshotOf(nodes);
}

std::shared_ptr<const Node> Filled(const std::string& name) {
  return std::make_shared<const Node>(ANode(name).Gpus(1).Holding(APod("p").Whole(1), {0}).Build());
}

std::vector<NodeIndex> Differences(const Snapshot& a, const Snapshot& b) {
  std::vector<NodeIndex> indices;
  a.ForEachDifference(b, [&indices](NodeIndex i) { indices.push_back(i); });
  return indices;
}

constexpr std::size_t kChunk = Snapshot::kChunkNodes;

TEST(Snapshot, HoldsItsNodesInNameOrderAtEveryChunkBoundary) {
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, kChunk - 1, kChunk, kChunk + 1, 3 * kChunk}) {
    const auto snapshot = SnapshotOfSize(count);
    ASSERT_EQ(snapshot->size(), count);
    for (NodeIndex i = 0; i < count; ++i) {
      EXPECT_EQ(snapshot->node(i).spec().name, NameOf(i));
      EXPECT_EQ(snapshot->names().Find(NameOf(i)), i);
    }
  }
  EXPECT_EQ(Snapshot().size(), 0U);
}

TEST(Snapshot, ChangesOneNodeOfACopyAndLeavesTheOriginal) {
  const auto before = SnapshotOfSize(kChunk + 5);
  const NodeIndex changed = kChunk + 2;
  const Snapshot after = before->With(changed, Filled(NameOf(changed)));
  EXPECT_EQ(before->node(changed).free_gpu_milli(), 1000);
  EXPECT_EQ(after.node(changed).free_gpu_milli(), 0);
  for (NodeIndex i = 0; i < before->size(); ++i) {
    if (i != changed) {
      EXPECT_EQ(&before->node(i), &after.node(i)) << "node " << i << " is shared";
    }
  }
  EXPECT_TRUE(after.SameNodes(*before));
}

TEST(Snapshot, VisitsExactlyTheNodesThatDiffer) {
  const auto before = SnapshotOfSize(3 * kChunk);
  Snapshot after = *before;
  EXPECT_TRUE(Differences(after, *before).empty());
  const std::vector<NodeIndex> changed = {0, kChunk - 1, 2 * kChunk, 3 * kChunk - 1};
  for (const NodeIndex i : changed) after = after.With(i, Filled(NameOf(i)));
  EXPECT_EQ(Differences(after, *before), changed);
  EXPECT_EQ(Differences(*before, after), changed);
}

TEST(Snapshot, TellsNodesApartByIdentityWhenVisiting) {
  const auto before = SnapshotOfSize(2);
  const auto equal = std::make_shared<const Node>(ANode(NameOf(1)).Gpus(1).Build());
  const Snapshot after = before->With(1, equal);
  EXPECT_EQ(Differences(after, *before), std::vector<NodeIndex>{1});
  EXPECT_TRUE(after == *before) << "in value there is no difference";
}

TEST(Snapshot, EqualsByValueAndSameNodesOnlyByDescent) {
  const auto a = SnapshotOfSize(5), b = SnapshotOfSize(5);
  EXPECT_TRUE(*a == *b);
  EXPECT_FALSE(a->SameNodes(*b));
  EXPECT_FALSE(*a == *SnapshotOfSize(4));
  EXPECT_FALSE(*a == *SnapshotOfSize(6));
  EXPECT_FALSE(*a == a->With(2, Filled(NameOf(2))));
}

}  // namespace
}  // namespace berth::test::snapshot_test
