// SPDX-License-Identifier: Apache-2.0
#include "scoring/victims.h"

#include <gtest/gtest.h>

#include "test/support/builders.h"
#include "test/support/wirings.h"

namespace berth::test::taken_away_test {
namespace {

APod Preemptor(int gpus) { return APod("p").Whole(gpus).Priority(10); }

bool AreTakenAway(const ANode& node, const APod& pod, std::int64_t given = 0) {
  return PodsAreTakenAway(node.Build(), pod.Request(), given);
}

bool WillDo(const ANode& node, const APod& pod) {
  return AnyEvictionsWillDo(node.Build(), pod.Request());
}

TEST(PodsAreTakenAway, WhereThoseThatAreBoundLeaveTooFewGpus) {
  const ANode node = ANode("n").Gpus(4).Holding(APod("low").Whole(2), {0, 1});
  EXPECT_FALSE(AreTakenAway(node, Preemptor(2)));
  EXPECT_TRUE(AreTakenAway(node, Preemptor(3)));
  EXPECT_TRUE(AreTakenAway(node, Preemptor(2), 1)) << "another member has one of the two";
  EXPECT_TRUE(AreTakenAway(ANode(node).Missing(1), Preemptor(2)));
}

TEST(PodsAreTakenAway, NotWhereNobodyMayGo) {
  const ANode node = ANode("n").Gpus(1).Holding(APod("same").Whole(1).Priority(10), {0});
  EXPECT_FALSE(AreTakenAway(node, Preemptor(1)));
}

TEST(PodsAreTakenAway, CountsAsKubeSchedulerDoes) {
  const ANode reserved = ANode("n").Gpus(2).HoldingReserved(APod("r").Whole(1), {0});
  EXPECT_FALSE(AreTakenAway(reserved, Preemptor(2))) << "it may not have heard of it";
  const ANode shared = ANode("n").Gpus(1).Holding(APod("share").Share(500), {0});
  EXPECT_FALSE(AreTakenAway(shared, Preemptor(1))) << "it does not count shares";
  const ANode full = ANode("n").Gpus(1).Holding(APod("low").Whole(1), {0});
  EXPECT_FALSE(AreTakenAway(full, APod("p").Share(500).Priority(10)));
  EXPECT_FALSE(AreTakenAway(full, APod("cpu").Cpu(1).Priority(10)));
}

TEST(AnyEvictionsWillDo, WhereAllGpusAreAsGoodForThePod) {
  const ANode node = ANode("n").Gpus(4).Holding(APod("low").Whole(2), {0, 1});
  EXPECT_TRUE(WillDo(node, Preemptor(3)));
  EXPECT_FALSE(WillDo(node, Preemptor(3).Links({.link = LinkWish::kRequired})));
  EXPECT_FALSE(WillDo(node, Preemptor(3).NotOnGpus({"GPU-0"})));
  EXPECT_FALSE(WillDo(ANode(node).Unhealthy(3), Preemptor(3)));
}

TEST(AnyEvictionsWillDo, NotWhereATopologyManagerGivesSomeTogether) {
  const auto with = [](TopologyPolicy policy) {
    return ANode("n").Gpus(8).Linked(LinksOf(BridgedCards())).Kubelet(policy);
  };
  EXPECT_TRUE(WillDo(with(TopologyPolicy::kNone), Preemptor(3)));
  EXPECT_TRUE(WillDo(with(TopologyPolicy::kBestEffort), Preemptor(3)));
  EXPECT_FALSE(WillDo(with(TopologyPolicy::kRestricted), Preemptor(3)));
  EXPECT_FALSE(WillDo(with(TopologyPolicy::kSingleNumaNode), Preemptor(3)));
}

TEST(AnyEvictionsWillDo, NotBesideThoseThatKubeSchedulerDoesNotCount) {
  const ANode shared = ANode("n").Gpus(4).Holding(APod("share").Share(500), {0});
  EXPECT_FALSE(WillDo(shared, Preemptor(3)));
  EXPECT_FALSE(WillDo(ANode("n").Gpus(4).Claimed({0}), Preemptor(3)));
  EXPECT_TRUE(WillDo(ANode("n").Gpus(4).Holding(APod("cpu").Cpu(1)), Preemptor(3)));
}

}  // namespace
}  // namespace berth::test::taken_away_test
