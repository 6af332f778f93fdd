// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/snapshot.h"

#include <memory>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "cluster/state/cluster_state.h"
#include "test/support/builders.h"

namespace berth::test::node_domains_test {
namespace {

const TopologyLevels kZoneAndRack = {{"zone", {"zone"}}, {"rack", {"new/rack", "old/rack"}}};

TEST(NodeDomains, TheFirstOfALevelsLabelsWithAValueCounts) {
  const auto snapshot =
      SnapshotOf({ANode("n1").Labelled({{"new/rack", "r1"}, {"old/rack", "x"}, {"zone", "z"}}),
                  ANode("n2").Labelled({{"old/rack", "r1"}, {"zone", "z"}}),
                  ANode("n3").Labelled({{"new/rack", ""}, {"old/rack", "r1"}, {"zone", "z"}}),
                  ANode("n4").Labelled({{"zone", "z"}}), ANode("n5")});
  const DomainTree tree = DomainsOf(*snapshot, kZoneAndRack);
  EXPECT_EQ(tree.DomainOf(0, 1), tree.DomainOf(1, 1));
  EXPECT_EQ(tree.DomainOf(0, 1), tree.DomainOf(2, 1));
  EXPECT_FALSE(tree.named(tree.DomainOf(3, 1)));
  EXPECT_EQ(tree.DomainOf(3, 0), tree.DomainOf(0, 0));
  EXPECT_FALSE(tree.named(tree.DomainOf(4, 0)));
}

class NodeDomainsTest : public testing::Test {
 protected:
  void Apply(const ClusterEvent& event) {
    ASSERT_TRUE(state_.Apply(std::span(&event, 1)).has_value());
  }
  void Upsert(const std::string& name, const std::string& rack) {
    Apply(NodeUpserted{ANode(name).Gpus(8).Labelled({{"old/rack", rack}}).Spec()});
  }

  ClusterState state_;
  NodeDomains domains_{kZoneAndRack};
};

TEST_F(NodeDomainsTest, TheTreeStaysUntilLabelsOrNodesChange) {
  Upsert("n1", "r1");
  Upsert("n2", "r1");
  const auto first = domains_.Of(state_.Current());
  EXPECT_EQ(domains_.Of(state_.Current()), first);
  Apply(PodBound{APod("p").Whole(1).Request(), APod("p").Whole(1).On("n1", {0})});
  EXPECT_EQ(domains_.Of(state_.Current()), first);
  Apply(NodeUpserted{ANode("n1").Gpus(4).Labelled({{"old/rack", "r1"}}).Spec()});
  EXPECT_EQ(domains_.Of(state_.Current()), first);

  Upsert("n2", "r2");
  const auto second = domains_.Of(state_.Current());
  EXPECT_NE(second, first);
  EXPECT_NE(second->DomainOf(0, 1), second->DomainOf(1, 1));
  EXPECT_EQ(first->DomainOf(0, 1), first->DomainOf(1, 1));  // its owner keeps the old one
  Upsert("n0", "r2");
  const auto third = domains_.Of(state_.Current());
  ASSERT_EQ(third->nodes(), 3U);
  EXPECT_EQ(third->DomainOf(0, 1), third->DomainOf(2, 1));
}

}  // namespace
}  // namespace berth::test::node_domains_test
