// SPDX-License-Identifier: Apache-2.0
#include "scoring/admission.h"

#include <gtest/gtest.h>

#include <vector>

#include "test/support/builders.h"

namespace berth::test::node_guard_test {
namespace {

int UnguardedOf(const ANode& node) { return UnguardedGpuNodes(*SnapshotOf({node})); }

TEST(NodeGuard, CountsGpuNodesThatNoTaintKeepsPodsOff) {
  EXPECT_EQ(UnguardedGpuNodes(*SnapshotOf({ANode("a").Gpus(2), ANode("b"), ANode("c").Places(4)})),
            2);
  EXPECT_EQ(UnguardedOf(ANode("n").Gpus(1).Tainted("sku")), 0);
  EXPECT_EQ(UnguardedOf(ANode("n").Gpus(1).Tainted("gpu", "", TaintEffect::kNoExecute)), 0);
  EXPECT_EQ(UnguardedOf(ANode("n").Gpus(1).Tainted("gpu", "", TaintEffect::kPreferNoSchedule)), 1);
  EXPECT_EQ(UnguardedOf(ANode("n").Gpus(1).Tainted("node.kubernetes.io/unschedulable")), 1)
      << "that ends with the cordon";
}

TEST(NodeGuard, ScoresOnlyGpuNodesByThePolicy) {
  const auto snapshot = SnapshotOf({ANode("a").Gpus(2), ANode("b"), ANode("c")});
  EXPECT_EQ(GuardedPriorities(*snapshot, std::vector<NodeIndex>{0, 1, 2}),
            (std::vector<std::uint8_t>{0, 10, 10}));
  EXPECT_EQ(GuardedPriorities(*snapshot, std::vector<NodeIndex>{1, 2}),
            (std::vector<std::uint8_t>{10, 10}));
  EXPECT_TRUE(GuardedPriorities(*snapshot, std::vector<NodeIndex>{0}).empty());
  EXPECT_TRUE(GuardedPriorities(*snapshot, {}).empty());
}

}  // namespace
}  // namespace berth::test::node_guard_test
