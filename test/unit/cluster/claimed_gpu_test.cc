// SPDX-License-Identifier: Apache-2.0
//
// What ResourceClaims hold: which GPUs those are, and that nobody else gets them.
#include "cluster/node/mig_use.h"

#include <chrono>
#include <span>

#include <gtest/gtest.h>

#include "cluster/state/audit.h"
#include "cluster/state/cluster_state.h"
#include "test/support/builders.h"

namespace berth::test::claimed_gpu_test {
namespace {

using Claimed = std::vector<ClaimedGpu>;

ClaimedGpu ByIndex(int index, const std::string& claim = "ns/c") {
  return {claim, "gpu-" + std::to_string(index), "", index, "", -1};
}
ClaimedGpu ByUuid(const std::string& uuid, int index) {
  return {"ns/c", "gpu", uuid, index, "", -1};
}

NodeSpec WithUuids(const std::vector<std::string>& uuids) {
  NodeSpec spec = ANode("n").Gpus(static_cast<int>(uuids.size())).Spec();
  for (std::size_t i = 0; i < uuids.size(); ++i) spec.gpus[i].uuid = uuids[i];
  return spec;
}

TEST(HeldByClaims, AreTheGpusOfTheseIndicesEachOnce) {
  const NodeSpec spec = ANode("n").Gpus(4).Spec();
  EXPECT_EQ(HeldByClaims(spec, {}), 0u);
  EXPECT_EQ(HeldByClaims(spec, Claimed{ByIndex(0), ByIndex(3), ByIndex(3)}), 0b1001u);
}

TEST(HeldByClaims, AUuidSaysMoreThanAnIndex) {
  const Claimed claimed = {ByUuid("b", 0)};
  EXPECT_EQ(HeldByClaims(WithUuids({"a", "b"}), claimed), 0b10u);
  EXPECT_EQ(HeldByClaims(WithUuids({"", ""}), claimed), 0b01u) << "the node knows none";
  EXPECT_EQ(HeldByClaims(WithUuids({"a", "c"}), claimed), 0u) << "it is none of the node's";
}

TEST(HeldByClaims, DevicesBeyondTheNodesGpusHoldNone) {
  EXPECT_EQ(HeldByClaims(ANode("n").Gpus(2).Spec(), Claimed{ByIndex(2), ByIndex(-1)}), 0u);
  EXPECT_EQ(HeldByClaims(ANode("n").Spec(), Claimed{ByIndex(0)}), 0u);
}

class ClaimsInTheState : public testing::Test {
 protected:
  void Apply(const ClusterEvent& event) { ASSERT_TRUE(state_.Apply(std::span(&event, 1))); }
  void Claim(Claimed gpus) { Apply(GpusClaimed{"n", std::move(gpus)}); }
  void Up(int gpus) { Apply(NodeUpserted{ANode("n").Gpus(gpus).Spec()}); }
  const Node& Now() {
    snapshot_ = state_.Current();
    return snapshot_->node(snapshot_->names().Find("n"));
  }
  [[nodiscard]] AuditReport Report() const {
    return Audit(state_.Everything(), {}, std::chrono::seconds(60));
  }

  ClusterState state_;
  std::shared_ptr<const Snapshot> snapshot_;
};

TEST_F(ClaimsInTheState, AGpuThatIsHeldHasNothingFree) {
  Up(2);
  Claim({ByIndex(1)});
  EXPECT_EQ(Now().claimed(), 0b10u);
  EXPECT_EQ(Now().gpus()[0], (GpuFree{.milli = 1000, .memory_mib = 16'000}));
  EXPECT_EQ(Now().gpus()[1], (GpuFree{.milli = 0, .memory_mib = 0}));
  const APod pod = APod("a").Whole(1), share = APod("b").Share(1);
  EXPECT_FALSE(state_.Reserve(pod.Request(), pod.On("n", {1}), Instant() + std::chrono::hours(1)));
  EXPECT_FALSE(
      state_.Reserve(share.Request(), share.On("n", {1}), Instant() + std::chrono::hours(1)));
  EXPECT_TRUE(state_.Reserve(pod.Request(), pod.On("n", {0}), Instant() + std::chrono::hours(1)));
  EXPECT_EQ(Report(), AuditReport());
}

TEST_F(ClaimsInTheState, TheLastReportWins) {
  Up(4);
  Claim({ByIndex(0, "ns/a"), ByIndex(0, "ns/b"), ByIndex(1, "ns/b")});
  EXPECT_EQ(Now().free_gpu_milli(), 2000) << "once, however many claims have a part of it";
  Claim({ByIndex(0, "ns/b")});
  EXPECT_EQ(Now().free_gpu_milli(), 3000);
  Claim({});
  EXPECT_EQ(Now().free_gpu_milli(), 4000);
  EXPECT_EQ(Now().claims(), nullptr);
}

TEST_F(ClaimsInTheState, EachSourceSaysItsOwn) {
  Up(4);
  Claim({ByIndex(0)});
  Apply(GpusClaimed{"n", {ByIndex(1)}, "instaslice"});
  EXPECT_EQ(Now().claimed(), 0b11u);
  Claim({ByIndex(2)});
  EXPECT_EQ(Now().claimed(), 0b110u);
  Claim({});
  EXPECT_EQ(Now().claimed(), 0b010u);
  Apply(GpusClaimed{"n", {}, "instaslice"});
  EXPECT_EQ(Now().claims(), nullptr);
  EXPECT_EQ(Report(), AuditReport());
}

TEST_F(ClaimsInTheState, ComeBeforeTheirNodeAndOutliveIt) {
  Claim({ByIndex(1)});
  Up(2);
  EXPECT_EQ(Now().free_gpu_milli(), 1000);
  Apply(NodeRemoved{"n"});
  Apply(NodeUpserted{ANode("other").Spec()});
  Up(4);
  EXPECT_EQ(Now().free_gpu_milli(), 3000);
  Up(1);
  EXPECT_EQ(Now().free_gpu_milli(), 1000) << "it has no such GPU any more";
}

TEST_F(ClaimsInTheState, StayWhileNodeAndPodsChange) {
  Up(2);
  Claim({ByIndex(1)});
  const APod pod = APod("a").Whole(1);
  Apply(PodBound{pod.Request(), pod.On("n", {0})});
  EXPECT_EQ(Now().free_gpu_milli(), 0);
  Apply(NodeUpserted{ANode("n").Gpus(2).Labelled({{"a", "b"}}).Spec()});
  EXPECT_EQ(Now().free_gpu_milli(), 0);
  Apply(PodGone{"uid-a"});
  EXPECT_EQ(Now().free_gpu_milli(), 1000);
  EXPECT_EQ(Report(), AuditReport());
}

TEST_F(ClaimsInTheState, AHeartbeatOfThemChangesNothing) {
  Up(2);
  Claim({ByIndex(1)});
  const auto before = state_.Current();
  Claim({ByIndex(1)});
  EXPECT_EQ(state_.Current(), before);
}

TEST_F(ClaimsInTheState, APodOnAGpuThatIsHeldIsADoubleGrant) {
  Up(2);
  Claim({ByIndex(1)});
  const APod pod = APod("a").Share(100);
  Apply(PodBound{pod.Request(), pod.On("n", {1})});
  EXPECT_EQ(Report().double_grants, 1u);
  EXPECT_EQ(Report().differences, 0u);
}

TEST_F(ClaimsInTheState, APodBoundPastBerthIsNotAssumedThere) {
  Up(2);
  Claim({ByIndex(1)});
  Apply(PodBound{APod("a").Whole(1).Request(), APod("a").Whole(1).On("n")});
  EXPECT_EQ(Now().gpus()[0].milli, 0);
  EXPECT_EQ(Now().gpus()[1].milli, 0);
}

}  // namespace
}  // namespace berth::test::claimed_gpu_test
