// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/audit.h"

#include <chrono>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/builders.h"

namespace berth::test::audit_test {
namespace {

using std::chrono::seconds;

class AuditTest : public testing::Test {
 protected:
  AuditTest() { Apply(NodeUpserted{ANode("n").Gpus(2).Spec()}); }
  void Apply(const ClusterEvent& event) { ASSERT_TRUE(state_.Apply(std::span(&event, 1))); }
  void Bound(const APod& pod, const std::vector<int>& gpus) {
    Apply(PodBound{pod.Request(), pod.On("n", gpus)});
  }
  [[nodiscard]] AuditReport Run(Instant now = {}) const {
    return Audit(state_.Everything(), now, seconds(60));
  }
  ClusterState state_;
};

TEST_F(AuditTest, FindsNothingWhereAllIsWell) {
  Bound(APod("a").Whole(1), {0});
  Bound(APod("b").Share(400), {1});
  Bound(APod("c").Share(600), {1});
  EXPECT_EQ(Run(), AuditReport());
}

TEST_F(AuditTest, FindsAGpuThatWasGrantedTwice) {
  Bound(APod("a").Whole(1), {0});
  Bound(APod("b").Share(1), {0});
  EXPECT_EQ(Run().double_grants, 1u);
  EXPECT_EQ(Run().double_granted,
            std::vector<std::string>{"GPU 0 of node n: default/a, default/b"});
}

// The kubelet knows no shares: what it gave is what the pod has, and no fault of the books.
TEST_F(AuditTest, FindsAGpuWithSharesThatTheKubeletGaveAsAWhole) {
  NodeSpec node = ANode("n").Gpus(2).Spec();
  node.gpus[0].uuid = "GPU-0";
  node.gpus[1].uuid = "GPU-1";
  node.carries_out = true;
  Apply(NodeUpserted{node});
  Bound(APod("a").Share(300), {0});
  Bound(APod("b").Share(300), {0});
  const APod whole = APod("w").Whole(1);
  PodBound planned{whole.Request(), whole.On("n", {1}), true};
  Apply(planned);
  EXPECT_EQ(Run(), AuditReport());
  for (const Evidence by : {Evidence::kAgent, Evidence::kKubelet}) {
    planned.given = std::make_shared<const GivenDevices>(GivenDevices{.by = by, .ids = {"GPU-0"}});
    Apply(planned);
    EXPECT_EQ(Run().given_over_shares, 1u);
    EXPECT_EQ(Run().over_shares,
              std::vector<std::string>{"GPU 0 of node n: default/a, default/b, default/w"});
    EXPECT_EQ(Run().double_grants, 0u);
    EXPECT_EQ(state_.Current()->node(0).gpus()[0].milli, -600) << "nothing more fits there";
    EXPECT_TRUE(state_.Current()->node(0).gpus()[1].idle()) << "the plan is free";
  }
  Apply(PodGone{whole.Request().id.uid});
  EXPECT_EQ(Run(), AuditReport());
}

TEST_F(AuditTest, NamesTheFirstDoubleGrantsAndCountsAll) {
  Apply(NodeUpserted{ANode("n").Gpus(30).Spec()});
  std::vector<int> all(30);
  std::iota(all.begin(), all.end(), 0);
  Bound(APod("a").Whole(30), all);
  Bound(APod("b").Whole(30), all);
  EXPECT_EQ(Run().double_grants, 30u);
  EXPECT_EQ(Run().double_granted.size(), 20u);
}

TEST_F(AuditTest, FindsANodeThatPodsWereBoundToPastBerthThoughItWasFull) {
  Bound(APod("a").Whole(1), {0});
  Bound(APod("b").Whole(1), {});
  EXPECT_EQ(Run().overfull_nodes, 0u) << "one of its GPUs is left for it";
  Bound(APod("c").Whole(2), {});  // by spec.nodeName
  const AuditReport report = Run();
  EXPECT_EQ(report.overfull_nodes, 1u);
  EXPECT_EQ(report.overfull,
            std::vector<std::string>{"node n has 2 GPUs; bound past Berth: default/b, default/c"});
  EXPECT_EQ(report.double_grants, 0u) << "nobody knows which GPU that is";
  Apply(PodGone{"uid-c"});
  EXPECT_EQ(Run(), AuditReport());
}

TEST_F(AuditTest, FindsNodesThatHaveNoRoomForASharePastBerthEither) {
  Bound(APod("a").Share(600), {0});
  Bound(APod("b").Share(600), {1});
  Bound(APod("c").Share(400), {});
  EXPECT_EQ(Run(), AuditReport());
  Bound(APod("d").Share(500), {});
  EXPECT_EQ(Run().overfull_nodes, 1u);
}

TEST_F(AuditTest, ANodeWhoseDevicePluginStartsIsNotOverfull) {
  Bound(APod("a").Whole(2), {});
  Apply(NodeUpserted{ANode("n").Gpus(0).Spec()});
  EXPECT_EQ(Run().overfull_nodes, 0u);
}

TEST_F(AuditTest, FindsPlacesThatWereGivenPastBerth) {
  NodeSpec node = ANode("n").Spec();
  node.places = {.count = 2, .gpus = 1};
  Apply(NodeUpserted{node});
  Bound(APod("a").Whole(2), {});
  EXPECT_EQ(Run(), AuditReport());
  Bound(APod("b").Whole(1), {});
  EXPECT_EQ(Run().overfull, std::vector<std::string>{
                                "node n has 2 GPU replicas; pods on it: default/a, default/b"});
}

TEST_F(AuditTest, FindsAGpuWithMoreUsersThanItsAgentServes) {
  NodeSpec node = ANode("n").Gpus(1).Spec();
  node.gpus[0].most_users = 2;
  Apply(NodeUpserted{node});
  Bound(APod("a").Share(100), {0});
  Bound(APod("b").Share(100), {0});
  EXPECT_EQ(Run(), AuditReport());
  Bound(APod("c").Share(100), {0});
  EXPECT_EQ(Run().double_granted,
            std::vector<std::string>{"GPU 0 of node n: default/a, default/b, default/c"});
}

TEST_F(AuditTest, FindsGpusThatTheNodeDoesNotHave) {
  Bound(APod("a").Whole(2), {1, 2});
  EXPECT_EQ(Run().unknown_devices, 1u);
}

TEST_F(AuditTest, FindsReservationsThatNobodySettled) {
  const APod pod = APod("a").Whole(1);
  ASSERT_TRUE(state_.Reserve(pod.Request(), pod.On("n", {0}), Instant() + seconds(30)));
  EXPECT_EQ(Run(Instant() + seconds(90)).orphaned_reservations, 0u);
  EXPECT_EQ(Run(Instant() + seconds(91)).orphaned_reservations, 1u);
}

TEST_F(AuditTest, FindsANodeWhoseBooksDoNotAddUp) {
  Bound(APod("a").Whole(1), {0});
  ClusterState::Contents contents = state_.Everything();
  contents.pods.clear();
  EXPECT_EQ(Audit(contents, {}, seconds(60)).differences, 1u);
}

TEST_F(AuditTest, LeavesPodsOfUnknownNodesOut) {
  const APod pod = APod("a").Whole(1);
  Apply(PodBound{pod.Request(), pod.On("gone", {7})});
  EXPECT_EQ(Run(), AuditReport());
}

}  // namespace
}  // namespace berth::test::audit_test
