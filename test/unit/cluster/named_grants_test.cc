// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/given_grants.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/state/cluster_state.h"

namespace berth::named_grants_test {
namespace {

NodeSpec TwoGpus(const std::string& first, const std::string& second) {
  NodeSpec spec;
  spec.name = "n1";
  spec.cpu_milli = 64'000;
  spec.memory_bytes = std::int64_t{256} << 30;
  spec.gpus = {{first, 40'000, true}, {second, 80'000, true}};
  return spec;
}

Placement Named(const std::string& uuid, int milli, std::int64_t memory_mib) {
  Placement placement{"n1", 0, 0, {}};
  placement.grants = {
      {.gpu = DeviceGrant::kUnknown, .milli = milli, .memory_mib = memory_mib, .uuid = uuid}};
  return placement;
}

PodBound Bound(const std::string& uid, const Placement& placement) {
  PodRequest pod;
  pod.id = {uid, "ns", uid};
  pod.shape.gpus = GpuShare{0, 10'000};
  return {pod, placement, true, false};
}

const NodeSpec kNode = TwoGpus("a", "b");

TEST(WithIndices, PutsTheGpuOfThatUuidInItsPlace) {
  const Placement found = WithIndices(Named("b", 300, 8000), &kNode);
  EXPECT_EQ(found.grants, (std::vector<DeviceGrant>{{1, 300, 8000}}));
  EXPECT_FALSE(HasNamedGrants(found));
}

TEST(WithIndices, FillsInWhatTheRecordLeavesOpen) {
  EXPECT_EQ(WithIndices(Named("b", 0, 8000), &kNode).grants[0].milli, 100);
  EXPECT_EQ(WithIndices(Named("a", 0, 8001), &kNode).grants[0].milli, 200) << "downwards";
  EXPECT_EQ(WithIndices(Named("b", 1000, 0), &kNode).grants[0].memory_mib, 80'000);
  EXPECT_EQ(WithIndices(Named("b", 0, 90'000), &kNode).grants[0].milli, 1000);
}

TEST(WithIndices, TakesARecordOfAnAgentWhereTheNodeShowsIt) {
  Placement said = Named("b", 0, 0);
  said.grants[0].memory_milli = 250;
  said.agent = "koordlet";
  EXPECT_TRUE(HasNamedGrants(said));
  EXPECT_EQ(WithIndices(said, nullptr), said) << "nobody knows yet";
  const Placement elsewhere = WithIndices(said, &kNode);
  EXPECT_TRUE(elsewhere.grants.empty());
  EXPECT_FALSE(HasNamedGrants(elsewhere));
  NodeSpec node = kNode;
  node.agents = {"koordlet"};
  const Placement found = WithIndices(said, &node);
  EXPECT_EQ(found.grants, (std::vector<DeviceGrant>{{1, 250, 20'000}}));
  EXPECT_FALSE(HasNamedGrants(found));
  said.mig.emplace_back();
  EXPECT_TRUE(WithIndices(said, &node).mig.empty()) << "the node is not partitioned";
}

TEST(WithIndices, LeavesWhatTheNodeDoesNotHaveAsItIs) {
  const Placement said = Named("c", 300, 8000);
  EXPECT_EQ(WithIndices(said, &kNode), said);
  NodeSpec places = TwoGpus("a", "b");
  places.gpus.clear();
  EXPECT_TRUE(WithIndices(said, &places).grants.empty()) << "it shows no GPU by itself";
}

TEST(WithIndices, GoesByTheIndexBesideAUuidWhereTheNodeSaysNone) {
  Placement said = Named("b", 300, 8000);
  said.grants[0].gpu = 0;
  const NodeSpec nameless = TwoGpus("", "");
  EXPECT_EQ(WithIndices(said, &nameless).grants, (std::vector<DeviceGrant>{{0, 300, 8000}}));
  EXPECT_EQ(WithIndices(said, &kNode).grants, (std::vector<DeviceGrant>{{1, 300, 8000}}));
  said.grants[0].uuid = "c";
  EXPECT_EQ(WithIndices(said, &kNode).grants[0].gpu, DeviceGrant::kUnknown) << "it is gone";
}

class NamedGpus : public testing::Test {
 protected:
  void Apply(const ClusterEvent& event) {
    EXPECT_TRUE(state_.Apply(std::vector<ClusterEvent>{event}));
  }
  const Node& node() {
    snapshot_ = state_.Current();
    return snapshot_->node(0);
  }
  ClusterState state_;
  std::shared_ptr<const Snapshot> snapshot_;
};

TEST_F(NamedGpus, AreFoundWhicheverOfNodeAndPodComesFirst) {
  Apply(Bound("p", Named("b", 0, 20'000)));
  Apply(NodeUpserted{TwoGpus("a", "b")});
  EXPECT_EQ(node().gpus()[1], (GpuFree{.milli = 750, .memory_mib = 60'000}));
  Apply(Bound("q", Named("b", 0, 20'000)));
  EXPECT_EQ(node().gpus()[1].memory_mib, 40'000);
  EXPECT_TRUE(state_.Disputes().empty());
}

TEST_F(NamedGpus, AreFoundWhenTheNodeSaysItsUuids) {
  Apply(NodeUpserted{TwoGpus("", "")});
  Apply(Bound("p", Named("b", 250, 20'000)));
  EXPECT_EQ(node().unattributed(), 1);
  EXPECT_TRUE(state_.Disputes().empty()) << "nobody says that it is not there";
  Apply(NodeUpserted{TwoGpus("a", "b")});
  EXPECT_EQ(node().unattributed(), 0);
  EXPECT_EQ(node().gpus()[1].memory_mib, 60'000);
  Apply(Bound("p", Named("b", 250, 20'000)));  // the pod's next status
  EXPECT_EQ(node().gpus()[1].memory_mib, 60'000);
  EXPECT_TRUE(state_.Disputes().empty());
}

TEST_F(NamedGpus, OfBerthsOwnPodsFollowTheirUuids) {
  Apply(NodeUpserted{TwoGpus("a", "b")});
  for (const auto& [uid, index] : {std::pair("a", 0), {"b", 1}}) {
    Placement said = Named(uid, 1000, index == 0 ? 40'000 : 80'000);
    said.grants[0].gpu = index;
    Apply(Bound(uid, said));
  }
  EXPECT_EQ(node().FindPod("a")->placement.grants[0].gpu, 0);
  Apply(NodeUpserted{TwoGpus("b", "a")});
  EXPECT_EQ(node().FindPod("a")->placement.grants[0].gpu, 1);
  EXPECT_EQ(node().FindPod("b")->placement.grants[0].gpu, 0);
  EXPECT_TRUE(state_.Disputes().empty());
}

// The labels with the memory come from another agent than the GPUs, after these.
TEST_F(NamedGpus, AreReadAgainWhenTheNodeSaysHowMuchMemoryTheyHave) {
  NodeSpec bare = TwoGpus("a", "b");
  for (GpuSpec& gpu : bare.gpus) gpu.memory_mib = 0;
  Apply(NodeUpserted{bare});
  Apply(Bound("p", Named("b", 0, 20'000)));
  EXPECT_EQ(node().gpus()[1].milli, 0) << "how much 20,000 MiB are is not known yet";
  Apply(NodeUpserted{TwoGpus("a", "b")});
  EXPECT_EQ(node().gpus()[1], (GpuFree{.milli = 750, .memory_mib = 60'000}));
  Apply(NodeUpserted{TwoGpus("b", "a")});
  EXPECT_EQ(node().gpus()[0], (GpuFree{.milli = 500, .memory_mib = 20'000}));
  EXPECT_TRUE(state_.Disputes().empty());
}

TEST_F(NamedGpus, ThatWereDisputedAreReadAgainToo) {
  Apply(NodeUpserted{TwoGpus("a", "b")});
  Apply(Bound("p", Named("c", 0, 20'000)));
  ASSERT_EQ(state_.Disputes().size(), 1U);
  NodeSpec bare = TwoGpus("a", "c");  // a GPU was replaced; how much memory it has comes later
  for (GpuSpec& gpu : bare.gpus) gpu.memory_mib = 0;
  Apply(NodeUpserted{bare});
  EXPECT_TRUE(state_.Disputes().empty());
  EXPECT_EQ(node().gpus()[1].milli, 0);
  Apply(NodeUpserted{TwoGpus("a", "c")});
  EXPECT_EQ(node().gpus()[1], (GpuFree{.milli = 750, .memory_mib = 60'000}));
}

TEST_F(NamedGpus, AreIgnoredWhenTheRecordChanges) {
  Apply(NodeUpserted{TwoGpus("a", "b")});
  Apply(Bound("p", Named("b", 0, 20'000)));
  for (int status = 0; status < 2; ++status) {
    Apply(Bound("p", Named("a", 0, 20'000)));
    EXPECT_EQ(node().gpus()[1].memory_mib, 60'000);
    EXPECT_EQ(state_.Disputes().size(), 1U);
  }
}

TEST_F(NamedGpus, ThatTheNodeDoesNotHaveAreDisputedAndCountAsSomeOfIts) {
  Apply(NodeUpserted{TwoGpus("a", "b")});
  Apply(Bound("p", Named("c", 500, 20'000)));
  ASSERT_EQ(state_.Disputes().size(), 1U);
  EXPECT_NE(state_.Disputes()[0].problem.find("no GPU of that UUID"), std::string::npos);
  EXPECT_EQ(node().unattributed(), 1);
  EXPECT_LT(node().free_gpu_milli(), 2000);
  Apply(NodeUpserted{TwoGpus("a", "c")});  // a GPU was replaced, or the node was mistaken
  EXPECT_TRUE(state_.Disputes().empty());
  EXPECT_EQ(node().gpus()[1], (GpuFree{.milli = 500, .memory_mib = 60'000}));
}

}  // namespace
}  // namespace berth::named_grants_test
