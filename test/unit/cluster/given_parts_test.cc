// SPDX-License-Identifier: Apache-2.0
//
// What the books hold of pods that were seen to be given MIG devices, replicas of GPUs or claims.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "cluster/state/cluster_state.h"
#include "test/support/builders.h"
#include "test/support/mig_nodes.h"

namespace berth::test::given_parts_test {
namespace {

using Gpus = std::vector<int>;
using Names = std::vector<std::string>;

GivenDevices GivenMig(Names mig, Names unwell = {}, Evidence by = Evidence::kKubelet) {
  return {.by = by, .mig = std::move(mig), .unwell = std::move(unwell)};
}
GivenDevices GivenReplicas(Names ids, std::vector<int> replicas) {
  return {.ids = std::move(ids), .replicas = std::move(replicas)};
}
GivenDevices GivenClaimed(Names claimed, Names unwell = {}) {
  return {.claimed = std::move(claimed), .unwell = std::move(unwell)};
}

// Seven small devices on each of two GPUs: "MIG-1-4" is at 4 of GPU 1. berth: an agent gives what
// Berth picks.
NodeSpec NamedMig(bool berth) {
  MigSpec spec = StaticMig(2, kSevenSmall);
  spec.knowledge = MigKnowledge::kExact;
  if (berth) spec.allocator = MigAllocator::kBerth;
  for (MigGpu& gpu : spec.gpus) {
    const int row = *spec.product->RowOf(ProfileOf("1g.5gb"));
    for (int start = 0; start < 7; ++start) {
      gpu.names.push_back({*spec.product->PlacementAt(row, start),
                           "MIG-" + std::to_string(gpu.index) + "-" + std::to_string(start)});
    }
  }
  return ANode("n").Mig(std::move(spec)).Spec();
}

// Four GPUs with three users each; their agent carries out on which GPU a pod is.
NodeSpec NamedPlaces() {
  NodeSpec spec = ANode("n").Places(12).CarriesOut().Spec();
  spec.places.gpus = 4;
  spec.places.uuids = {"GPU-0", "GPU-1", "GPU-2", "GPU-3"};
  return spec;
}

class GivenPartsTest : public testing::Test {
 protected:
  void Apply(const ClusterEvent& event) { ASSERT_TRUE(state_.Apply(std::span(&event, 1))); }
  void Up(const NodeSpec& spec) { Apply(NodeUpserted{spec}); }
  void Shows(const APod& pod, const GivenDevices& given, PodDevices planned = {}) {
    PodBound bound{pod.Request(), pod.On("n"), true};
    SetDevices(std::move(planned), bound.placement);
    if (!given.empty()) bound.given = std::make_shared<const GivenDevices>(given);
    Apply(bound);
  }
  void Gone(const APod& pod) { Apply(PodGone{pod.Request().id.uid}); }
  [[nodiscard]] PodRecord Record(const APod& pod) const {
    return *state_.FindPod(pod.Request().id.uid);
  }
  [[nodiscard]] const Node& TheNode() {
    snapshot_ = state_.Current();
    return snapshot_->node(0);
  }
  [[nodiscard]] MigSet Taken(std::size_t gpu) { return TheNode().mig().taken()[gpu]; }
  [[nodiscard]] MigSet At(const std::vector<int>& starts) {
    std::vector<ProfileAt> instances;
    for (const int start : starts) instances.emplace_back("1g.5gb", start);
    return SetOf(*TheNode().spec().mig->product, instances);
  }
  [[nodiscard]] Gpus PlacesOn() {
    const auto on = TheNode().places_on();
    return {on.begin(), on.end()};
  }

  ClusterState state_;
  std::shared_ptr<const Snapshot> snapshot_;
  const APod a_ = APod("a").Mig("1g.5gb", 2);
  const APod b_ = APod("b").Mig("1g.5gb");
};

TEST_F(GivenPartsTest, APodHoldsTheMigDevicesThatTheKubeletPicked) {
  Up(NamedMig(false));
  Shows(a_, {}, {.mig = {AGrantOf("1g.5gb"), AGrantOf("1g.5gb")}});
  EXPECT_EQ(Taken(0), At({0, 1})) << "assumed: the first ones";
  Shows(a_, GivenMig({"MIG-0-3", "MIG-1-5"}));
  EXPECT_EQ(Taken(0), At({3}));
  EXPECT_EQ(Taken(1), At({5}));
  EXPECT_EQ(Record(a_).evidence(), Evidence::kKubelet);
  EXPECT_FALSE(Record(a_).on_other_gpus()) << "nobody had said which";
  Shows(b_, {}, {.mig = {AGrantOf("1g.5gb")}});
  EXPECT_EQ(Taken(0), At({0, 3}));
  Gone(a_);
  EXPECT_EQ(Taken(1), MigSet{0});
}

TEST_F(GivenPartsTest, WhoWasGivenADeviceHoldsItAndThePlanOfAnotherOneCountsElsewhere) {
  Up(NamedMig(true));
  Shows(a_, {}, {.mig = {AGrant(0, "1g.5gb", 0), AGrant(0, "1g.5gb", 1)}});
  Shows(b_, {}, {.mig = {AGrant(0, "1g.5gb", 2)}});
  EXPECT_EQ(Taken(0), At({0, 1, 2}));
  Shows(a_, GivenMig({"MIG-0-1", "MIG-0-2"}));
  EXPECT_TRUE(Record(a_).on_other_gpus());
  EXPECT_EQ(std::popcount(Taken(0)), 3) << "b is assumed on one that nobody has";
  EXPECT_NE(Taken(0) & At({1, 2}), MigSet{0});
  Shows(b_, GivenMig({"MIG-1-6"}));
  EXPECT_EQ(Taken(0), At({1, 2}));
  EXPECT_EQ(Taken(1), At({6}));
  Shows(a_, {});
  EXPECT_EQ(Taken(0), At({1, 2})) << "a container that starts again has no status";
  Shows(a_, GivenMig({"MIG-0-0"}, {}, Evidence::kAgent));
  EXPECT_EQ(Taken(0), At({1, 2})) << "an annotation says nothing against a status";
}

TEST_F(GivenPartsTest, WhatTheNodeDoesNotNameLeavesTheCountsAsTheyWere) {
  Up(NamedMig(false));
  Shows(a_, GivenMig({"MIG-0-1", "MIG-of-another-time"}));
  EXPECT_EQ(Taken(0), At({0, 1}));
  EXPECT_EQ(Record(a_).evidence(), Evidence::kPlan);
  NodeSpec nameless = ANode("n").Mig(StaticMig(2, kSevenSmall)).Spec();
  Shows(b_, GivenMig({"MIG-1-1"}));
  EXPECT_EQ(Taken(1), At({1}));
  Up(nameless);
  EXPECT_EQ(std::popcount(Taken(0)) + std::popcount(Taken(1)), 3);
}

TEST_F(GivenPartsTest, TheProfileStandsForADeviceOfAContainerThatHasEnded) {
  Up(NamedMig(false));
  Shows(a_, GivenMig({"MIG-1-2"}));
  EXPECT_EQ(Taken(1), At({2}));
  EXPECT_EQ(Taken(0), At({0})) << "the other one is assumed";
}

TEST_F(GivenPartsTest, ASickMigDeviceIsClosedWhereBerthPicks) {
  Up(NamedMig(true));
  Shows(b_, GivenMig({"MIG-0-0"}, {"MIG-0-0"}));
  EXPECT_EQ(TheNode().spec().mig->gpus[0].offered & At({0, 1}), At({1}));
  EXPECT_EQ(TheNode().spec().named_gpus_condition, "status of pods");
  Shows(b_, GivenMig({"MIG-0-0"}));
  EXPECT_EQ(TheNode().spec(), NamedMig(true)) << "it is well again";
}

TEST_F(GivenPartsTest, ReplicasAreCountedOnTheirGpus) {
  Up(NamedPlaces());
  const APod one = APod("one").Whole(1), two = APod("two").Whole(1);
  Shows(one, {}, {.places_on = {0}});
  Shows(two, {}, {.places_on = {1}});
  EXPECT_EQ(PlacesOn(), (Gpus{1, 1, 0, 0}));
  Shows(two, GivenReplicas({"GPU-3"}, {1}));
  EXPECT_EQ(PlacesOn(), (Gpus{1, 0, 0, 1}));
  EXPECT_TRUE(Record(two).on_other_gpus());
  EXPECT_EQ(TheNode().places_taken(), 2);
  Shows(one, GivenReplicas({"GPU-0"}, {1}));
  EXPECT_FALSE(Record(one).on_other_gpus());
  const APod past = APod("past").Whole(2);
  Shows(past, GivenReplicas({"GPU-1", "GPU-2"}, {1, 1}));
  EXPECT_EQ(PlacesOn(), (Gpus{1, 1, 1, 1}));
  Shows(past, GivenReplicas({"GPU-1"}, {2}));
  EXPECT_EQ(PlacesOn(), (Gpus{1, 2, 0, 1})) << "two replicas of one GPU";
  Gone(two);
  EXPECT_EQ(PlacesOn(), (Gpus{1, 2, 0, 0}));
  EXPECT_EQ(TheNode().free_places(), 12 - 3);
}

TEST_F(GivenPartsTest, AReplicaOfAGpuThatIsNotTheNodesLeavesTheNumberAlone) {
  Up(NamedPlaces());
  const APod one = APod("one").Whole(1);
  Shows(one, GivenReplicas({"GPU-of-another-node"}, {1}));
  EXPECT_EQ(PlacesOn(), (Gpus{0, 0, 0, 0}));
  EXPECT_EQ(TheNode().places_taken(), 1);
}

TEST_F(GivenPartsTest, AGpuWithAllOfItsUsersTakesNoMore) {
  Up(NamedPlaces());
  for (const char* const name : {"one", "two", "three"}) {
    Shows(APod(name).Whole(1), {}, {.places_on = {2}});
  }
  const APod four = APod("four").Whole(1);
  Placement placement = four.On("n");
  placement.places = 1;
  placement.places_on = {2};
  EXPECT_EQ(TheNode().CanTake(placement).error().message, "gpu 2: has all of its users");
  placement.places_on = {4};
  EXPECT_FALSE(TheNode().CanTake(placement)) << "the node has four";
  placement.places_on = {3};
  EXPECT_TRUE(TheNode().CanTake(placement));
  // What pods hold that were bound past Berth is theirs.
  Shows(four, {}, {.places_on = {2}});
  EXPECT_EQ(PlacesOn(), (Gpus{0, 0, 4, 0}));
}

// --- claims

ClaimedGpu Held(const std::string& device, int gpu, const std::string& profile = "") {
  return {"ns/c", device, "GPU-" + std::to_string(gpu), gpu, profile};
}

GpusClaimed Claims(std::vector<ClaimedGpu> held) { return {.node = "n", .gpus = std::move(held)}; }

TEST_F(GivenPartsTest, ASickGpuOfAClaimIsClosedAndStaysSo) {
  const NodeSpec plain = ANode("n").Gpus(4).Named("").Spec();
  Up(plain);
  const APod user = APod("user");
  const std::string id = "k8s.gpu.nvidia.com/claim=8d1f60fd-4a3c-4ba7-a2d1-7b4f8f3c1d20-gpu-1";
  Shows(user, GivenClaimed({id}, {id}));
  EXPECT_EQ(TheNode().closed(), GpuMask{0}) << "which GPU it is the claim says";
  Apply(Claims({Held("gpu-1", 1), Held("gpu-11", 2)}));
  EXPECT_EQ(TheNode().closed(), GpuBit(1));
  Gone(user);
  Apply(Claims({}));
  EXPECT_EQ(TheNode().closed(), GpuBit(1)) << "nobody has said that it is well";
  Apply(Claims({Held("gpu-1", 1)}));
  Shows(user, GivenClaimed({"gpu.nvidia.com/n/gpu-1"}));
  EXPECT_EQ(TheNode().closed(), GpuMask{0});
  EXPECT_EQ(TheNode().spec(), plain);
}

TEST_F(GivenPartsTest, ASickPartOfAGpuOrADeviceOfAnotherKindClosesNothing) {
  Up(ANode("n").Gpus(4).Named("").Spec());
  Apply(Claims({Held("gpu-1-mig-1", 1, "1g.5gb"), Held("gpu-3", 3)}));
  Shows(APod("user"), GivenClaimed({"dra.net/n/nic-3", "gpu.nvidia.com/n/gpu-1-mig-1"},
                                   {"dra.net/n/nic-3", "gpu.nvidia.com/n/gpu-1-mig-1"}));
  EXPECT_EQ(TheNode().closed(), GpuMask{0});
}

}  // namespace
}  // namespace berth::test::given_parts_test
